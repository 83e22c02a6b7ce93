import { describe, expect, it } from 'vitest';
import { type ServerScript, scriptGateway } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const UNREADABLE = { code: -32603, message: 'no network' };
const WORDS = `answered ${JSON.stringify(UNREADABLE)}`;
const ALL = { tools: {}, prompts: {}, resources: {} };
const LISTS = {
  'prompts/list': { prompts: [{ name: 'p' }] },
  'resources/list': { resources: [{ uri: 'x://1', name: 'x' }] },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'x://{id}', name: 'x' }] },
};

/** A server "a" whose lists are read again when the test says so. Change `lists` to change its answers. */
async function serving(failing: Message, script: ServerScript = {}) {
  const lists: Message = { ...LISTS, ...failing };
  const world = scriptGateway({ servers: { a: { tools: ['read'], hello: { capabilities: ALL }, ...script, lists } } });
  const server = world.server('a');
  const client = world.connect().greet();
  await server.start();
  const pass = async (ms: number) => {
    world.clock.advance(ms);
    await flush();
  };
  const reads = (method = 'tools/list') => server.child.asked(method).length;
  const listed = (kind: 'tools' | 'prompts' | 'resources' | 'templates' = 'tools') => [
    ...(world.gateway.catalogs[kind].listed.get('a') ?? []),
  ];
  const failures = () => server.backend.listFailures.map(({ reason }) => reason);
  return { ...world, server, client, lists, pass, reads, listed, failures };
}

