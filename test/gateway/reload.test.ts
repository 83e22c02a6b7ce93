import { describe, expect, it } from 'vitest';
import { createOwnTool } from '../../src/gateway/routing/own-tool.js';
import {
  offering,
  pageOf,
  type ScriptedClient,
  type ScriptedServer,
  type ServerScript,
  scriptGateway,
  type Who,
} from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const URI = 'x://1';

/** Servers `a` and `b` run, and a client has seen their lists. Clients with the same profile share processes. */
async function running(scripts: Record<string, ServerScript> = {}) {
  const servers: Record<string, ServerScript> = {
    a: { tools: ['x'], sharing: 'profile', ...scripts.a },
    b: { tools: ['y'], sharing: 'profile', ...scripts.b },
  };
  const world = scriptGateway({ servers });
  world.gateway.start();
  await world.startAll();
  const connect = async ({ capabilities = {}, ...who }: Who & { capabilities?: Message } = {}) => {
    const client = world.connect(who).greet('2025-11-25', capabilities);
    client.request('first', 'tools/list');
    await flush();
    client.received.take();
    return client;
  };
  return { ...world, servers, connect, client: await connect() };
}

function toolsFor(client: ScriptedClient): string[] {
  client.request('list', 'tools/list');
  const answer = client.received.take().find(({ id }) => id === 'list');
  return answer?.result.tools.map(({ name }: Message) => name);
}

function announcements(client: ScriptedClient): string[] {
  const methods = client.received.take().flatMap(({ method }) => (method === undefined ? [] : [method]));
  return methods.filter((method) => method.endsWith('list_changed'));
}

function failureIn(answer: Message | undefined): Message | undefined {
  return answer?.result?._meta?.['trunkline/failure'];
}

describe('a server that the new configuration leaves as it is', () => {
  it('keeps its process, the calls on it, and its subscriptions', async () => {
    const subscribable = { ...offering({ resources: [URI] }), tools: ['x'] };
    const { change, servers, server, client } = await running({ a: subscribable });
    client.request('s', 'resources/subscribe', { uri: URI });
    server('a').child.reply('resources/subscribe');
    client.call(1, 'a__x');
    await flush();
    change({ a: servers.a ?? {}, c: { tools: ['z'] } });
    await flush();
    server('a').child.answer(0, { content: [], marker: 'kept' });
    server('a').child.say({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: URI } });
    await flush();
    expect(client.answerTo(1)?.result.marker).toBe('kept');
    expect(client.received.messages.map(({ method }) => method)).toContain('notifications/resources/updated');
    expect(server('a').isEnded).toBe(false);
    client.call(2, 'a__x');
    await flush();
    expect(server('a').child.calls).toHaveLength(2);
  });
});

describe('a server that is removed', () => {
  it('is gone from the lists at once, and its process ends when it has nothing to do', async () => {
    const { change, servers, server, client, clock } = await running();
    change({ b: servers.b ?? {} });
    await flush();
    expect(server('a').isEnded).toBe(true);
    expect(toolsFor(client)).toEqual(['b__y']);
    clock.advance(200);
    expect(announcements(client)).toEqual(['notifications/tools/list_changed']);
  });

  it('ends its calls in flight first', async () => {
    const { change, servers, server, client } = await running();
    client.call(1, 'a__x');
    await flush();
    change({ b: servers.b ?? {} });
    await flush();
    expect(server('a').isEnded).toBe(false);
    server('a').child.answer(0, { content: [], marker: 'done' });
    await flush();
    expect(client.answerTo(1)?.result.marker).toBe('done');
    expect(server('a').isEnded).toBe(true);
  });

  it('fails what takes longer than five seconds, saying that the outcome is unknown', async () => {
    const { change, servers, server, client, clock } = await running();
    client.call(1, 'a__x');
    await flush();
    change({ b: servers.b ?? {} });
    clock.advance(4_999);
    expect(client.answerTo(1)).toBeUndefined();
    clock.advance(1);
    await flush();
    expect(failureIn(client.answerTo(1))).toMatchObject({ reason: 'stopped', sent: true, outcome: 'unknown' });
    expect(server('a').isEnded).toBe(true);
    clock.advance(600_000);
    expect(clock.pending).toBe(0);
  });

  it('fails what it had not been sent, saying that it was not', async () => {
    const { change, servers, client, server } = await running({ a: { limits: { concurrency: 1 } } });
    client.call(1, 'a__x');
    client.call(2, 'a__x');
    await flush();
    change({ b: servers.b ?? {} });
    await flush();
    expect(failureIn(client.answerTo(2))).toMatchObject({ reason: 'stopped', sent: false, outcome: 'not_sent' });
    expect(client.answerTo(1)).toBeUndefined();
    server('a').child.answer(0);
    await flush();
    expect(client.answerTo(1)?.result).toEqual({ content: [] });
    expect(server('a').child.calls).toHaveLength(1);
  });

  it('is not started again when it ends by itself meanwhile', async () => {
    const { change, servers, server, client } = await running();
    client.call(1, 'a__x');
    await flush();
    change({ b: servers.b ?? {} });
    server('a').crash();
    await flush();
    expect(server('a').isEnded).toBe(true);
    expect(failureIn(client.answerTo(1))).toMatchObject({ sent: true, outcome: 'unknown' });
  });
});

