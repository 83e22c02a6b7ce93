import { describe, expect, it } from 'vitest';
import { ABOUT } from '../../src/gateway/pending-gateway.js';
import { createOwnTool, textResult } from '../../src/gateway/routing/own-tool.js';
import { printable } from '../../src/wire/json/printable.js';
import { InMemoryClient } from '../support/in-memory-client.js';
import { scriptGateway, startGateway } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const echo = createOwnTool({ name: 'trunkline__echo', inputSchema: { type: 'object' } }, (args) =>
  textResult(JSON.stringify(args) ?? 'nothing'),
);

function names(answer: Message | undefined): string[] {
  return answer?.result.tools.map(({ name }: { name: string }) => name);
}

describe('the first list', () => {
  const servers = { quick: { tools: ['x'] }, slow: { tools: ['y'] } };

  it('waits for servers that are starting, and holds them all', async () => {
    const { server, connect, clock } = scriptGateway({ servers });
    const client = connect().greet();
    client.request(1, 'tools/list');
    await server('quick').start();
    clock.advance(5_000);
    expect(client.answerTo(1)).toBeUndefined();
    await server('slow').start();
    expect(names(client.answerTo(1))).toEqual(['quick__x', 'slow__y']);
    clock.advance(60_000);
    expect(clock.pending).toBe(0);
  });

  it('waits no longer than it may, and later lists do not wait at all', async () => {
    const { server, connect, clock } = scriptGateway({ servers, startupWaitMs: 2_000 });
    const client = connect().greet();
    await server('quick').start();
    server('slow').moved('starting');
    client.request(1, 'tools/list');
    clock.advance(1_999);
    expect(client.answerTo(1)).toBeUndefined();
    clock.advance(1);
    expect(names(client.answerTo(1))).toEqual(['quick__x']);
    client.request(2, 'tools/list');
    expect(names(client.answerTo(2))).toEqual(['quick__x']);
  });

  it('may be kept for 5 s by a client without a handshake while a server starts, and for 5 minutes then', async () => {
    const { server, connect, clock } = scriptGateway({ servers, startupWaitMs: 2_000 });
    const client = connect();
    const ttlMs = (id: number) => client.answerTo(id)?.result.ttlMs;
    client.modernRequest(1, 'tools/list');
    await server('quick').start();
    server('slow').moved('starting');
    clock.advance(2_000);
    expect([ttlMs(1), names(client.answerTo(1))]).toEqual([5_000, ['quick__x']]);
    await server('slow').start();
    client.modernRequest(2, 'tools/list');
    expect([ttlMs(2), names(client.answerTo(2))]).toEqual([300_000, ['quick__x', 'slow__y']]);
  });

  it('does not wait for a server that fails to start, nor for one that cannot', async () => {
    const { server, connect } = scriptGateway({ servers: { ...servers, bad: { isMisconfigured: true } } });
    const client = connect().greet();
    client.request(1, 'tools/list');
    await server('quick').start();
    server('slow').moved('starting');
    expect(client.answerTo(1)).toBeUndefined();
    server('slow').moved('backoff');
    expect(names(client.answerTo(1))).toEqual(['quick__x']);
  });

  it('is the same wait for all clients, each of which is answered', async () => {
    const { server, connect, clock } = scriptGateway({ servers, startupWaitMs: 2_000 });
    const [one, other] = [connect(), connect()];
    one.initialize();
    other.initialize();
    one.request(1, 'tools/list');
    clock.advance(1_500);
    other.request(1, 'tools/list');
    one.request(2, 'tools/list');
    one.cancel(2);
    await server('quick').start();
    clock.advance(500);
    expect([names(one.answerTo(1)), names(other.answerTo(1))]).toEqual([['quick__x'], ['quick__x']]);
    expect(one.answerTo(2)).toBeUndefined();
    clock.advance(60_000);
    expect(clock.pending).toBe(0);
  });

  it('is answered when the gateway closes while it waits', () => {
    const { connect, clock, gateway } = scriptGateway({ servers });
    const client = connect().greet();
    client.request(1, 'tools/list');
    gateway.close();
    expect(names(client.answerTo(1))).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});

describe('a call', () => {
  const servers = {
    a: { tools: ['read', 'a.b', 'secret'], filter: { deny: ['secret*'] } },
    bare: { tools: ['free', 'hidden'], prefix: '', filter: { deny: ['hidden'] } },
  };

  async function called() {
    const world = await startGateway({ servers, ownTools: [echo] });
    const client = world.connect().greet();
    return { ...world, client };
  }

  it.each([
    ['a__read', 'a', '"read"'],
    ['a__unlisted', 'a', '"unlisted"'],
    ['read', 'a', '"read"'],
    ['free', 'bare', '"free"'],
    ['a__a.b', 'a', '"a.b"'],
    ['a__quo"te', 'a', '"quo\\"te"'],
  ])('of %s reaches the server %s as %s, all else untouched', async (name, key, original) => {
    const { server, client } = await called();
    const line = (token: string) =>
      `{"params":{"arguments":{"name":"a__read","n":1.0},"name":${token}},"jsonrpc":"2.0","id":1,"method":"tools/call"}`;
    client.say(line(JSON.stringify(name)).replace('"id":1', '"id":"c"'));
    const sent = server(key).child.received.lines.at(-1);
    expect(sent).toBe(line(original).replace('"id":1', `"id":${JSON.parse(sent ?? '').id}`));
  });

  it('F27: of a tool with a name that every object has reaches its server, also if that has such a name', async () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    const { server, connect } = await startGateway({
      servers: { constructor: { tools: ['__proto__', 'constructor'] } },
    });
    const client = connect().greet();
    client.request(1, 'tools/list');
    expect(names(client.answerTo(1))).toEqual(['constructor____proto__', 'constructor__constructor']);
    const args = '{"__proto__":{"polluted":true},"constructor":{"prototype":1}}';
    for (const name of ['constructor____proto__', 'constructor__constructor', 'toString'])
      client.say(
        `{"jsonrpc":"2.0","id":"${name}","method":"tools/call","params":{"name":"${name}","arguments":${args}}}`,
      );
    const { child } = server('constructor');
    expect(child.calls.map(({ params }) => params.name)).toEqual(['__proto__', 'constructor']);
    expect(child.received.last.params.arguments).toEqual(JSON.parse(args));
    expect(client.answerTo('toString')?.error?.code).toBe(-32602);
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it.each([
    ...['missing', '__proto__', '', 'a__secret', 'a__secrets', 'secret', 'hidden', 'trunkline__other'],
    ...['a__SECRET', 'a__Secret', 'a__\u017fecret', 'a__secret\0', 'a__secret\0x'],
  ])('of %j is refused as unknown, and no server hears of it', async (name) => {
    const { server, client } = await called();
    client.call(1, name);
    expect(client.answerTo(1)?.error).toEqual({ code: -32602, message: `Unknown tool: ${printable(name)}` });
    expect([...server('a').child.calls, ...server('bare').child.calls]).toEqual([]);
  });

  it.each([
    ['no params', undefined],
    ['no name', {}],
    ['a number for a name', { name: 7 }],
    ['a null name', { name: null }],
    ['a list of params', ['a__read']],
  ])('with %s is refused', async (_, params) => {
    const { client } = await called();
    client.request(1, 'tools/call', params);
    expect(client.answerTo(1)?.error).toEqual({
      code: -32602,
      message: 'tools/call needs the name of a tool, a string',
    });
  });

  it.each([
    [{ a: 1 }, '{"a":1}'],
    [undefined, 'nothing'],
    [null, 'null'],
  ])('of our own tool gets the arguments %j', async (args, text) => {
    const { client } = await called();
    client.call(1, 'trunkline__echo', args === undefined ? {} : { arguments: args });
    await flush();
    expect(client.answerTo(1)?.result).toEqual({ content: [{ type: 'text', text }] });
  });
});

describe('another method', () => {
  it.each(['server/discover', 'x'])('such as %s is not found', async (method) => {
    const { connect } = scriptGateway({ servers: {} });
    const client = connect().greet();
    client.request(1, method);
    expect(client.answerTo(1)?.error).toEqual({ code: -32601, message: `Method not found: ${method}` });
  });
});

describe('with no servers', () => {
  it.each([
    ['tools/list', { tools: [] }],
    ['prompts/list', { prompts: [] }],
    ['resources/list', { resources: [] }],
    ['resources/templates/list', { resourceTemplates: [] }],
  ])('%s is answered with an empty list, at once', (method, result) => {
    const { clock, connect } = scriptGateway({ servers: {} });
    const client = connect().greet();
    client.request(1, method);
    expect(client.answerTo(1)?.result).toEqual(result);
    expect(clock.pending).toBe(0);
  });

  it.each([
    ['completion/complete', 'completion/complete needs a URI, a string'],
    ['prompts/get', 'prompts/get needs the name of a prompt, a string'],
    ['resources/read', 'resources/read needs a URI, a string'],
    ['resources/subscribe', 'resources/subscribe needs a URI, a string'],
  ])('%s without params is refused', (method, message) => {
    const { connect } = scriptGateway({ servers: {} });
    const client = connect().greet();
    client.request(1, method);
    expect(client.answerTo(1)?.error).toEqual({ code: -32602, message });
  });
});

describe('instructions', () => {
  it('have what each ready server says about itself, and its listed tools', async () => {
    const { server, gateway, change } = await startGateway({
      servers: {
        b: { hello: { instructions: 'Be b.', serverInfo: { name: 'b', title: 'Bee', description: 'Does b.' } } },
        quiet: { tools: ['x', 'y', 'z'], filter: { deny: ['y'] } },
        a: { hello: { instructions: '# Be\na.' }, prefix: '', tools: ['w'] },
      },
    });
    const client = InMemoryClient.open(gateway);
    const { instructions } = client.session;
    expect(instructions).toContain('trunkline__status');
    expect(instructions.split('\n').filter((line) => line.startsWith('- '))).toEqual([
      '- b: Bee: Does b.',
      '- quiet: tools x, z',
      '- a (its tools keep their own names): tools w',
    ]);
    expect(instructions.slice(instructions.indexOf('<server-instructions'))).toBe(
      '<server-instructions server="b">\nBe b.\n</server-instructions>\n\n' +
        '<server-instructions server="a">\n# Be\na.\n</server-instructions>',
    );
    server('b').crash('parked');
    for (const session of [InMemoryClient.open(gateway).session, client.session])
      expect(session.instructions).not.toContain('Be b.');
    change({ a: { prefix: '' } }, [], { maxInstructionsBytes: 0 });
    expect(InMemoryClient.open(gateway).session.instructions).toBe(ABOUT);
  });
});

describe('the instructions of a server with several processes', () => {
  it("are those of the client's own, and else of any that is there", async () => {
    const { server, gateway, connect } = scriptGateway({
      servers: { a: { sharing: 'profile', hello: { instructions: 'Be first.' } } },
    });
    connect().initialize('2025-11-25', {}, 'one');
    await server('a').start();
    connect().initialize('2025-11-25', {}, 'other');
    const told = (name: string) =>
      InMemoryClient.open(gateway, { clientInfo: { name, version: '0' } }).session.instructions;
    expect(told('other')).toContain('Be first.');
    Object.assign(server('a~2').script, { hello: { instructions: 'Be second.' } });
    await server('a~2').start();
    expect([told('one'), told('other')]).toEqual([
      expect.stringContaining('Be first.'),
      expect.stringContaining('Be second.'),
    ]);
  });
});
