import { describe, expect, it } from 'vitest';
import { InMemoryClient } from '../../support/in-memory-client.js';
import { pageOf, scriptGateway, toolOf } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const CHANGED = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };

function lists(child: { received: { messages: { method?: string }[] } }): number {
  return child.received.messages.filter(({ method }) => method === 'tools/list').length;
}

async function running(tools: readonly string[] = ['read']) {
  /** Other answers to lists, by method. */
  const answers: Record<string, Message> = {};
  const world = scriptGateway({ servers: { a: { tools, lists: answers } } });
  const server = world.server('a');
  const child = await server.start();
  const names = () => [...(world.gateway.catalogs.tools.listed.get('a') ?? [])];
  const advance = async (ms: number) => {
    world.clock.advance(ms);
    await flush();
  };
  return { ...world, server, child, answers, names, advance };
}

describe('the tools of a backend', () => {
  it.each(['backoff', 'starting', 'stopping'] as const)('stay while it is in %s', async (state) => {
    const { server, names } = await running();
    server.moved(state);
    expect(names()).toEqual(['a__read']);
  });

  it.each(['parked', 'stopped'] as const)('leave the catalog when it is %s and come back with it', async (state) => {
    const { server, names } = await running();
    server.crash(state);
    expect(names()).toEqual([]);
    await server.start();
    expect(names()).toEqual(['a__read']);
  });

  it('are none for a server that offers none, which is not even asked', async () => {
    const hello = { capabilities: { logging: {} } };
    const { server, gateway } = scriptGateway({ servers: { a: { tools: ['x'], hello } } });
    const child = await server('a').start();
    expect(lists(child)).toBe(0);
    expect(gateway.catalogs.tools.listed.get('a')).toEqual([]);
  });
});