describe('a server that is changed', () => {
  it('keeps its place in the lists while its new process starts, and shows what that has then', async () => {
    const { change, servers, server, client, clock } = await running();
    change({ ...servers, a: { ...servers.a, tools: ['x', 'new'] } }, ['a']);
    expect(toolsFor(client)).toEqual(['a__x', 'b__y']);
    await server('a~2').start();
    expect(toolsFor(client)).toEqual(['a__x', 'a__new', 'b__y']);
    clock.advance(200);
    client.received.take();
    expect(server('a').isEnded).toBe(true);
  });

  it('hands on what it had not been sent, and every call has one answer', async () => {
    const { change, servers, server, client } = await running({ a: { limits: { concurrency: 2 } } });
    for (let id = 0; id < 6; id += 1) client.call(id, 'a__x', { arguments: { id } });
    await flush();
    change(servers, ['a']);
    const old = server('a').child;
    await server('a~2').start();
    const next = server('a~2').child;
    for (let call = 0; call < 2; call += 1) old.answer(call, { content: [], from: 'old' });
    for (let call = 0; call < 4; call += 1) {
      await flush();
      next.answer(call, { content: [], from: 'new' });
    }
    await flush();
    const from = Array.from({ length: 6 }, (_, id) => client.answerTo(id)?.result.from);
    expect(from).toEqual(['old', 'old', 'new', 'new', 'new', 'new']);
    expect([old.calls.length, next.calls.length]).toEqual([2, 4]);
  });

  it('still sends requests to the client whose call is in flight', async () => {
    const { change, servers, server, connect } = await running();
    const client = await connect({ capabilities: { elicitation: {} } });
    await server('a~2').start();
    client.call(1, 'a__x');
    await flush();
    change(servers, ['a']);
    const { child } = server('a~2');
    child.say({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: 'sure?' } });
    await flush();
    const input = client.received.messages.find(({ method }) => method === 'elicitation/create');
    client.say({ jsonrpc: '2.0', id: input?.id, result: { action: 'accept' } });
    await flush();
    expect(child.received.messages).toContainEqual({ jsonrpc: '2.0', id: 'q', result: { action: 'accept' } });
  });

  it('has its new process told of subscriptions and of the log level', async () => {
    const script = {
      ...offering({ resources: [URI], capabilities: { resources: { subscribe: true }, logging: {}, tools: {} } }),
    };
    const { change, servers, server, client } = await running({ a: script });
    client.request('s', 'resources/subscribe', { uri: URI });
    server('a').child.reply('resources/subscribe');
    client.request('l', 'logging/setLevel', { level: 'error' });
    await flush();
    change(servers, ['a']);
    await server('a~2').start();
    const { child } = server('a~2');
    expect(child.asked('resources/subscribe').map(({ params }) => params.uri)).toEqual([URI]);
    expect(child.asked('logging/setLevel').map(({ params }) => params.level)).toEqual(['error']);
    child.say({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: URI } });
    await flush();
    const updates = client.received.messages.filter(({ method }) => method === 'notifications/resources/updated');
    expect(updates).toHaveLength(1);
  });

  it('has its new process told of a log level that the old one still had to answer', async () => {
    const script = { ...offering({ capabilities: { logging: {}, tools: {} } }) };
    const { change, servers, server, connect, client: other } = await running({ a: script });
    other.session.close();
    const client = await connect({ server: 'a' });
    client.request('l', 'logging/setLevel', { level: 'error' });
    await flush();
    change(servers, ['a']);
    await server('a~2').start();
    expect(server('a~2').child.asked('logging/setLevel')).toEqual([]);
    server('a').child.reply('logging/setLevel');
    await flush();
    expect(client.answerTo('l')?.result).toEqual({});
    expect(
      server('a~2')
        .child.asked('logging/setLevel')
        .map(({ params }) => params.level),
    ).toEqual(['error']);
  });

  it('is another one only for the clients whose variables it names from then on', async () => {
    const capabilities = { resources: { subscribe: true }, logging: {}, tools: {} };
    const a = { ...offering({ resources: [URI], capabilities }), tools: ['x'] };
    const { change, servers, server, client, connect, clock } = await running({ a });
    const other = await connect({ origin: { environment: { KEY: '1' }, folder: '/' } });
    const process = server('a').child;
    const replyTo = (child: typeof process) => child.reply('resources/subscribe');
    other.request('s', 'resources/subscribe', { uri: URI });
    replyTo(process);
    for (const each of [client, other]) each.call('before', 'a__x');
    await flush();
    change({ ...servers, a: { ...servers.a, variables: ['KEY'] } });
    await server('a~2').start();
    // No call in flight is lost, and the subscriptions of the other client have moved.
    process.answer(0);
    process.answer(1);
    await flush();
    expect([client, other].map((each) => each.answerTo('before')?.error)).toEqual([undefined, undefined]);
    expect(process.asked('resources/unsubscribe').map(({ params }) => params.uri)).toEqual([URI]);
    expect(
      server('a~2')
        .child.asked('resources/subscribe')
        .map(({ params }) => params.uri),
    ).toEqual([URI]);
    for (const each of [client, other]) each.call('after', 'a__x');
    await flush();
    expect([process.calls.length, server('a~2').child.calls.length]).toEqual([3, 1]);
    expect([...server('a').backend.clients]).toEqual([client.downstream]);
    for (const each of [client, other]) each.session.close();
    clock.advance(600_000);
    expect([server('a').isEnded, server('a~2').isEnded]).toEqual([true, true]);
  });

  it('F207: has time for the calls of the one client that it was for, which gets another one', async () => {
    const a = { tools: ['x'], sharing: 'isolated', limits: { concurrency: 1 } } as const;
    const { change, server, connect, startAll } = scriptGateway({ servers: { a } });
    const client = connect({ origin: { environment: { KEY: '1' }, folder: '/' } }).greet();
    await startAll();
    client.call('in flight', 'a__x');
    client.call('not sent', 'a__x');
    await flush();
    change({ a: { ...a, variables: ['KEY'] } });
    await flush();
    expect(server('a').isEnded).toBe(false);
    server('a').child.answer(0);
    await flush();
    expect(client.answerTo('in flight')?.result).toEqual({ content: [] });
    expect([server('a').isEnded, server('a').child.calls.length]).toEqual([true, 1]);
    await server('a~2').start();
    server('a~2').child.answer(0);
    expect(client.answerTo('not sent')?.result).toEqual({ content: [] });
  });

  it('is started only when the old process is gone if there may be only one', async () => {
    const { change, servers, server, client } = await running({ a: { sharing: 'all' } });
    client.call(1, 'a__x');
    await flush();
    change(servers, ['a']);
    await flush();
    expect(server('a~2').isToRun).toBe(false);
    expect(toolsFor(client)).toEqual(['a__x', 'b__y']);
    // The configuration changes again before the process has run.
    change(servers, ['a']);
    server('a').child.answer(0);
    await flush();
    expect([server('a~2').isToRun, server('a~2').isEnded]).toEqual([false, true]);
    expect(server('a~3').isToRun).toBe(true);
  });

  it('and is changed again and again while calls are in flight ends every process but the last', async () => {
    const { change, servers, server, client, ids, clock } = await running();
    for (let time = 0; time < 20; time += 1) {
      client.call(time, 'a__x');
      await flush();
      change(servers, ['a']);
      await server(`a~${time + 2}`).start();
      const { child } = server(time === 0 ? 'a' : `a~${time + 1}`);
      child.answer(child.calls.length - 1);
      await flush();
      expect(client.answerTo(time)?.result).toEqual({ content: [] });
    }
    const alive = ids().filter((id) => !server(id).isEnded);
    expect(alive.toSorted()).toEqual(['a~21', 'b']);
    clock.advance(600_000);
    expect(clock.pending).toBe(0);
  });
});

