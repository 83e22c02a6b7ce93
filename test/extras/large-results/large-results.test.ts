import { describe, expect, it } from 'vitest';
import { LargeResults } from '../../../src/extras/large-results/large-results.js';
import type { NamedViewsOptions } from '../../../src/gateway/catalog/tool-policy.js';
import { FakeClock } from '../../support/fake-clock.js';
import { hmac } from '../../support/hmac.js';
import { InMemoryClient, InMemoryExchange } from '../../support/in-memory-client.js';
import { type ServerScript, startGateway, toolOf, type Who } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const LIMITED: ServerScript = { tools: ['t'], results: { maxBytes: 1_000 } };
const text = (length: number, letter = 'x') => ({ content: [{ type: 'text', text: letter.repeat(length) }] });

/** A gateway that cuts the results of `a` beyond 1,000 bytes. */
async function cutting({
  servers = { a: LIMITED },
  views,
  limits,
}: {
  readonly servers?: Readonly<Record<string, ServerScript>>;
  readonly views?: NamedViewsOptions;
  readonly limits?: ConstructorParameters<typeof LargeResults>[2];
} = {}) {
  const clock = new FakeClock();
  const results = new LargeResults(clock, hmac, limits);
  const world = await startGateway({ servers, clock, results, ...(views && { views }) });
  let id = 0;
  /** A client and its requests, each with its result or its error. */
  const connect = (who: Who & { readonly revision?: string; readonly isModern?: boolean } = {}) => {
    const { revision, isModern = false, ...rest } = who;
    const client = world.connect(rest);
    if (!isModern) client.initialize(revision);
    const ask = async (method: string, params: Message = {}): Promise<Message> => {
      id += 1;
      const asked = id;
      if (isModern) client.modernRequest(asked, method, params);
      else client.request(asked, method, params);
      await flush();
      const { result, error } = client.answerTo(asked) ?? {};
      return result ?? error;
    };
    /** Calls the tool of a server, which answers with this result. */
    const call = async (
      result: Message,
      { server = 'a', name }: { server?: string; name?: string } = {},
    ): Promise<Message> => {
      id += 1;
      const calling = id;
      const tool = name ?? `${server}__t`;
      if (isModern) client.modernRequest(calling, 'tools/call', { name: tool });
      else client.call(calling, tool);
      await flush();
      world.server(server).child.reply('tools/call', result);
      await flush();
      return client.answerTo(calling)?.result;
    };
    const read = async (uri: string) => await ask('resources/read', { uri });
    const part = async (args: Message) => await ask('tools/call', { name: 'trunkline__read_result', arguments: args });
    const tools = async () => (await ask('tools/list')).tools.map(({ name }: Message) => name);
    return { client, ask, call, read, part, tools };
  };
  return { ...world, clock, results, connect };
}

function uriOf({ content }: Message): string {
  return content.at(-1).uri;
}

const ERAS = [
  ['with a session', { isModern: false }],
  ['without a session', { isModern: true }],
] as const;