describe('a backend whose tools change', () => {
  it('F37: reads them anew, at most four times a second however often it is told', async () => {
    const { child, answers, advance } = await running();
    const before = lists(child);
    answers['tools/list'] = { tools: [{ name: 'first' }] };
    for (let count = 0; count < 10_000; count += 1) child.say(CHANGED);
    await advance(0);
    expect(lists(child)).toBe(before + 1);
    for (let step = 0; step < 30; step += 1) {
      answers['tools/list'] = { tools: [{ name: `step${step}` }] };
      child.say(CHANGED);
      await advance(100);
    }
    // The first read comes at once, then one each 250 ms of the three seconds.
    expect(lists(child) - before).toBe(1 + 12);
  });

  it('reads them ever more seldom while they do not change, and as before when they do', async () => {
    const { server, child, answers, names, advance } = await running();
    const before = lists(child);
    const readsIn = async (ms: number) => {
      const from = lists(child);
      // The server announces a change whenever it is asked, as some do.
      for (let at = 0; at < ms; at += 250) {
        child.say(CHANGED);
        await advance(250);
      }
      return lists(child) - from;
    };
    expect([await readsIn(60_000), await readsIn(60_000), await readsIn(60_000)]).toEqual([7, 2, 2]);
    expect(server.backend.lists.unchangedReads('tools')).toBe(lists(child) - before);
    answers['tools/list'] = { tools: [{ name: 'other', inputSchema: { type: 'object' } }] };
    for (let ms = 0; ms < 30_000 && names()[0] !== 'a__other'; ms += 250) await readsIn(250);
    expect([names(), server.backend.lists.unchangedReads('tools')]).toEqual([['a__other'], 0]);
    expect(await readsIn(1_000)).toBe(2);
  });

  it('has one read in progress and one more after it', async () => {
    const { child, advance } = await running();
    child.listsTools = false;
    const before = lists(child);
    for (let step = 0; step < 10; step += 1) {
      child.say(CHANGED);
      await advance(2_000);
    }
    expect(lists(child)).toBe(before + 1);
    child.listsTools = true;
    const asked = child.received.messages.findLast(({ method }) => method === 'tools/list');
    child.say(`{"jsonrpc":"2.0","id":${asked?.id},"result":${pageOf(['first'])}}`);
    await advance(0);
    await advance(2_000);
    expect(lists(child)).toBe(before + 2);
    await advance(10_000);
    expect(lists(child)).toBe(before + 2);
  });

  it('tells the gateway, whose list is the new one', async () => {
    const { child, gateway, names, advance } = await running();
    const client = InMemoryClient.open(gateway);
    child.listsTools = false;
    child.say(CHANGED);
    await advance(0);
    child.say({ jsonrpc: '2.0', id: child.received.last.id, result: JSON.parse(pageOf(['write', toolOf('x')])) });
    await advance(0);
    expect(names()).toEqual(['a__write', 'a__x']);
    expect(client.changed).toEqual(['tools']);
  });

  it('F38: tells nobody when the list is the same as before', async () => {
    const { child, gateway, advance } = await running();
    const client = InMemoryClient.open(gateway);
    child.say(CHANGED);
    await advance(0);
    expect(client.changed).toEqual([]);
  });

  it('keeps the last list when the new one cannot be read', async () => {
    const { child, names, advance } = await running();
    child.listsTools = false;
    child.say(CHANGED);
    await advance(0);
    child.say({ jsonrpc: '2.0', id: child.received.last.id, error: { code: -32603, message: 'busy' } });
    await advance(0);
    expect(names()).toEqual(['a__read']);
  });

  it('is heard while its first list is still being read, page by page', async () => {
    const { server, gateway, clock } = scriptGateway({ servers: { a: {} } });
    const a = server('a');
    const started = a.start();
    const { child } = a;
    child.listsTools = false;
    const answer = (page: string) => child.say(`{"jsonrpc":"2.0","id":${child.received.last.id},"result":${page}}`);
    const turn = async (ms: number) => {
      await flush();
      clock.advance(ms);
      await flush();
    };
    await turn(0);
    answer('{"tools":[],"nextCursor":"2"}');
    child.say(CHANGED);
    await turn(0);
    expect(child.received.last).toMatchObject({ method: 'tools/list', params: { cursor: '2' } });
    answer(pageOf(['old']));
    await started;
    expect(gateway.catalogs.tools.listed.get('a')).toEqual(['a__old']);
    await turn(1_000);
    // The first page may have changed, so it is requested again.
    expect(child.received.last).toMatchObject({ method: 'tools/list' });
    expect(child.received.last.params).toBeUndefined();
    answer(pageOf(['new']));
    await turn(0);
    expect(gateway.catalogs.tools.listed.get('a')).toEqual(['a__new']);
  });

  it('is not listened to when it says something else', async () => {
    const { child, advance } = await running();
    const before = lists(child);
    child.say({ jsonrpc: '2.0', method: 'notifications/message', params: {} });
    child.say({ jsonrpc: '2.0', method: 'notifications/resources/list_changed' });
    await advance(5_000);
    expect(lists(child)).toBe(before);
  });
});

describe('a call to a backend', () => {
  it.each(['parked', 'stopped'] as const)('that is %s is answered at once', async (state) => {
    const { server, connect } = await running();
    const client = connect().greet();
    server.crash(state);
    client.call(1, 'a__read');
    expect(client.answerTo(1)?.result._meta['trunkline/failure']).toMatchObject({ reason: state, sent: false });
    expect(server.demands).toBe(state === 'parked' ? 1 : 0);
  });

  it('that can never run is answered at once', () => {
    const { server, connect } = scriptGateway({ servers: { a: { isMisconfigured: true } } });
    const client = connect().greet();
    client.call(1, 'a__read');
    expect(client.answerTo(1)?.result._meta['trunkline/failure']).toMatchObject({
      reason: 'misconfigured',
      sent: false,
    });
    expect(server('a').demands).toBe(0);
  });

  it('waits for the start that it asks for, when that begins at once', async () => {
    const { server, connect } = await running();
    const client = connect().greet();
    server.crash('parked');
    server.moved('starting');
    client.call(1, 'a__read');
    expect(client.answerTo(1)).toBeUndefined();
    const child = await server.start();
    child.answer(0, { content: [{ type: 'text', text: 'x' }] });
    expect(client.answerTo(1)?.result).toEqual({ content: [{ type: 'text', text: 'x' }] });
  });

  it('leaves no timer after it was closed', async () => {
    const { server, child, clock } = await running();
    child.say(CHANGED);
    server.backend.close();
    child.connection.close('stopped');
    expect(clock.pending).toBe(0);
  });
});
