import { describe, expect, it } from 'vitest';
import { offering, type ScriptedClient, startGateway } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const URI = 'x://a/1';
const OTHER = 'x://a/2';

async function subscribing() {
  const a = { ...offering({ resources: [URI, OTHER] }), limits: { timeoutMs: 3_000 } };
  const world = await startGateway({ servers: { a, b: offering({ resources: ['x://b/1'] }) } });
  const connect = () => world.connect().greet();
  /** A request to the gateway, which the server answers if it hears of it. Returns what the client is told. */
  const ask = async (client: ScriptedClient, method: string, uri: string, answer: Message = {}) => {
    const { child } = world.server('a');
    const heard = child.asked(method).length;
    client.request('s', method, { uri });
    if (child.asked(method).length > heard) child.reply(method, answer);
    await flush();
    return client.received.take().find(({ id }) => id === 's');
  };
  const subscribe = (client: ScriptedClient, uri = URI, answer?: Message) =>
    ask(client, 'resources/subscribe', uri, answer);
  const unsubscribe = (client: ScriptedClient, uri = URI, answer?: Message) =>
    ask(client, 'resources/unsubscribe', uri, answer);
  /** What the process of `a` was asked about subscriptions so far. */
  const heard = () =>
    world
      .server('a')
      .child.received.messages.filter(({ method }) => /^resources\/(un)?subscribe$/.test(method))
      .map(({ method, params }) => `${method.slice('resources/'.length)} ${params.uri}`);
  const update = (uri: string | undefined, key = 'a') =>
    world.server(key).child.say({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });
  return { ...world, connect, subscribe, unsubscribe, heard, update };
}

/** Of what the client was told of since the last call. */
function updates(client: ScriptedClient): unknown[] {
  return client.received
    .take()
    .filter(({ method }) => method === 'notifications/resources/updated')
    .map(({ params }) => params.uri);
}

const OK = { jsonrpc: '2.0', id: 's', result: {} };
const REFUSAL = { code: -32601, message: 'no subscriptions here' };