describe.each(ERAS)('a client %s', (_, era) => {
  it('gets the beginning and the end of a large result, and reads the whole as a resource', async () => {
    const { call, read } = (await cutting()).connect(era);
    const whole = `${'a'.repeat(2_000)}"\\\n${'b'.repeat(2_000)}`;
    const result = await call({ content: [{ type: 'text', text: whole }] });
    expect(result.content[0].text).toMatch(
      /^a{500}\n\n\[Trunkline left out .* bytes 500 to 3503 of 4003\..*\]\n\nb{500}$/,
    );
    const uri = uriOf(result);
    expect(await read(uri)).toMatchObject({ contents: [{ uri, mimeType: 'text/plain', text: whole }] });
    expect(await read(uri)).toMatchObject({ contents: [{ text: whole }] });
  });

  it('reads ranges and finds lines with the tool', async () => {
    const { call, part } = (await cutting()).connect(era);
    const whole = Array.from({ length: 2_000 }, (__, index) => `line ${index}`).join('\n');
    const uri = uriOf(await call({ content: [{ type: 'text', text: whole }] }));
    const range = await part({ uri, offset: 7, length: 13 });
    expect(range.content.map(({ text: said }: Message) => said)).toEqual([
      `Bytes 7 to 20 of ${whole.length}. To read on, use offset 20.`,
      'line 1\nline 2',
    ]);
    const rest = await part({ uri, offset: whole.length - 9 });
    expect(rest.content[0].text).toBe(
      `Bytes ${whole.length - 9} to ${whole.length} of ${whole.length}. This is the end.`,
    );
    const found = await part({ uri, find: 'LINE 1234' });
    expect(found.content[1].text).toBe(`${whole.indexOf('line 1234')}: line 1234`);
    const many = await part({ uri, find: 'line' });
    expect(many.content[0].text).toMatch(/More lines have the text; to see them, use offset \d+\.$/);
    expect(Buffer.byteLength(many.content[1].text)).toBeLessThan(2_000);
    expect((await part({ uri, find: 'nowhere' })).content).toEqual([{ type: 'text', text: 'No line has this text.' }]);
  });

  it('gets a link in place of a large image, and reads the image as a resource', async () => {
    const servers = { a: { ...LIMITED, results: { maxBytes: 10_000, maxBinaryBytes: 1_000 } } };
    const { call, read, part } = (await cutting({ servers })).connect(era);
    const [small, data] = [999, 2_000].map((length) => Buffer.alloc(length, 'x').toString('base64'));
    const content = [small, data].map((each) => ({ type: 'image', data: each, mimeType: 'image/png' }));
    const result = await call({ content: [...content, { type: 'text', text: 'x'.repeat(5_000) }] });
    const { uri } = result.content[1];
    expect(result.content).toMatchObject([
      content[0],
      { type: 'resource_link', mimeType: 'image/png', size: 2_000 },
      { text: 'x'.repeat(5_000) },
    ]);
    expect((await read(uri)).contents).toEqual([{ uri, mimeType: 'image/png', blob: data }]);
    expect(await part({ uri })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('binary') }],
    });
  });

  it('is told of mistakes in the arguments of the tool', async () => {
    const { call, part } = (await cutting()).connect(era);
    const uri = uriOf(await call(text(5_000)));
    for (const args of [
      ...[{}, { uri: 1 }, { uri: `${uri}1` }, { uri, offset: -1 }, { uri, offset: 5_000 }, { uri, offset: '1' }],
      ...[
        { uri, length: 3 },
        { uri, find: '' },
        { uri, find: 'x'.repeat(101) },
        { uri, find: 1 },
      ],
    ])
      expect(await part(args)).toMatchObject({ isError: true, content: [{ type: 'text' }] });
  });

  it('gets a small result, an error and the result of another server byte for byte', async () => {
    const { connect, server } = await cutting({ servers: { a: LIMITED, b: { tools: ['t'] } } });
    const { call, client } = connect(era);
    await call(text(900));
    await call(text(50_000), { server: 'b' });
    await call({ code: -32603, message: 'x'.repeat(5_000) });
    const lines = client.received.lines.slice(-3);
    expect(lines[0]).toContain(JSON.stringify(text(900).content));
    expect(lines[1]).toContain(JSON.stringify(text(50_000).content));
    expect(lines[2]).toContain(`"message":"${'x'.repeat(5_000)}"`);
    expect(server('a').child.calls).toHaveLength(2);
  });

  it('loses its results when it leaves', async () => {
    const { connect, clock } = await cutting();
    const { call, client } = connect(era);
    await call(text(5_000));
    const before = clock.pending;
    client.session.close();
    expect(clock.pending).toBeLessThan(before);
  });

  it('never reads a result of another client, and is told no more than about an unknown one', async () => {
    const { connect } = await cutting();
    const [one, other] = [connect(era), connect(era)];
    const uri = uriOf(await one.call(text(5_000)));
    const unknown = 'trunkline://result/9-x';
    const told = async (asked: string) => JSON.stringify([await other.read(asked), await other.part({ uri: asked })]);
    expect((await told(uri)).replaceAll(uri, unknown)).toBe(await told(unknown));
    expect(await one.read(uri)).toHaveProperty('contents');
  });
});

describe('results over HTTP without sessions', () => {
  /** An exchange whose program cannot be told apart from others of the principal. */
  const exchangeOf = (client: InMemoryClient, method: string, params: Message) => {
    const exchange = new InMemoryExchange(method, params, client);
    Object.defineProperty(exchange, 'conversation', { value: exchange });
    return exchange;
  };

  it('belong to the principal', async () => {
    const { gateway, server } = await cutting();
    const open = (principal: string) => InMemoryClient.open(gateway, { revision: '2026-07-28', principal });
    const [one, same, other] = [open('p'), open('p'), open('q')];
    const ask = (client: InMemoryClient, method: string, params: Message) => {
      const exchange = exchangeOf(client, method, params);
      client.session.serve(exchange);
      return exchange;
    };
    const call = ask(one, 'tools/call', { name: 'a__t' });
    server('a').child.reply('tools/call', text(5_000));
    await flush();
    const uri = uriOf(call.value ?? {});
    expect(ask(same, 'resources/read', { uri }).value).toHaveProperty('contents');
    expect(ask(other, 'resources/read', { uri }).value).toMatchObject({ code: -32602 });
    same.close();
    expect(ask(one, 'resources/read', { uri }).value).toHaveProperty('contents');
    one.close();
    expect(ask(open('p'), 'resources/read', { uri }).value).toMatchObject({ code: -32602 });
  });
});

