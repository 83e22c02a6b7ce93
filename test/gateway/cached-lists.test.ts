import { describe, expect, it } from 'vitest';
import { readCatalogue, serializeCatalogue } from '../../src/state/catalogue-file.js';
import { createStatusTool } from '../../src/status/status-tools.js';
import type { ListSource } from '../../src/upstream/upstream-connection.js';
import { factsOf, given, READY } from '../status/reporting.js';
import { InMemoryExchange } from '../support/in-memory-client.js';
import { type GatewayScript, offering, scriptGateway, toolOf } from '../support/scripted-gateway.js';
import { bytesOf, flush, type Message, scan } from '../support/wire.js';

const CHANGED = 'notifications/tools/list_changed';

/** Cached catalogue of a server that offered these tools, each as raw JSON or a name. */
function cachedOf(...tools: string[]): ListSource {
  const entries = tools.map((tool) => ({ bytes: bytesOf(tool.startsWith('{') ? tool : toolOf(tool)) }));
  const initializeResult = bytesOf(
    '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"x":{}},"instructions":"As ever."}',
  );
  const cached = readCatalogue(serializeCatalogue({ initializeResult, lists: new Map([['tools', entries]]) }), scan);
  if (typeof cached === 'string') throw new Error(cached);
  return cached;
}

async function secondRun(script: GatewayScript, cached: Readonly<Record<string, ListSource>>) {
  const world = scriptGateway(script);
  const client = world.connect().greet();
  for (const [key, child] of Object.entries(cached))
    expect(await world.server(key).backend.loadCached(child)).toBeUndefined();
  const list = (id: number): string[] | undefined => {
    client.request(id, 'tools/list');
    return client.answerTo(id)?.result.tools.map(({ name }: Message) => name);
  };
  const listChanges = () => client.received.messages.filter(({ method }) => method === CHANGED).length;
  return { ...world, client, list, listChanges };
}

describe('the first list', () => {
  const script = { servers: { late: { tools: ['x'] }, quick: { tools: ['y'] } }, startupWaitMs: 3_000 };
  const namesOf = ({ result }: Message) => result.tools.map(({ name }: Message) => name);

  it('F135: does not wait for a server that was not ready in the last run, but lists it if it is ready now', async () => {
    const { server, connect, list } = await secondRun(script, {});
    server('late').backend.expectLate();
    expect(list(1)).toBeUndefined();
    await server('quick').start();
    expect(list(2)).toEqual(['quick__y']);
    await server('late').start();
    const later = connect().greet();
    later.request(1, 'tools/list');
    expect(namesOf(later.answerTo(1) ?? {})).toEqual(['late__x', 'quick__y']);
  });

  it('is answered when the last server turns out to be one of those', async () => {
    const { server, client, list } = await secondRun(script, {});
    await server('quick').start();
    expect(list(1)).toBeUndefined();
    server('late').backend.expectLate();
    expect(namesOf(client.answerTo(1) ?? {})).toEqual(['quick__y']);
  });

  it('will not wait in the next run for a server that answers initialize and never lists its tools', async () => {
    const { server } = await secondRun(script, {});
    void server('late').start({ listsTools: false });
    await server('quick').start();
    for (const key of ['late', 'quick']) server(key).backend.firstStart.turnedOutSlow();
    expect([server('late').missed, server('quick').missed]).toEqual([1, 0]);
  });

  it('will wait in the next run for a server whose turn to start has not come', async () => {
    const { server, clock } = await secondRun(script, {});
    server('late').moved('starting');
    clock.advance(60_000);
    expect(server('late').missed).toBe(0);
  });

  it('will not wait in the next run for a server that fails after it was shown without it', async () => {
    const { server, clock, list } = await secondRun(script, {});
    server('late').moved('starting');
    list(1);
    clock.advance(3_000);
    server('late').moved('backoff');
    expect(server('late').missed).toBe(1);
  });
});

describe('the order in which servers start', () => {
  it('is: those that nothing is known of, those that were late, those with a cached list', async () => {
    const keys = ['cached', 'late', 'new', 'other'];
    const { server, gateway, started } = scriptGateway({ servers: Object.fromEntries(keys.map((key) => [key, {}])) });
    await server('cached').backend.loadCached(cachedOf('x'));
    server('late').backend.expectLate();
    gateway.start();
    expect(started).toEqual(['new', 'other', 'late', 'cached']);
  });
});