describe('a server whose tools cannot be listed', () => {
  it('F59: is up, and gets calls of names under its prefix', async () => {
    const { server, client, listed, failures } = await serving({ 'tools/list': UNREADABLE });
    expect(server.backend.dispatcher.availability.state).toBe('ready');
    expect([listed(), failures()]).toEqual([[], [`tools/list: ${WORDS}`]]);
    client.call(1, 'a__anything');
    expect(server.child.calls.map(({ params }) => params.name)).toEqual(['anything']);
    server.child.answer(0, { content: [] });
    expect(client.answerTo(1)?.result).toEqual({ content: [] });
  });

  it('gets no call of a tool that the configuration denies', async () => {
    const { server, client } = await serving({ 'tools/list': UNREADABLE }, { filter: { deny: ['secret*'] } });
    client.call(1, 'a__secret_one');
    expect(client.answerTo(1)?.error).toEqual({ code: -32602, message: 'Unknown tool: a__secret_one' });
    expect(server.child.calls).toEqual([]);
  });

  it('gets unlisted names if it is the only one without a prefix', async () => {
    const { server, client, lists, pass } = await serving({ 'tools/list': UNREADABLE }, { prefix: '' });
    client.call(1, 'anything');
    expect(server.child.calls.map(({ params }) => params.name)).toEqual(['anything']);
    client.request(2, 'prompts/get', { name: 'anything' });
    expect(client.answerTo(2)?.error).toMatchObject({ code: -32602 });
    delete lists['tools/list'];
    await pass(1_000);
    client.call(3, 'anything');
    expect(client.answerTo(3)?.error).toMatchObject({ code: -32602 });
  });

  it('keeps those that an earlier process listed, and other lists are read', async () => {
    const { server, lists, listed, failures } = await serving({});
    server.crash();
    lists['tools/list'] = UNREADABLE;
    lists['prompts/list'] = { prompts: [{ name: 'q' }] };
    await server.start();
    expect([listed(), listed('prompts'), failures()]).toEqual([['a__read'], ['a__q'], [`tools/list: ${WORDS}`]]);
  });

  it('is not written to the cache before all its lists are read', async () => {
    const { server, lists, pass } = await serving({ 'tools/list': UNREADABLE });
    expect(server.offered).toBeUndefined();
    delete lists['tools/list'];
    await pass(1_000);
    expect([...(server.offered?.lists.keys() ?? [])].sort()).toEqual(['prompts', 'resources', 'templates', 'tools']);
  });

  it('is asked again after pauses that double from 1 s to 5 min', async () => {
    const { pass, reads } = await serving({ 'tools/list': UNREADABLE });
    for (const pauseS of [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]) {
      const before = reads();
      await pass(pauseS * 1_000 - 1);
      expect(reads()).toBe(before);
      await pass(1);
      expect(reads()).toBe(before + 1);
    }
    expect(reads('prompts/list')).toBe(1);
  });

  it('shows them when they can be listed, and its clients are told', async () => {
    const { client, lists, listed, failures, pass, reads } = await serving({ 'tools/list': UNREADABLE });
    client.request(1, 'tools/list');
    client.received.take();
    delete lists['tools/list'];
    await pass(1_000);
    expect([listed(), failures()]).toEqual([['a__read'], []]);
    await pass(600_000);
    expect(client.received.messages.map(({ method }) => method)).toEqual(['notifications/tools/list_changed']);
    expect(reads()).toBe(2);
  });

  it('is asked again when it is called, but not within 5 s of the last time', async () => {
    const { client, pass, reads } = await serving({ 'tools/list': UNREADABLE });
    await pass(1_000);
    await pass(2_000);
    await pass(4_000);
    await pass(4_999);
    expect(reads()).toBe(4);
    client.call(1, 'a__x');
    await pass(0);
    expect(reads()).toBe(4);
    await pass(1);
    client.call(2, 'a__x');
    client.call(3, 'a__x');
    await pass(0);
    expect(reads()).toBe(5);
  });

  it('is asked again when it announces a change', async () => {
    const { server, lists, listed, pass } = await serving({ 'tools/list': UNREADABLE });
    delete lists['tools/list'];
    server.child.say({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    await pass(0);
    expect(listed()).toEqual(['a__read']);
  });

  it('is not asked while it does not run, and soon after it runs again', async () => {
    const { server, pass, reads } = await serving({ 'tools/list': UNREADABLE });
    for (const pauseMs of [1_000, 2_000, 4_000]) await pass(pauseMs);
    const { child } = server;
    server.crash();
    expect(server.backend.listFailures).toEqual([]);
    await pass(600_000);
    expect(child.asked('tools/list')).toHaveLength(4);
    await server.start();
    await pass(1_000);
    expect(reads()).toBe(2);
  });

  it('is ready when the time for the list is over, with the other lists', async () => {
    const world = scriptGateway({ servers: { a: { hello: { capabilities: ALL }, lists: LISTS } } });
    const a = world.server('a');
    const started = a.start();
    a.child.listsTools = false;
    await flush();
    world.clock.advance(30_000);
    await flush();
    world.clock.advance(1_000);
    await started;
    expect(a.backend.listFailures.map(({ reason }) => reason)).toEqual(['tools/list: timeout']);
    expect(world.gateway.catalogs.prompts.listed.get('a')).toEqual(['a__p']);
  });

  it('is asked again at most once a minute if its answer is too large, because three of them restart it', async () => {
    const world = scriptGateway({ servers: { a: { hasBridge: true } } });
    const a = world.server('a');
    const started = a.start();
    const { child } = a;
    child.listsTools = false;
    const answer = () =>
      child.say({ jsonrpc: '2.0', id: child.received.last.id, result: { tools: ['x'.repeat(1024 * 1024)] } });
    const pass = async (ms: number) => {
      await flush();
      world.clock.advance(ms);
      await flush();
    };
    await flush();
    answer();
    await started;
    expect(a.backend.listFailures.map(({ reason }) => reason)).toEqual(['tools/list: response_too_large']);
    const client = world.connect().greet();
    await pass(59_999);
    client.call(1, 'a__x');
    await pass(0);
    expect(child.asked('tools/list')).toHaveLength(1);
    await pass(1);
    expect(child.asked('tools/list')).toHaveLength(2);
  });

  it('leaves no timer after it was closed', async () => {
    const { server, clock } = await serving({ 'tools/list': UNREADABLE });
    server.backend.close();
    server.child.connection.close('stopped');
    expect(clock.pending).toBe(0);
  });
});

describe('a list other than that of tools', () => {
  it.each([
    ['prompts', 'prompts/list'],
    ['resources', 'resources/list'],
    ['templates', 'resources/templates/list'],
  ] as const)('of %s that cannot be read concerns no other list', async (kind, method) => {
    const { listed, failures } = await serving({ [method]: UNREADABLE });
    expect(failures()).toEqual([`${method}: ${WORDS}`]);
    const kinds = ['tools', 'prompts', 'resources', 'templates'] as const;
    expect(kinds.filter((one) => listed(one).length === 0)).toEqual([kind]);
  });

  it('that is no list is one that cannot be read', async () => {
    const { failures } = await serving({
      'prompts/list': { prompts: 7 },
      'resources/list': {},
      'resources/templates/list': { resources: [] },
    });
    expect(failures()).toEqual([
      'prompts/list: the result contains no list',
      'resources/list: the result contains no list',
      'resources/templates/list: the result contains no list',
    ]);
  });

  it('is not asked for when the server does not offer such things', async () => {
    const { server, reads, listed } = await serving({}, { hello: {} });
    expect(['prompts/list', 'resources/list', 'resources/templates/list'].map(reads)).toEqual([0, 0, 0]);
    expect([listed('prompts'), server.backend.listFailures]).toEqual([[], []]);
  });

  it('that takes long delays the server by a second, and is shown when it is there', async () => {
    const { 'prompts/list': prompts, ...others } = LISTS;
    const world = scriptGateway({
      servers: { a: { tools: ['read'], hello: { capabilities: ALL }, lists: others } },
    });
    const a = world.server('a');
    const started = a.start();
    await flush();
    world.clock.advance(1_000);
    await started;
    expect(world.gateway.catalogs.prompts.listed.get('a')).toEqual([]);
    a.child.reply('prompts/list', prompts);
    await flush();
    expect(world.gateway.catalogs.prompts.listed.get('a')).toEqual(['a__p']);
    expect(a.backend.listFailures).toEqual([]);
  });

  it('that fails after the server is ready is asked for again', async () => {
    const { 'prompts/list': prompts, ...others } = LISTS;
    const lists: Message = { ...others };
    const world = scriptGateway({ servers: { a: { hello: { capabilities: ALL }, lists } } });
    const a = world.server('a');
    const started = a.start();
    await flush();
    world.clock.advance(1_000);
    await started;
    a.child.reply('prompts/list', UNREADABLE);
    await flush();
    lists['prompts/list'] = prompts;
    world.clock.advance(1_000);
    await flush();
    expect(world.gateway.catalogs.prompts.listed.get('a')).toEqual(['a__p']);
  });
});
