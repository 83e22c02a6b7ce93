import { describe, expect, it } from 'vitest';
import type { Sharing } from '../../src/gateway/registry/server-instances.js';
import { createOwnTool, textResult } from '../../src/gateway/routing/own-tool.js';
import { type ServerScript, scriptGateway, startGateway, toolOf } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const OWN = createOwnTool({ name: 'trunkline__x', inputSchema: { type: 'object' } }, () => textResult('x'));

const HELLO = {
  capabilities: { tools: { listChanged: false }, 'x/y': {} },
  serverInfo: { name: 'itself', version: '7', unknown: 1 },
  instructions: 'Use me.',
};

/** Two servers. Clients see only the first one. */
function looking(sharing: Sharing = 'profile', hello: Message = HELLO, script: ServerScript = {}) {
  const world = scriptGateway({
    servers: {
      a: {
        tools: [toolOf('read file', { execution: { taskSupport: 'optional' } }), 'hidden'],
        sharing,
        hello,
        filter: { deny: ['hidden'] },
        ...script,
      },
      b: { tools: ['x'] },
    },
    ownTools: [OWN],
    startupWaitMs: 5_000,
  });
  const client = () => world.connect({ server: 'a' });
  const hi = (protocolVersion = '2025-11-25') => ({ protocolVersion, capabilities: {}, clientInfo: { name: 't' } });
  return { ...world, client, hi };
}

/** A client that sees only the server, and has begun its session. */
async function seeing(hello: Message = HELLO) {
  const world = looking('profile', hello);
  await world.startAll();
  const one = world.client();
  one.initialize();
  await flush();
  one.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
  one.received.take();
  return { ...world, one, child: world.server('a').child };
}

