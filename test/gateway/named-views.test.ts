import { describe, expect, it } from 'vitest';
import type { NamedViewsOptions } from '../../src/gateway/catalog/tool-policy.js';
import { offering, type ServerScript, scriptGateway, startGateway, type Who } from '../support/scripted-gateway.js';
import { flush } from '../support/wire.js';

const VIEWS: NamedViewsOptions = {
  views: [
    { name: 'work', servers: ['a', 'c'] },
    { name: 'reading', servers: ['a', 'b'], tools: { allow: ['*__read*', 'b__*'], deny: ['b__delete'] } },
  ],
  clients: [
    { client: 'cursor*', view: 'reading' },
    { client: 'cursor-vscode', view: 'work' },
  ],
};

const everything = (key: string): ServerScript => ({
  ...offering({
    prompts: [`${key}-prompt`],
    resources: [`${key}://1`],
    templates: [`${key}://{id}`],
    capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {}, logging: {} },
  }),
  tools: ['read', 'write', 'delete'],
});
const SERVERS = { a: everything('a'), b: everything('b'), c: everything('c') };

/** A client of a gateway with views, and its requests. */
async function viewing(who: Who, { name = 't', servers = SERVERS as Readonly<Record<string, ServerScript>> } = {}) {
  const world = await startGateway({ servers, views: VIEWS });
  const client = world.connect(who);
  const hello = client.initialize('2025-11-25', {}, name);
  let id = 0;
  const ask = async (method: string, params?: unknown) => {
    id += 1;
    client.request(id, method, params);
    await flush();
    return client.answerTo(id);
  };
  const tools = async () => (await ask('tools/list'))?.result.tools.map((tool: { name: string }) => tool.name);
  const asked = (key: string, method: string) => world.server(key).child.asked(method).length;
  return { ...world, client, hello, ask, tools, asked };
}

const OF = (key: string) => ['read', 'write', 'delete'].map((name) => `${key}__${name}`);

describe('a client with a view', () => {
  it('sees the tools, prompts, resources and templates of its servers, and no others', async () => {
    const { ask, tools } = await viewing({ view: 'work' });
    expect(await tools()).toEqual([...OF('a'), ...OF('c')]);
    const names = async (method: string, list: string, member: string) =>
      (await ask(method))?.result[list].map((entry: Record<string, string>) => entry[member]);
    expect(await names('prompts/list', 'prompts', 'name')).toEqual(['a__a-prompt', 'c__c-prompt']);
    expect(await names('resources/list', 'resources', 'uri')).toEqual(['a://1', 'c://1']);
    expect(await names('resources/templates/list', 'resourceTemplates', 'uriTemplate')).toEqual([
      'a://{id}',
      'c://{id}',
    ]);
  });

  it.each([
    ['tools/call', { name: 'b__read' }],
    ['tools/call', { name: 'b__unlisted' }],
    ['prompts/get', { name: 'b__b-prompt' }],
    ['prompts/get', { name: 'b-prompt' }],
    ['resources/subscribe', { uri: 'b://1' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'b__b-prompt' }, argument: { name: 'x', value: '' } }],
    ['resources/read', { uri: 'b://1' }],
    ['x/unknown', {}],
  ])('cannot reach another server by %s', async (method, params) => {
    const { ask, asked } = await viewing({ view: 'work' });
    void ask(method, params);
    await flush();
    expect(asked('b', method)).toBe(0);
  });

  it('gets no message of another server', async () => {
    const { server, client } = await viewing({ view: 'work' });
    client.received.take();
    const says = (key: string) =>
      server(key).child.say({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: key } });
    says('b');
    says('a');
    await flush();
    expect(client.received.take().map(({ params }) => params.data)).toEqual(['a']);
  });

  it('sees and calls the tools that its rules show, whatever name it uses', async () => {
    const { ask, tools, asked } = await viewing({ view: 'reading' });
    expect(await tools()).toEqual(['a__read', 'b__read', 'b__write']);
    for (const name of ['a__write', 'b__delete', 'a__unlisted', 'delete'])
      expect((await ask('tools/call', { name }))?.error).toMatchObject({ code: -32602 });
    expect(asked('a', 'tools/call') + asked('b', 'tools/call')).toBe(0);
    void ask('tools/call', { name: 'b__unlisted' });
    await flush();
    expect(asked('b', 'tools/call')).toBe(1);
  });

  it('cannot call a tool by the name that it had before the configuration renamed it', async () => {
    const servers = {
      a: { tools: ['read'], shapes: { rename: { read: 'peek' } } },
      b: { tools: ['remove'], shapes: { rename: { remove: 'delete' } } },
    };
    const { ask, tools, asked } = await viewing({ view: 'reading' }, { servers });
    expect(await tools()).toEqual(['a__peek']);
    await ask('tools/call', { name: 'b__remove' });
    await ask('tools/call', { name: 'remove' });
    expect(asked('b', 'tools/call')).toBe(0);
  });

  it('is told of the tools of its view in the instructions', async () => {
    const { hello } = await viewing({ view: 'reading' });
    expect(hello.result.instructions).toContain('- a: tools read\n- b: tools read, write');
  });

  it('shares the processes with clients of other views, and nothing else', async () => {
    const { connect, ask, server, ids } = await viewing({ view: 'work' });
    const other = connect().greet();
    other.request(1, 'tools/list');
    expect(other.answerTo(1)?.result.tools).toHaveLength(9);
    expect((await ask('tools/list'))?.result.tools).toHaveLength(6);
    expect(server('b').backend.clients.size).toBe(1);
    expect(ids()).toEqual(['a', 'b', 'c']);
  });
});

