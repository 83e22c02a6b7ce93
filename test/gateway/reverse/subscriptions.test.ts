import { describe, expect, it } from 'vitest';
import { offering, type ScriptedClient, startGateway } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const URI = 'x://a/1';
const OTHER = 'x://a/2';
const MIB = 1024 * 1024;
const WORK = { views: [{ name: 'work', servers: ['a', 'b'] }], clients: [] };

async function subscribing() {
  const a = {
    ...offering({ resources: [URI, OTHER], templates: ['x://{+rest}'] }),
    limits: { timeoutMs: 3_000 },
  };
  const servers = { a, b: offering({ resources: ['x://b/1'] }) };
  const world = await startGateway({ servers, views: WORK });
  const connect = (who = {}) => world.connect(who).greet();
  /** Sends a request to the gateway, which the server answers if it gets the request. Returns the answer to the client. */
  const ask = async (client: ScriptedClient, method: string, uri: string, answer: Message = {}) => {
    const { child } = world.server('a');
    const count = child.asked(method).length;
    client.request('s', method, { uri });
    if (child.asked(method).length > count) child.reply(method, answer);
    await flush();
    return client.received.take().find(({ id }) => id === 's');
  };
  const subscribe = (client: ScriptedClient, uri = URI, answer?: Message) =>
    ask(client, 'resources/subscribe', uri, answer);
  const unsubscribe = (client: ScriptedClient, uri = URI, answer?: Message) =>
    ask(client, 'resources/unsubscribe', uri, answer);
  const reply = async (method: 'subscribe' | 'unsubscribe', id = 'a') => {
    world.server(id).child.reply(`resources/${method}`);
    await flush();
  };
  /** Requests to subscribe and unsubscribe that the present process received. */
  const heard = (id = 'a') =>
    world
      .server(id)
      .child.received.messages.filter(({ method }) => /^resources\/(un)?subscribe$/.test(method))
      .map(({ method, params }) => `${method.slice('resources/'.length)} ${params.uri}`);
  const update = (uri: string | undefined, id = 'a') =>
    world.server(id).child.say({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } });
  return { ...world, servers, connect, subscribe, unsubscribe, reply, heard, update };
}

/** The URIs of the updates since the last call. */
function updates(client: ScriptedClient): unknown[] {
  return client.received
    .take()
    .filter(({ method }) => method === 'notifications/resources/updated')
    .map(({ params }) => params.uri);
}

const OK = { jsonrpc: '2.0', id: 's', result: {} };
const REFUSAL = { code: -32601, message: 'no subscriptions here' };