describe('a kept result', () => {
  it('is forgotten 15 minutes after its last use', async () => {
    const { connect, clock, results } = await cutting();
    const { call, read } = connect();
    expect(results.kept).toBeUndefined();
    const uri = uriOf(await call(text(5_000)));
    expect(results.kept).toEqual({ count: 1, bytes: 5_000 });
    const pending = clock.pending;
    clock.advance(14 * 60_000);
    expect(await read(uri)).toHaveProperty('contents');
    clock.advance(14 * 60_000);
    expect(await read(uri)).toHaveProperty('contents');
    clock.advance(15 * 60_000);
    expect(await read(uri)).toMatchObject({ code: -32002, data: { uri } });
    expect(clock.pending).toBe(pending - 1);
    expect(results.kept).toBeUndefined();
  });

  const LIMITS = { bytes: 20_000, count: 4 };
  type Client = ReturnType<Awaited<ReturnType<typeof cutting>>['connect']>;
  /** Whether the client can still read each of the results. */
  const areKept = async ({ read }: Client, uris: readonly string[]) => {
    const kept: boolean[] = [];
    for (const uri of uris) kept.push('contents' in (await read(uri)));
    return kept;
  };
  const callTimes = async ({ call }: Client, times: number, length: number) => {
    const uris: string[] = [];
    for (let count = 0; count < times; count += 1) uris.push(uriOf(await call(text(length))));
    return uris;
  };

  it('gives way to later ones if there are too many, the last used one last', async () => {
    const client = (await cutting({ limits: LIMITS })).connect();
    const [first = '', ...others] = await callTimes(client, 4, 2_000);
    await client.read(first);
    await callTimes(client, 2, 2_000);
    expect(await areKept(client, [first, ...others])).toEqual([true, false, false, true]);
  });

  it('gives way to later ones if they are too large together', async () => {
    const client = (await cutting({ limits: LIMITS })).connect();
    const uris = await callTimes(client, 4, 6_000);
    expect(await areKept(client, uris)).toEqual([false, true, true, true]);
  });

  it('gives way to those of another client only if its own client has most', async () => {
    const { connect } = await cutting({ limits: LIMITS });
    const [small, large, other] = [connect(), connect(), connect()];
    const kept = await callTimes(small, 1, 2_000);
    const uris = await callTimes(large, 2, 6_000);
    await callTimes(other, 2, 5_000);
    expect(await areKept(small, kept)).toEqual([true]);
    expect(await areKept(large, uris)).toEqual([false, true]);
  });

  it('that is too large to be kept reaches the client whole', async () => {
    const { call } = (await cutting({ limits: LIMITS })).connect();
    expect(await call(text(20_001))).toEqual(text(20_001));
  });

  it('has no effect on others that are cut at the same time', async () => {
    const { connect, server } = await cutting({ servers: { a: { ...LIMITED, limits: { concurrency: 64 } } } });
    const clients = Array.from({ length: 8 }, () => connect());
    for (const { client } of clients) for (let at = 1_000; at < 1_008; at += 1) client.call(at, 'a__t');
    await flush();
    const { calls } = server('a').child;
    expect(calls).toHaveLength(64);
    for (const index of calls.keys()) server('a').child.answer(index, text(2_000 + index, 'x'));
    await flush();
    const lengths = [];
    for (const { client, read } of clients) {
      for (let at = 1_000; at < 1_008; at += 1) {
        const uri = uriOf(client.answerTo(at)?.result);
        lengths.push((await read(uri)).contents[0].text.length);
      }
    }
    expect(lengths.sort((one, other) => one - other)).toEqual(Array.from({ length: 64 }, (_, index) => 2_000 + index));
  });
});