describe('the view of a client', () => {
  it.each([
    ['that it asks for', { view: 'work' }, 'cursor', 6],
    ['that the configuration has for its name: the first that matches', {}, 'cursor-vscode', 3],
    ['that it asks for: everything', { view: '' }, 'cursor', 9],
    ['is everything for other names', {}, 'claude', 9],
    ['is no view for a client of one server', { server: 'c' }, 'cursor', undefined],
  ])('is the one %s', async (_, who: Who, name, count) => {
    const { tools, gateway } = await viewing(who, { name });
    if (count === undefined) expect(gateway.isReady).toBe(true);
    else expect(await tools()).toHaveLength(count);
  });

  it('F130: shows nothing if the configuration does not have it, and says so', async () => {
    const { tools, hello } = await viewing({ view: 'wrok' });
    expect(await tools()).toEqual([]);
    expect(hello.result.instructions).toContain(
      'The configuration has no view "wrok", so this client sees no servers. Did you mean `work`? It has these views: work, reading.',
    );
  });

  it('is told with the events, so that the log has it', async () => {
    const world = scriptGateway({ servers: SERVERS, views: VIEWS });
    const told: unknown[] = [];
    world.events.subscribe('client.connected', ({ view, fault }) => told.push([view, fault !== undefined]));
    world.connect({ view: 'work' }).initialize();
    world.connect({ view: 'none' }).initialize();
    world.connect().initialize();
    expect(told).toEqual([
      ['work', false],
      ['none', true],
      [undefined, false],
    ]);
  });

  it('follows the configuration, and stays the same view', async () => {
    const { change, tools, server, client, clock, ask } = await viewing({ view: 'work' });
    await tools();
    await ask('resources/subscribe', { uri: 'a://1' });
    client.received.take();
    change(SERVERS, [], { views: { ...VIEWS, views: [{ name: 'work', servers: ['b'] }] } });
    expect(await tools()).toEqual(OF('b'));
    expect([...server('a').backend.clients, ...server('c').backend.clients]).toEqual([]);
    clock.advance(1_000);
    expect(client.received.take().map(({ method }) => method)).toContain('notifications/tools/list_changed');
    expect(client.isGone).toBe(false);
  });

  it('gives time to the calls on a process of the client’s own that it does not show any longer', async () => {
    const servers = { ...SERVERS, a: { ...SERVERS.a, sharing: 'isolated' as const } };
    const { change, server, client } = await viewing({ view: 'work' }, { servers });
    client.call('c', 'a__read');
    change(servers, [], { views: { ...VIEWS, views: [{ name: 'work', servers: ['b'] }] } });
    await flush();
    expect(server('a').isEnded).toBe(false);
    server('a').child.answer(0);
    await flush();
    expect(client.answerTo('c')?.result).toEqual({ content: [] });
    expect(server('a').isEnded).toBe(true);
  });

  it('F130: shows nothing any more when it leaves the configuration, and its session ends', async () => {
    const { change, tools, client } = await viewing({ view: 'work' });
    change(SERVERS, [], { views: { views: [], clients: [] } });
    expect(await tools()).toEqual([]);
    expect(client.isGone).toBe(true);
  });

  it('announces nothing when another setting changes', async () => {
    const views = { ...VIEWS };
    const { change, tools, client, clock } = await viewing({ view: 'work' });
    change(SERVERS, [], { views });
    await tools();
    client.received.take();
    change(SERVERS, [], { views, startupWaitMs: 5 });
    clock.advance(1_000);
    expect(client.received.take()).toEqual([]);
  });
});