describe('clients', () => {
  it('are told once of everything that a change of the configuration brings', async () => {
    const { change, servers, server, client, clock } = await running();
    change({ b: servers.b ?? {}, c: { tools: ['z'], sharing: 'profile' } });
    clock.advance(1_000);
    expect(announcements(client)).toEqual([]);
    await server('c').start();
    clock.advance(5_000);
    expect(announcements(client)).toEqual(['notifications/tools/list_changed']);
    expect(toolsFor(client)).toEqual(['b__y', 'c__z']);
  });

  it('learn about the other servers without waiting for a slow one', async () => {
    const { change, servers, client, clock } = await running();
    change({ b: servers.b ?? {}, c: { tools: ['z'], sharing: 'profile' } });
    clock.advance(2_200);
    expect(announcements(client)).toEqual(['notifications/tools/list_changed']);
    expect(toolsFor(client)).toEqual(['b__y']);
  });

  it('are told nothing when their lists are the same', async () => {
    const { change, servers, server, client, clock } = await running();
    change(servers, ['a', 'b']);
    await server('a~2').start();
    await server('b~2').start();
    clock.advance(5_000);
    expect(announcements(client)).toEqual([]);
  });

  it('are told of later changes, also if some of them now share the process of others', async () => {
    const { change, servers, server, connect, clock } = await running({ a: { variables: ['KEY'] } });
    const withKey = (KEY: string) =>
      connect({ principal: 'somebody else', origin: { environment: { KEY }, folder: '/' } });
    const [moved, kept] = [await withKey('1'), await withKey('2')];
    for (const id of ['a~2', 'b~2', 'a~3']) await server(id).start();
    // The new file sets for all clients what the second one has already.
    change({ ...servers, a: { tools: ['x'], sharing: 'profile' } }, ['a~2']);
    const shared = server('a~3');
    expect(shared.backend.clients.size).toBe(2);
    for (const client of [moved, kept]) expect(toolsFor(client)).toEqual(['a__x', 'b__y']);
    shared.crash();
    shared.pages = [pageOf(['z'])];
    await shared.start();
    clock.advance(250);
    for (const client of [moved, kept]) {
      expect(announcements(client)).toEqual(['notifications/tools/list_changed']);
      expect(toolsFor(client)).toEqual(['a__z', 'b__y']);
    }
  });

  it('that leave while a process is being ended are cancelled there', async () => {
    const { change, servers, server, client } = await running();
    client.call(1, 'a__x');
    await flush();
    change(servers, ['a']);
    client.session.close();
    await flush();
    expect(server('a').child.cancellations).toHaveLength(1);
    expect(server('a').isEnded).toBe(true);
  });

  it('are shown other tools of ours when the settings say so', async () => {
    const { change, servers, client, clock } = await running();
    const definition = { name: 'trunkline__more', inputSchema: { type: 'object' as const } };
    change(servers, [], { ownTools: [createOwnTool(definition, () => ({ content: [] }))] });
    clock.advance(200);
    expect(announcements(client)).toEqual(['notifications/tools/list_changed']);
    expect(toolsFor(client)).toEqual(['a__x', 'b__y', 'trunkline__more']);
  });
});