describe('the tool for parts of results', () => {
  it('is listed for clients whose results are cut, and for no others', async () => {
    const views = {
      views: [
        { name: 'some', servers: ['b'] },
        { name: 'cut', servers: ['b'], results: { maxBytes: 500 } },
        { name: 'binary', servers: ['b'], results: { maxBinaryBytes: 500 } },
        { name: 'whole', results: { maxBytes: 0 } },
      ],
      clients: [],
    };
    const { connect } = await cutting({ servers: { a: LIMITED, b: { tools: ['t'] } }, views });
    const has = async (who: Who) => (await connect(who).tools()).includes('trunkline__read_result');
    expect(await has({})).toBe(true);
    expect(await has({ view: 'some' })).toBe(false);
    expect(await has({ view: 'cut' })).toBe(true);
    expect(await has({ view: 'binary' })).toBe(false);
    expect(await has({ view: 'whole' })).toBe(false);
    expect((await connect({ view: 'cut' }).call(text(5_000), { server: 'b' })).content[0].text).toMatch(/^x{250}\n/);
    expect((await connect({ view: 'whole' }).call(text(5_000))).content).toHaveLength(1);
    expect((await connect({ view: 'some' }).call(text(5_000), { server: 'b' })).content).toHaveLength(1);
  });

  it('is not needed by commands, which ask for everything and get it', async () => {
    const { connect } = await cutting();
    expect((await connect({ view: '' }).call(text(5_000))).content).toHaveLength(1);
  });

  it('is neither listed nor needed by a client that sees one server unchanged', async () => {
    const { connect } = await cutting();
    const { tools, call, ask } = connect({ server: 'a' });
    expect(await tools()).toEqual(['t']);
    expect((await call(text(5_000), { name: 't' })).content).toHaveLength(1);
    void ask('resources/read', { uri: 'trunkline://result/1-x' });
  });
});

describe('the result of a tool with structured content', () => {
  const structuredContent = { rows: 'x'.repeat(5_000) };

  it.each([
    ['a schema', toolOf('t', { outputSchema: { type: 'object' } }), true],
    ['no schema', toolOf('t'), false],
  ])('keeps it whole exactly if the tool has one: %s', async (_, tool, isWhole) => {
    const { connect } = await cutting({ servers: { a: { ...LIMITED, tools: [tool] } } });
    const { call } = connect();
    const result = await call({ content: [], structuredContent });
    expect(result.structuredContent).toEqual(isWhole ? structuredContent : { trunkline: expect.any(String) });
  });

  it('keeps it whole if the server does not list the tool', async () => {
    const { call } = (await cutting()).connect();
    const result = await call({ content: [], structuredContent }, { name: 'a__unlisted' });
    expect(result.structuredContent).toEqual(structuredContent);
  });

  it('is JSON for a client with a handshake, also if a server without one sends a list', async () => {
    const server = { ...LIMITED, hasBridge: true, isModern: true };
    const { connect } = await cutting({ servers: { a: server } });
    for (const who of [{}, { isModern: true }]) {
      const result = await connect(who).call({
        resultType: 'complete',
        content: [],
        structuredContent: ['x'.repeat(5_000)],
      });
      expect(result.structuredContent).toEqual({ trunkline: expect.any(String) });
    }
  });
});

describe('a client of an early revision', () => {
  it('gets the URI in the text only, because it knows no links', async () => {
    const { connect } = await cutting();
    const { call, part } = connect({ revision: '2025-03-26' });
    const { content } = await call(text(5_000));
    expect(content).toHaveLength(1);
    const [, uri] = /uri "([^"]+)"/.exec(content[0].text) ?? [];
    expect((await part({ uri, offset: 4_998 })).content[1].text).toBe('xx');
  });

  it('gets the URI of large audio in a text only, and no large audio as a resource', async () => {
    const { connect } = await cutting({ servers: { a: { ...LIMITED, results: { maxBinaryBytes: 1_000 } } } });
    const { call, read } = connect({ revision: '2024-11-05' });
    const data = Buffer.alloc(2_000).toString('base64');
    const { content } = await call({ content: [{ type: 'audio', data, mimeType: 'audio/wav' }] });
    expect(content).toEqual([{ type: 'text', text: expect.stringContaining('left out audio of 2000 bytes') }]);
    const [uri = ''] = /trunkline:[^ ]+(?=\.)/.exec(content[0].text) ?? [];
    expect((await read(uri)).contents).toEqual([{ uri, mimeType: 'audio/wav', blob: data }]);
  });
});

describe('the result of a task', () => {
  it('is cut like that of a call', async () => {
    const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
    const servers = { a: { ...LIMITED, hello: { capabilities: { tools: {}, tasks } } } };
    const { connect, server } = await cutting({ servers });
    const { client, read } = connect();
    client.call(1_000, 'a__t', { task: {} });
    await flush();
    const task = { taskId: 'x', status: 'working', createdAt: '', lastUpdatedAt: '', ttl: null };
    server('a').child.reply('tools/call', { task });
    await flush();
    client.request(1_001, 'tasks/result', { taskId: client.answerTo(1_000)?.result.task.taskId });
    await flush();
    server('a').child.reply('tasks/result', text(5_000));
    await flush();
    const result = client.answerTo(1_001)?.result;
    expect(result.content[0].text).toContain('Trunkline left out');
    expect((await read(uriOf(result))).contents[0].text).toHaveLength(5_000);
  });
});