describe('a list from the last run', () => {
  it('is answered at once, before any process is there, and says so in the status', async () => {
    const { list, server } = await secondRun({ servers: { a: { tools: ['x'] } } }, { a: cachedOf('x') });
    expect(list(1)).toEqual(['a__x']);
    expect(server('a').backend.isFromCache).toBe(true);
    server('a').moved('starting');
    expect(list(2)).toEqual(['a__x']);
    await server('a').start();
    expect(server('a').backend.isFromCache).toBe(false);
  });

  it('is waited for no longer than for the servers without a cached catalogue', async () => {
    const script = { servers: { a: { tools: ['x'] }, b: { tools: ['y'] } } };
    const { client, server, list } = await secondRun(script, { a: cachedOf('x') });
    expect(list(1)).toBeUndefined();
    await server('b').start();
    expect(client.answerTo(1)?.result.tools.map(({ name }: Message) => name)).toEqual(['a__x', 'b__y']);
  });

  it('is waited for as if there were none, and used after that, if it was read for another client', async () => {
    const { connect, server, clock } = scriptGateway({
      servers: { a: { tools: ['x', 'new'] } },
      startupWaitMs: 3_000,
    });
    await server('a').backend.loadCached(cachedOf('x'), { isOfOthers: true });
    const client = connect().greet();
    client.request(1, 'tools/list');
    clock.advance(2_999);
    expect(client.answerTo(1)).toBeUndefined();
    clock.advance(1);
    expect(client.answerTo(1)?.result.tools.map(({ name }: Message) => name)).toEqual(['a__x']);
  });

  it('is merged once with those of all servers that show theirs at once, and in the order of the configuration', async () => {
    const keys = ['a', 'b', 'c', 'd'];
    const counts: number[] = [];
    const { connect, server, events } = scriptGateway({
      servers: Object.fromEntries(keys.map((key) => [key, {}])),
    });
    events.subscribe('lists.merged', ({ tools }) => counts.push(tools));
    const client = connect().greet();
    client.request(1, 'tools/list');
    await Promise.all(keys.toReversed().map((key) => server(key).backend.loadCached(cachedOf('x'))));
    expect(counts).toEqual([4]);
    expect(client.answerTo(1)?.result.tools.map(({ name }: Message) => name)).toEqual(keys.map((key) => `${key}__x`));
  });

  it('is followed by one notice if servers offer something else', async () => {
    const script = { servers: { a: { tools: ['x', 'new'] }, b: { tools: ['y', 'newer'] } } };
    const { list, server, clock, listChanges } = await secondRun(script, { a: cachedOf('x'), b: cachedOf('y') });
    list(1);
    await server('a').start();
    await server('b').start();
    clock.advance(60_000);
    expect(listChanges()).toBe(1);
    expect(list(2)).toEqual(['a__x', 'a__new', 'b__y', 'b__newer']);
  });

  it('stays when the server runs and cannot list its tools, and no notice follows', async () => {
    const lists = { 'tools/list': { code: -32603, message: 'no network' } };
    const { list, server, listChanges, clock, client } = await secondRun(
      { servers: { a: { lists } } },
      { a: cachedOf('x') },
    );
    list(1);
    await server('a').start();
    clock.advance(2_000);
    expect([list(2), listChanges()]).toEqual([['a__x'], 0]);
    client.call(3, 'a__x');
    expect(server('a').child.calls.map(({ params }) => params.name)).toEqual(['x']);
    expect(server('a').offered).toBeUndefined();
  });

  it('goes through the same checks and rules as any other', async () => {
    const bad = JSON.stringify({ name: 'bad', inputSchema: { type: 'string' } });
    const script = { servers: { a: { filter: { deny: ['secret*'] } } } };
    const { list, gateway } = await secondRun(script, { a: cachedOf('x', bad, 'secret_one', 'x') });
    expect(list(1)).toEqual(['a__x']);
    const [backend] = gateway.pool.of('a');
    expect(backend?.listsAs('exposed').tools.denied).toEqual(['secret_one']);
    expect(backend?.listsAs('exposed').tools.withheld.map(({ name }) => name)).toEqual(['bad', 'x']);
  });

  it('leaves with its server when that is given up, and a notice says so', async () => {
    const { list, server, clock, listChanges } = await secondRun({ servers: { a: {} } }, { a: cachedOf('x') });
    list(1);
    server('a').moved('starting');
    server('a').moved('backoff');
    expect(list(2)).toEqual(['a__x']);
    server('a').moved('parked');
    clock.advance(1_000);
    expect([list(3), listChanges()]).toEqual([[], 1]);
    expect(server('a').backend.isFromCache).toBe(false);
  });

  it('is not used at all when a part of it cannot be', async () => {
    const { server } = scriptGateway({ servers: { a: {} } });
    const cached = readCatalogue(
      bytesOf(
        '{"format":1,"lists":["tools"]}\n' +
          '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}\n' +
          '{"jsonrpc":"2.0","id":0,"result":{"tools":7}}\n',
      ),
      scan,
    );
    if (typeof cached === 'string') throw new Error(cached);
    expect(await server('a').backend.loadCached(cached)).toBe('tools/list: the result contains no list');
    expect([server('a').backend.hasKnownLists, server('a').backend.isFromCache]).toEqual([false, false]);
  });

  it('comes with what the server said of itself, for clients that come before its process', async () => {
    const { connect } = await secondRun({ servers: { a: {} } }, { a: cachedOf('x') });
    const { instructions, capabilities } = connect().initialize().result;
    expect(instructions).toContain('As ever.');
    expect(capabilities.x).toEqual({});
  });
});