describe('a client that wants to see one server as it is', () => {
  it('gets the initialize result of the server, once it runs, in the words of the server', async () => {
    const { client, server, hi } = looking();
    const one = client();
    one.request(1, 'initialize', hi());
    await flush();
    expect(one.answerTo(1)).toBeUndefined();
    await server('a').start();
    await flush();
    expect(one.answerTo(1)?.result).toEqual({ protocolVersion: '2025-11-25', ...HELLO });
    expect(one.session.revision).toBe('2025-11-25');
  });

  it('F208: gets the initialize result of the process that replaces the one it waits for', async () => {
    const { client, server, hi, change } = looking();
    const one = client();
    one.request(1, 'initialize', hi());
    change({ a: { tools: ['x'], sharing: 'profile', hello: HELLO } }, ['a']);
    await flush();
    expect(one.answerTo(1)).toBeUndefined();
    await server('a~2').start();
    await flush();
    expect(one.answerTo(1)?.result).toEqual({ protocolVersion: '2025-11-25', ...HELLO });
  });

  it('sees its names, without those that the configuration hides and without ours', async () => {
    const { client, startAll, hi } = looking();
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi());
    await flush();
    one.request(2, 'tools/list');
    expect(one.answerTo(2)?.result.tools).toEqual([
      { name: 'read file', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } },
    ]);
  });

  it.each([
    ['tools/call', {}],
    ['tools/call', { name: null }],
    ['tools/call', { name: 7 }],
    ['tools/call', { name: ['hidden'] }],
    ['tools/call', { name: { hidden: 1 } }],
    ['tools/call', '{"name":"x","name":"hidden"}'],
    ['tools/call', ['hidden', {}]],
    ['prompts/get', { name: ['x'] }],
    ['resources/read', { uri: ['x:y'] }],
    ['resources/subscribe', { uri: 7 }],
    ['resources/unsubscribe', {}],
    ['completion/complete', { ref: { type: 'ref/prompt', name: ['x'] }, argument: {} }],
    ['completion/complete', { ref: { type: 'ref/resource', uri: 7 }, argument: {} }],
  ])(
    'sends no %s with %j, because the policy cannot judge it, and neither does any other endpoint',
    async (method, params) => {
      const views = { views: [{ name: 'v', servers: ['a'] }], clients: [] };
      const world = await startGateway({
        servers: { a: { tools: ['x', 'hidden'], filter: { deny: ['hidden'] } } },
        views,
      });
      for (const who of [{ server: 'a' }, { view: 'v' }, {}]) {
        const client = world.connect(who);
        client.initialize();
        await flush();
        const text = typeof params === 'string' ? params : JSON.stringify(params);
        client.say(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${text}}`);
        await flush();
        expect(client.answerTo(1)?.error.code, JSON.stringify(who)).toBe(typeof params === 'string' ? -32600 : -32602);
      }
      expect(world.server('a').child.asked(method)).toEqual([]);
    },
  );

  it('calls its tools by these names, listed or not, and none of another server or of ours', async () => {
    const { client, startAll, server, hi } = looking();
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi());
    await flush();
    for (const [id, name] of ['read file', 'unlisted', 'trunkline__x'].entries()) one.call(`c${id}`, name);
    expect(server('a').child.calls.map(({ params }) => params.name)).toEqual(['read file', 'unlisted', 'trunkline__x']);
    for (const name of ['hidden', 'HIDDEN', 'Read file', 'hidden\0x', 'b__x']) one.call(name, name);
    for (const name of ['hidden', 'HIDDEN', 'Read file', 'hidden\0x'])
      expect(one.answerTo(name)?.error.code).toBe(-32602);
    expect(server('a').child.calls.at(-1)?.params.name).toBe('b__x');
    expect(server('b').child.calls).toEqual([]);
  });

  it('shares its process with clients of all servers that look the same', async () => {
    const { client, connect, startAll, server, ids, hi } = looking();
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi());
    const other = connect();
    other.request(1, 'initialize', hi());
    await flush();
    one.call(2, 'read file');
    other.call(2, 'a__read_file');
    expect(server('a').backend.clients.size).toBe(2);
    expect(ids()).toEqual(['a', 'b']);
  });

  it('is told why when the server does not start in time, and may try again', async () => {
    const { client, server, clock, hi } = looking();
    const one = client();
    server('a').moved('starting');
    one.request(1, 'initialize', hi());
    clock.advance(30_000);
    await flush();
    expect(one.answerTo(1)?.error).toMatchObject({ code: -32603, message: expect.stringContaining('starting') });
    expect(server('a').backend.clients.size).toBe(0);
    one.request(2, 'tools/list');
    expect(one.answerTo(2)?.error.message).toContain('initialize');
    one.request(3, 'initialize', hi());
    await server('a').start();
    await flush();
    expect(one.answerTo(3)?.result.serverInfo.name).toBe('itself');
    expect(server('a').backend.clients.size).toBe(1);
  });

  it.each(['parked', 'stopped'] as const)('is told at once when the server is %s, and why', async (state) => {
    const script = { failureCause: 'Its last start failed: no protocol version.', retryInMs: () => 9_000 };
    const { client, server, hi } = looking('profile', HELLO, script);
    const one = client();
    one.request(1, 'initialize', hi());
    server('a').moved(state);
    await flush();
    expect(one.answerTo(1)?.error.code).toBe(-32603);
    if (state === 'parked')
      expect(one.answerTo(1)?.error.message).toMatch(/no protocol version\. The call was not sent.*Try again in 9 s\./);
  });

  it('may leave while it waits, and leaves nothing behind', async () => {
    const { client, server, clock, gateway, hi } = looking('isolated');
    const one = client();
    one.request(1, 'initialize', hi());
    one.session.close();
    expect(server('a').isEnded).toBe(true);
    clock.advance(60_000);
    await flush();
    expect(one.received.lines).toEqual([]);
    expect(gateway.pool.of('a')).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('is told when the gateway closes while it waits', async () => {
    const { client, gateway, hi } = looking();
    const one = client();
    one.request(1, 'initialize', hi());
    gateway.close();
    await flush();
    expect(one.answerTo(1)?.error.message).toContain('stopped');
  });

  it('gets the revision that it speaks, where the server was told of a newer one for the sake of others', async () => {
    const { client, startAll, hi } = looking('all');
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi('2025-06-18'));
    await flush();
    expect(one.answerTo(1)?.result).toEqual({ protocolVersion: '2025-06-18', ...HELLO });
    expect(one.session.revision).toBe('2025-06-18');
  });

  it('gets the revision of the server when that is older', async () => {
    const { client, startAll, hi } = looking('profile', { ...HELLO, protocolVersion: '2024-11-05' });
    await startAll();
    const one = client();
    one.request(1, 'initialize', hi());
    await flush();
    expect(one.answerTo(1)?.result.protocolVersion).toBe('2024-11-05');
    expect(one.session.revision).toBe('2024-11-05');
  });
});

describe('a client that wants to see one server as it is, and asks for', () => {
  it.each([
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: 'b' } }],
    ['completion/complete', {}],
    ['prompts/get', { name: 'unlisted', unknown: [1] }],
    ['resources/read', { uri: 'x://unlisted', unknown: [1] }],
    ['resources/list', { cursor: 'mine', _meta: { a: 1 } }],
    ['logging/setLevel', { level: 'loud' }],
    ['unheard/of', { any: true }],
  ])('%s with %j, gets the error of the server', async (method, params) => {
    const { one, child } = await seeing();
    one.request(1, method, params);
    expect(child.asked(method).at(-1)?.params).toEqual(params);
    const error = { code: -32_001, message: 'Not here', data: { why: [method] } };
    child.reply(method, error);
    expect(one.answerTo(1)?.error).toEqual(error);
  });

  it('a list, gets it while as many calls as the server may have at once are in flight', async () => {
    const { one, child } = await seeing();
    for (let id = 100; id < 120; id += 1) one.call(id, 'read file');
    expect(child.calls.length).toBeLessThan(20);
    one.request(1, 'tools/list');
    expect(one.answerTo(1)?.result.tools).toHaveLength(1);
  });

  it('tools, gets them without keys that it could take for the name of another one', async () => {
    const { one, child } = await seeing();
    child.listsTools = false;
    one.request(1, 'tools/list');
    child.reply('tools/list', {
      tools: [{ name: 'x', Name: 'hidden', InputSchema: {}, inputSchema: { type: 'object' } }],
    });
    expect(one.answerTo(1)?.result).toEqual({ tools: [{ name: 'x', inputSchema: { type: 'object' } }] });
  });

  it('tools, gets those that the server lists now, without those that the configuration hides', async () => {
    const { one, child } = await seeing();
    child.listsTools = false;
    const list = (id: number, tools: string) => {
      one.request(id, 'tools/list');
      child.say(
        `{"jsonrpc":"2.0","id":${child.asked('tools/list').at(-1)?.id},"result":{ "tools": [${tools}] , "x":1}}`,
      );
      return one.received.lines.splice(0).at(-1);
    };
    expect(list(1, '{"name":"new" }, {"no":"name"}')).toBe(
      '{"jsonrpc":"2.0","id":1,"result":{ "tools": [{"name":"new" }, {"no":"name"}] , "x":1}}',
    );
    expect(list(2, '{"name":"hidden"},{"name":"a" }, {"name":"b"}')).toBe(
      '{"jsonrpc":"2.0","id":2,"result":{ "tools": [{"name":"a" },{"name":"b"}] , "x":1}}',
    );
    expect(list(3, '{"name":"hidden"}')).toBe('{"jsonrpc":"2.0","id":3,"result":{ "tools": [] , "x":1}}');
  });

  it('log messages from a level on, gets what the server answers and from then on no others', async () => {
    const { one, child } = await seeing({ ...HELLO, capabilities: { logging: {} } });
    const log = (level: string) =>
      child.say({ jsonrpc: '2.0', method: 'notifications/message', params: { level, data: 1 } });
    const levels = () => one.received.take().flatMap(({ params }) => params?.level ?? []);
    log('debug');
    expect(levels()).toEqual(['debug']);
    one.request(1, 'logging/setLevel', { level: 'error' });
    expect(child.asked('logging/setLevel').map(({ params }) => params)).toEqual([{ level: 'error' }]);
    log('debug');
    child.reply('logging/setLevel', { _meta: { ok: true } });
    expect(one.answerTo(1)?.result).toEqual({ _meta: { ok: true } });
    await flush();
    log('debug');
    log('error');
    expect(levels()).toEqual(['debug', 'error']);
  });

  it('log messages from a level on, leaves the server as verbose as its other clients need it', async () => {
    const { one, child, client } = await seeing({ ...HELLO, capabilities: { logging: {} } });
    const other = client();
    other.initialize();
    await flush();
    one.request(1, 'logging/setLevel', { level: 'error' });
    child.reply('logging/setLevel');
    await flush();
    other.request(1, 'logging/setLevel', { level: 'warning' });
    child.reply('logging/setLevel');
    await flush();
    one.request(2, 'logging/setLevel', { level: 'emergency' });
    expect(child.asked('logging/setLevel').map(({ params }) => params.level)).toEqual(['debug', 'warning', 'warning']);
  });
});

describe('a client that sees one server as it is', () => {
  const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"n":1}}}';

  it('F38: hears at once that a list has changed, in the words of the server, whether it has listed or not', async () => {
    const { one, child, clock } = await seeing();
    child.say(CHANGED);
    clock.advance(0);
    expect(one.received.lines.splice(0)).toEqual([CHANGED]);
    await flush();
    clock.advance(10_000);
    expect(one.received.lines.splice(0)).toEqual([]);
  });

  it('hears once that a list has changed when the new list differs', async () => {
    const { one, child, clock } = await seeing();
    one.request(1, 'tools/list');
    child.listsTools = false;
    child.say(CHANGED);
    clock.advance(0);
    child.reply('tools/list', { tools: [{ name: 'another', inputSchema: { type: 'object' } }] });
    await flush();
    clock.advance(10_000);
    await flush();
    expect(one.received.lines.filter((line) => line.includes('list_changed'))).toEqual([CHANGED]);
  });

  it('hears once of a change that concerns two lists, although they are read one by one', async () => {
    const lists: Record<string, Message> = {
      'resources/list': { resources: [] },
      'resources/templates/list': { resourceTemplates: [] },
    };
    const hello = { ...HELLO, capabilities: { resources: { listChanged: true } } };
    const { connect, server, clock } = await startGateway({ servers: { a: { hello, lists } } });
    const one = connect({ server: 'a' }).greet();
    await flush();
    for (const [at, method] of Object.keys(lists).entries()) one.request(at + 1, method);
    await flush();
    lists['resources/list'] = { resources: [{ uri: 'a:///new', name: 'new' }] };
    lists['resources/templates/list'] = { resourceTemplates: [{ uriTemplate: 'b:///{new}', name: 'new' }] };
    one.received.take();
    const changed = '{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}';
    server('a').child.say(changed);
    clock.advance(0);
    await flush();
    clock.advance(10_000);
    await flush();
    expect(one.received.lines.filter((line) => line.includes('list_changed'))).toEqual([changed]);
  });

  it('hears of many changes four times a second at most', async () => {
    const { one, child, clock } = await seeing();
    for (let step = 0; step < 100; step += 1) {
      child.say(CHANGED);
      clock.advance(10);
      await flush();
    }
    clock.advance(1_000);
    expect(one.received.lines.filter((line) => line.includes('list_changed'))).toHaveLength(1 + 4);
  });

  it('begins its session when the server has shaken hands, before the lists are read', async () => {
    const { client, server } = looking('profile', HELLO, { isTrusted: true });
    const one = client();
    one.request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't' } });
    const starting = server('a').start({ listsTools: false });
    await flush();
    expect(one.answerTo(1)?.result.serverInfo).toEqual(HELLO.serverInfo);
    one.say({ jsonrpc: '2.0', method: 'notifications/unheard/of', params: { early: true } });
    expect(server('a').child.asked('notifications/unheard/of')[0]?.params).toEqual({ early: true });
    one.request(2, 'tools/list');
    server('a').child.reply('tools/list', { tools: [] });
    await starting;
    server('a').child.reply('tools/list', { tools: [{ name: 'x' }] });
    expect(one.answerTo(2)?.result).toEqual({ tools: [{ name: 'x' }] });
  });

  it('gets requests of the server for which it declared no capability, and refuses them itself', async () => {
    const { one, child } = await seeing();
    child.say({ jsonrpc: '2.0', id: 'r', method: 'roots/list' });
    const [request] = one.received.take();
    expect(request).toMatchObject({ method: 'roots/list' });
    one.say({ jsonrpc: '2.0', id: request?.id, error: { code: -32601, message: 'Method not found' } });
    expect(child.received.messages.at(-1)).toEqual({
      jsonrpc: '2.0',
      id: 'r',
      error: { code: -32601, message: 'Method not found' },
    });
  });
});