describe('subscribing to a resource', () => {
  it('reaches the server the first time, as the client wrote it, and the answer is the server’s own', async () => {
    const { connect, server } = await subscribing();
    const client = connect();
    const params = `{"x":1.0,"uri":"${URI}","_meta":{"y":[]}}`;
    client.say(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":${params}}`);
    expect(server('a').child.received.lines.at(-1)).toContain(params);
    server('a').child.reply('resources/subscribe', { x: 1 });
    expect(client.answerTo(1)?.result).toEqual({ x: 1 });
  });

  it('is answered by the gateway from the second client on, also at the same moment, and for one that is subscribed', async () => {
    const { connect, subscribe, reply, heard } = await subscribing();
    const [one, two] = [connect(), connect()];
    for (const client of [one, two]) client.request(1, 'resources/subscribe', { uri: URI });
    await reply('subscribe');
    expect([one.answerTo(1)?.result, two.answerTo(1)?.result]).toEqual([{}, {}]);
    for (const client of [connect(), one]) expect(await subscribe(client)).toEqual(OK);
    expect(heard()).toEqual([`subscribe ${URI}`]);
  });

  it('does not count when the server refuses it: the next one is a first one again', async () => {
    const { connect, subscribe, heard, update } = await subscribing();
    const [refused, taken] = [connect(), connect()];
    expect((await subscribe(refused, URI, REFUSAL))?.error).toEqual(REFUSAL);
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
    expect(client.answerTo(1)?.error).toMatchObject({ code: -32603, data: { reason: 'timeout', sent: true } });
    await subscribe(client);
    expect(heard()).toEqual([`subscribe ${URI}`, `subscribe ${URI}`]);
  });

  it('waits for a process that is on its way back, and does not count if that takes too long', async () => {
    const { clock, connect, server, reply, heard } = await subscribing();
    const [late, client] = [connect(), connect()];
    server('a').crash();
    late.request(1, 'resources/subscribe', { uri: OTHER });
    clock.advance(5_000);
    expect(late.answerTo(1)?.error).toMatchObject({ code: -32603, data: { reason: 'restarting', sent: false } });
    client.request(1, 'resources/subscribe', { uri: URI });
    await server('a').start();
    await reply('subscribe');
    expect(client.answerTo(1)?.result).toEqual({});
    expect(heard()).toEqual([`subscribe ${URI}`]);
  });

  it.each(['leaves', 'cancels'])('leaves no subscription if the client %s meanwhile', async (end) => {
    const { connect, server, reply, heard } = await subscribing();
    const client = connect();
    client.request(1, 'resources/subscribe', { uri: URI });
    if (end === 'leaves') client.session.close();
    else client.cancel(1);
    await reply('subscribe');
    expect(heard()).toEqual([`subscribe ${URI}`, `unsubscribe ${URI}`]);
    server('a').crash();
    await server('a').start();
    expect(heard()).toEqual([]);
  });

  it('F221: is refused beyond 4 MiB of URIs of one client, and no server hears of more', async () => {
    const { connect, subscribe, unsubscribe, heard } = await subscribing();
    const [client, other] = [connect(), connect()];
    const [large, small] = [`x://1/`.padEnd(3 * MIB, 'y'), 'x://2/'.padEnd(MIB + 1, 'y')];
    const tooMuch = { code: -32603, message: 'The client has too many subscriptions, so it must end some first' };
    for (const uri of [large, large]) expect(await subscribe(client, uri)).toMatchObject({ result: {} });
    expect(await subscribe(client, small)).toMatchObject({ error: tooMuch });
    expect(heard()).toHaveLength(1);
    expect(await subscribe(other, small)).toMatchObject({ result: {} });
    for (let time = 0; time < 2; time += 1) await unsubscribe(client, large);
    expect(await subscribe(client, small)).toMatchObject({ result: {} });
  });
});

describe('the end of a subscription', () => {
  it('reaches the server when it was the last one', async () => {
    const { connect, subscribe, unsubscribe, heard } = await subscribing();
    const [one, other] = [connect(), connect()];
    await subscribe(one);
    await subscribe(other);
    expect(await unsubscribe(one)).toEqual(OK);
    expect(heard()).toEqual([`subscribe ${URI}`]);
    expect((await unsubscribe(other, URI, { x: 2 }))?.result).toEqual({ x: 2 });
    expect(heard()).toEqual([`subscribe ${URI}`, `unsubscribe ${URI}`]);
  });

  it('of a client that never subscribed takes it from no other client', async () => {
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

  it('comes with the end of the client, for everything that no other client is subscribed to', async () => {
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

  it('does not end a subscription that another client makes meanwhile', async () => {
    const { connect, subscribe, reply, heard } = await subscribing();
    const [one, two] = [connect(), connect()];
    await subscribe(one);
    one.request(2, 'resources/unsubscribe', { uri: URI });
    two.request(1, 'resources/subscribe', { uri: URI });
    await reply('unsubscribe');
    expect(heard().at(-1)).toBe(`subscribe ${URI}`);
  });

  it.each(['cancels', 'leaves'])('F205: holds up no later request if the client %s before it is sent', async (end) => {
    const { connect, reply, heard } = await subscribing();
    const [one, other] = [connect(), connect()];
    one.request(1, 'resources/subscribe', { uri: URI });
    one.request(2, 'resources/unsubscribe', { uri: URI });
    if (end === 'cancels') one.cancel(2);
    else one.session.close();
    await reply('subscribe');
    other.request(1, 'resources/subscribe', { uri: URI });
    await flush();
    if (end === 'leaves') await reply('subscribe');
    expect(other.answerTo(1)?.result).toEqual({});
    expect(heard().filter((each) => each.startsWith('unsubscribe'))).toHaveLength(end === 'cancels' ? 0 : 1);
  });
});

describe('a new process', () => {
  it('gets the subscriptions of the last one, once for each URI, without those of clients that left', async () => {
    const { connect, server, subscribe, unsubscribe, heard, update } = await subscribing();
    const [one, other, leaving] = [connect(), connect(), connect()];
    await subscribe(one, URI);
    await subscribe(other, URI);
    await subscribe(one, OTHER);
    await unsubscribe(one, OTHER);
    await subscribe(leaving, 'x://left');
    for (const key of ['a', 'b']) server(key).crash();
    leaving.session.close();
    for (const key of ['a', 'b']) await server(key).start();
    expect([heard('a'), heard('b')]).toEqual([[`subscribe ${URI}`], []]);
    update(URI);
    expect([updates(one), updates(other)]).toEqual([[URI], [URI]]);
  });

  it('F206: gets a subscription that was in flight while the configuration changed', async () => {
    const { connect, change, servers, server, reply, heard, update } = await subscribing();
    const client = connect();
    client.request(1, 'resources/subscribe', { uri: URI });
    change(servers, ['a']);
    await reply('subscribe');
    expect(client.answerTo(1)?.result).toEqual({});
    await server('a~2').start();
    expect(heard('a~2')).toEqual([`subscribe ${URI}`]);
    update(URI, 'a~2');
    expect(updates(client)).toEqual([URI]);
  });

  it('gets it once if another client subscribes before the former process answers', async () => {
    const { connect, change, servers, server, reply, heard } = await subscribing();
    const [one, other] = [connect(), connect()];
    one.request(1, 'resources/subscribe', { uri: URI });
    change(servers, ['a']);
    await server('a~2').start();
    other.request(1, 'resources/subscribe', { uri: URI });
    await reply('subscribe', 'a~2');
    await reply('subscribe');
    other.session.close();
    expect(heard('a~2')).toEqual([`subscribe ${URI}`]);
    one.session.close();
    expect(heard('a~2')).toEqual([`subscribe ${URI}`, `unsubscribe ${URI}`]);
  });

  it('does not get it for a client that does not see the server any longer', async () => {
    const { connect, change, servers, reply, heard, update } = await subscribing();
    const client = connect({ view: 'work' });
    client.request(1, 'resources/subscribe', { uri: URI });
    change(servers, [], { views: { views: [{ name: 'work', servers: [] }], clients: [] } });
    await reply('subscribe');
    expect(heard()).toEqual([`subscribe ${URI}`, `unsubscribe ${URI}`]);
    update(URI);
    expect(updates(client)).toEqual([]);
  });
});

describe('an update', () => {
  it('reaches the subscribers of its URI, as the server wrote it, and no others', async () => {
    const { connect, server, subscribe } = await subscribing();
    const [one, elsewhere, none] = [connect(), connect(), connect()];
    await subscribe(one, URI);
    await subscribe(elsewhere, OTHER);
    none.call(1, 'a__read');
    const line = `{"method":"notifications/resources/updated" ,"params":{"uri":"x:\\/\\/a/1","n":1.0},"jsonrpc":"2.0"}`;
    server('a').child.say(line);
    expect(one.received.lines).toEqual([line]);
    expect([...elsewhere.received.lines, ...none.received.lines]).toEqual([]);
  });

  it.each([`${URI}/part`, undefined])('of %s reaches all subscribers of that server, once each', async (uri) => {
    const { connect, server, subscribe, update } = await subscribing();
    const [one, both, ofAnother, none] = [connect(), connect(), connect(), connect()];
    await subscribe(one, URI);
    await subscribe(both, URI);
    await subscribe(both, OTHER);
    ofAnother.request('s', 'resources/subscribe', { uri: 'x://b/1' });
    server('b').child.reply('resources/subscribe');
    await flush();
    update(uri);
    expect([one, both, ofAnother, none].map(updates)).toEqual([[uri], [uri], [], []]);
  });
});