describe('subscribing to a resource', () => {
  it('is for the server to hear of the first time, and the answer is the server’s own', async () => {
    const { connect, subscribe, heard } = await subscribing();
    expect((await subscribe(connect(), URI, { x: 1 }))?.result).toEqual({ x: 1 });
    expect(heard()).toEqual([`subscribe ${URI}`]);
  });

  it('is answered by the gateway from the second client on, and for one that is subscribed already', async () => {
    const { connect, subscribe, heard } = await subscribing();
    const first = connect();
    await subscribe(first);
    for (const client of [connect(), connect(), first]) expect(await subscribe(client)).toEqual(OK);
    expect(heard()).toEqual([`subscribe ${URI}`]);
  });

  it('does not count when the server refuses it: the next one is a first one again', async () => {
    const { connect, subscribe, heard, update } = await subscribing();
    const [refused, taken] = [connect(), connect()];
    expect((await subscribe(refused, URI, REFUSAL))?.error).toEqual(REFUSAL);
    update(URI);
    expect(updates(refused)).toEqual([]);
    expect((await subscribe(taken))?.result).toEqual({});
    expect(heard()).toEqual([`subscribe ${URI}`, `subscribe ${URI}`]);
    update(URI);
    expect([updates(refused), updates(taken)]).toEqual([[], [URI]]);
  });

  it('does not count when the server does not answer', async () => {
    const { connect, clock, heard, subscribe } = await subscribing();
    const client = connect();
    client.request(1, 'resources/subscribe', { uri: URI });
    clock.advance(3_000);
    await flush();
    expect(client.answerTo(1)?.error).toMatchObject({
      code: -32603,
      data: { reason: 'timeout', server: 'a', sent: true },
    });
    await subscribe(client);
    expect(heard()).toEqual([`subscribe ${URI}`, `subscribe ${URI}`]);
  });

  it('does not count while there is no process for too long, and the client is told so', async () => {
    const { clock, connect, server, heard } = await subscribing();
    const client = connect();
    server('a').crash();
    client.request(1, 'resources/subscribe', { uri: URI });
    clock.advance(5_000);
    expect(client.answerTo(1)?.error).toMatchObject({
      code: -32603,
      data: { reason: 'restarting', server: 'a', sent: false, outcome: 'not_sent' },
    });
    await flush();
    await server('a').start();
    expect(heard()).toEqual([]);
  });

  it('waits for a process that is on its way back', async () => {
    const { connect, server, heard } = await subscribing();
    const client = connect();
    server('a').crash();
    client.request(1, 'resources/subscribe', { uri: URI });
    await server('a').start();
    server('a').child.reply('resources/subscribe');
    expect(client.answerTo(1)?.result).toEqual({});
    expect(heard()).toEqual([`subscribe ${URI}`]);
  });

  it('reaches the server as the client wrote it', async () => {
    const { connect, server } = await subscribing();
    const params = `{"x":1.0,"uri":"${URI}","_meta":{"y":[]}}`;
    connect().say(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":${params}}`);
    expect(server('a').child.received.lines.at(-1)).toContain(params);
  });
});

describe('the end of a subscription', () => {
  it('is for the server to hear of when it was the last one', async () => {
    const { connect, subscribe, unsubscribe, heard } = await subscribing();
    const [one, other] = [connect(), connect()];
    await subscribe(one);
    await subscribe(other);
    expect(await unsubscribe(one)).toEqual(OK);
    expect(heard()).toEqual([`subscribe ${URI}`]);
    expect((await unsubscribe(other, URI, { x: 2 }))?.result).toEqual({ x: 2 });
    expect(heard()).toEqual([`subscribe ${URI}`, `unsubscribe ${URI}`]);
  });

  it('of one who never subscribed takes it from nobody else', async () => {
    const { connect, subscribe, unsubscribe, heard, update } = await subscribing();
    const [one, other] = [connect(), connect()];
    await subscribe(one);
    expect(await unsubscribe(other)).toEqual(OK);
    expect(heard()).toEqual([`subscribe ${URI}`]);
    update(URI);
    expect(updates(one)).toEqual([URI]);
  });

  it('counts though the server does not agree', async () => {
    const { connect, subscribe, unsubscribe, heard, update } = await subscribing();
    const client = connect();
    await subscribe(client);
    expect((await unsubscribe(client, URI, REFUSAL))?.error).toEqual(REFUSAL);
    update(URI);
    expect(updates(client)).toEqual([]);
    await subscribe(client);
    expect(heard().at(-1)).toBe(`subscribe ${URI}`);
  });

  it('comes with the end of the client, for all that nobody else is subscribed to', async () => {
    const { connect, subscribe, heard, update } = await subscribing();
    const [leaving, staying] = [connect(), connect()];
    await subscribe(leaving, URI);
    await subscribe(leaving, OTHER);
    await subscribe(staying, OTHER);
    leaving.session.close();
    expect(heard()).toEqual([`subscribe ${URI}`, `subscribe ${OTHER}`, `unsubscribe ${URI}`]);
    update(OTHER);
    expect([updates(leaving), updates(staying)]).toEqual([[], [OTHER]]);
    staying.session.close();
    expect(heard().at(-1)).toBe(`unsubscribe ${OTHER}`);
  });

  it('of a client without subscriptions is nothing to any server', async () => {
    const { connect, subscribe, heard } = await subscribing();
    await subscribe(connect());
    connect().session.close();
    expect(heard()).toEqual([`subscribe ${URI}`]);
  });
});

describe('a new process', () => {
  it('is subscribed to what the last one was, once for each URI', async () => {
    const { connect, server, subscribe, unsubscribe, heard, update } = await subscribing();
    const [one, other] = [connect(), connect()];
    await subscribe(one, URI);
    await subscribe(other, URI);
    await subscribe(one, OTHER);
    await unsubscribe(one, OTHER);
    server('a').crash();
    await server('a').start();
    expect(heard()).toEqual([`subscribe ${URI}`]);
    update(URI);
    expect([updates(one), updates(other)]).toEqual([[URI], [URI]]);
  });

  it('is not subscribed for a client that left in between', async () => {
    const { connect, server, subscribe, heard } = await subscribing();
    const client = connect();
    await subscribe(client);
    server('a').crash();
    client.session.close();
    await server('a').start();
    expect(heard()).toEqual([]);
  });

  it('of another server hears of nothing', async () => {
    const { connect, server, subscribe } = await subscribing();
    await subscribe(connect());
    server('b').crash();
    await server('b').start();
    expect(server('b').child.asked('resources/subscribe')).toEqual([]);
  });
});

describe('an update', () => {
  it('reaches who is subscribed to its URI, as the server wrote it, and nobody else', async () => {
    const { connect, server, subscribe } = await subscribing();
    const [one, elsewhere, none] = [connect(), connect(), connect()];
    await subscribe(one, URI);
    await subscribe(elsewhere, OTHER);
    const line = `{"method":"notifications/resources/updated" ,"params":{"uri":"x:\\/\\/a/1","n":1.0},"jsonrpc":"2.0"}`;
    server('a').child.say(line);
    expect(one.received.lines).toEqual([line]);
    expect([...elsewhere.received.lines, ...none.received.lines]).toEqual([]);
  });

  it('of a part of a resource reaches all subscribers of that server, once each, and none of another', async () => {
    const { connect, server, subscribe, update } = await subscribing();
    const [one, both, ofAnother, none] = [connect(), connect(), connect(), connect()];
    await subscribe(one, URI);
    await subscribe(both, URI);
    await subscribe(both, OTHER);
    ofAnother.request('s', 'resources/subscribe', { uri: 'x://b/1' });
    server('b').child.reply('resources/subscribe');
    await flush();
    update(`${URI}/part`);
    expect([one, both, ofAnother, none].map(updates)).toEqual([[`${URI}/part`], [`${URI}/part`], [], []]);
    update('x://b/1/part', 'b');
    expect([one, both, ofAnother, none].map(updates)).toEqual([[], [], ['x://b/1/part'], []]);
  });

  it('without a URI reaches all subscribers of that server', async () => {
    const { connect, subscribe, update } = await subscribing();
    const [one, none] = [connect(), connect()];
    await subscribe(one);
    update(undefined);
    expect([updates(one), updates(none)]).toEqual([[undefined], []]);
  });

  it('is no part of an answer, though a call of the subscriber is in flight', async () => {
    const { connect, server, subscribe, update } = await subscribing();
    const [subscriber, caller] = [connect(), connect()];
    await subscribe(subscriber);
    caller.call(1, 'a__read');
    update(URI);
    expect([updates(subscriber), updates(caller)]).toEqual([[URI], []]);
    server('a').child.answer(0);
  });
});