describe('a client that sees one server as it is', () => {
  it('is told that the server is gone once its calls have ended', async () => {
    const { change, servers, server, connect } = await running();
    const alone = await connect({ server: 'a' });
    alone.call(1, 'x');
    await flush();
    change({ b: servers.b ?? {} });
    await flush();
    expect(alone.isGone).toBe(false);
    server('a').child.answer(0);
    await flush();
    expect(alone.answerTo(1)?.result).toEqual({ content: [] });
    expect(alone.isGone).toBe(true);
  });
});

describe('requests that were held while servers started', () => {
  it('are served by what the new configuration says', async () => {
    const world = scriptGateway({ servers: { a: { sharing: 'profile' } } });
    world.gateway.start();
    const client = world.connect().greet();
    client.request(1, 'tools/list');
    await flush();
    expect(client.answerTo(1)).toBeUndefined();
    world.change({ b: { tools: ['y'], sharing: 'profile' } });
    await world.server('b').start();
    expect(client.answerTo(1)?.result.tools.map(({ name }: Message) => name)).toEqual(['b__y']);
  });
});

describe('settings that need no other process', () => {
  const follow = (server: ScriptedServer, prefix: string, denied: string[] = []) =>
    server.backend.configure({
      prefix,
      policy: (name) => !denied.includes(name),
      limits: { ...server.limits, concurrency: 1 },
    });

  it('hide and rename tools at once', async () => {
    const { server, client, clock } = await running({ a: { tools: ['x', 'z'] } });
    follow(server('a'), '', ['z']);
    expect(toolsFor(client)).toEqual(['x', 'b__y']);
    client.call(1, 'z');
    expect(client.answerTo(1)?.error.message).toContain('Unknown tool');
    clock.advance(200);
    expect(announcements(client)).toEqual(['notifications/tools/list_changed']);
  });

  it('limit the calls that come next', async () => {
    const { server, client } = await running();
    client.call(1, 'a__x');
    client.call(2, 'a__x');
    await flush();
    follow(server('a'), 'a');
    client.call(3, 'a__x');
    client.call(4, 'a__x');
    await flush();
    const { child } = server('a');
    expect(child.calls).toHaveLength(2);
    child.answer(0);
    await flush();
    expect(child.calls).toHaveLength(2);
    child.answer(1);
    await flush();
    expect(child.calls).toHaveLength(3);
  });
});