describe('a call of a tool from the last run', () => {
  it('waits for its own server, as long as for an answer', async () => {
    const script = { servers: { a: { tools: ['x'] }, b: { tools: ['y'] } } };
    const { client, server, clock } = await secondRun(script, { a: cachedOf('x'), b: cachedOf('y') });
    server('a').moved('starting');
    client.call(1, 'a__x');
    client.call(2, 'b__y');
    clock.advance(50_000);
    const child = await server('a').start();
    child.answer(0, { content: [{ type: 'text', text: 'x' }] });
    expect(client.answerTo(1)?.result).toEqual({ content: [{ type: 'text', text: 'x' }] });
    expect(client.answerTo(2)).toBeUndefined();
    clock.advance(10_000);
    expect(client.answerTo(2)?.result._meta['trunkline/failure']).toMatchObject({ reason: 'starting', sent: false });
  });
});

describe('a server that no client needs now', () => {
  it('stays listed, and is asked to start by a call, which waits for it', async () => {
    const { client, list, server } = await secondRun({ servers: { a: { tools: ['x'] } } }, { a: cachedOf('x') });
    server('a').moved('idle');
    expect(list(1)).toEqual(['a__x']);
    expect(server('a').demands).toBe(0);
    client.call(2, 'a__x');
    expect(server('a').demands).toBe(1);
    const child = await server('a').start();
    child.answer(0, { content: [{ type: 'text', text: 'x' }] });
    expect(client.answerTo(2)?.result).toEqual({ content: [{ type: 'text', text: 'x' }] });
  });

  it('is asked to start when it has come to rest after a call for it', async () => {
    const { client, server } = await secondRun({ servers: { a: { tools: ['x'] } } }, { a: cachedOf('x') });
    client.call(1, 'a__x');
    expect(server('a').demands).toBe(0);
    server('a').moved('idle');
    expect(server('a').demands).toBe(1);
  });

  it('is not stopped while a client is subscribed to one of its resources', async () => {
    const script = { ...offering({ resources: ['a:///r'] }), idleStopMs: 10_000 };
    const { connect, server, clock } = scriptGateway({ servers: { a: script } });
    const child = await server('a').start();
    const client = connect().greet();
    client.request(1, 'resources/subscribe', { uri: 'a:///r' });
    child.reply('resources/subscribe');
    await flush();
    clock.advance(60_000);
    expect(server('a').rests).toBe(0);
    client.request(2, 'resources/unsubscribe', { uri: 'a:///r' });
    child.reply('resources/unsubscribe');
    await flush();
    clock.advance(30_000);
    expect(server('a').rests).toBe(1);
  });
});

describe('a catalogue for the cache', () => {
  it('is what a process offers when it is ready, and again when that has changed', async () => {
    const { server, clock } = scriptGateway({ servers: { a: { tools: [toolOf('x', { n: 1 })] } } });
    const child = await server('a').start();
    const names = () => server('a').offered?.lists.get('tools')?.length;
    expect([names(), [...(server('a').offered?.lists.keys() ?? [])]]).toEqual([1, ['tools']]);
    child.listsTools = false;
    child.say({ jsonrpc: '2.0', method: CHANGED });
    clock.advance(1_000);
    child.reply('tools/list', { tools: [JSON.parse(toolOf('x')), JSON.parse(toolOf('y'))] });
    await flush();
    expect(names()).toBe(2);
  });
});

describe('the status of a server', () => {
  it.each([
    ['starting', 'calls wait until it is ready'],
    ['idle', 'A call of one of its tools starts it'],
  ] as const)('that is %s, listed from the last run, says so', async (state, advice) => {
    const { gateway, server } = scriptGateway({ servers: { a: {} } });
    await server('a').backend.loadCached(cachedOf('x'));
    server('a').moved(state);
    const { backend } = server('a');
    const { make } = await given();
    const servers = [factsOf(backend, { ...READY, state, pid: undefined, generation: 0, readySince: undefined })];
    const tool = createStatusTool(() => ({ ...make(), catalogs: gateway.catalogs, servers }));
    const result = (await tool.call(
      { server: 'a' },
      { backends: new Map([['a', backend]]), catalogs: gateway.catalogs },
      new InMemoryExchange(),
    )) as Message;
    expect(result.content[0].text).toContain('lists: those of the last run, until the server sends its own');
    expect(result.content[0].text).toContain(advice);
    expect(result.structuredContent.servers[0]).toMatchObject({ state, fromLastRun: true });
  });
});
