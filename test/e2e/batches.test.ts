import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { GatewayProcess, type Message, type StartOptions } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

const BATCHING = fileURLToPath(new URL('../fixtures/servers/batching.mjs', import.meta.url));

let gateway: GatewayProcess;

async function start(options: StartOptions, revision = '2025-03-26', capabilities: object = {}): Promise<void> {
  gateway = await GatewayProcess.start(options, { handshake: false });
  await gateway.initialize(revision, capabilities);
  await gateway.listTools();
}

const call = (id: number | string, name: string, args: object = {}, token?: string) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: args, ...(token === undefined ? {} : { _meta: { progressToken: token } }) },
  });

/** Sends a line; resolves with the next `count` that come. */
async function say(line: string, count = 1): Promise<string[]> {
  const before = gateway.received.length;
  gateway.send(line);
  await until(`${count} lines`, () => gateway.received.length >= before + count);
  return gateway.received.slice(before).map(({ raw }) => raw);
}

describe('a batch over stdio', () => {
  /** One gateway for these tests: each looks at what came since it began. */
  beforeAll(() => start({ servers: { lab: {} } }));
  beforeEach(() => gateway.forget());
  afterAll(() => gateway.dispose());

  it('is answered with one array, byte for byte, once the last answer is there', async () => {
    const [array] = await say(
      ` [ ${call('slow', 'lab__wait', { marker: 'late', delayMs: 60 })} , 7 ,{"params":{"name":"lab__verbatim"},"method":"tools/call","id":1.0,"jsonrpc":"2.0"}, {"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"p","method":"ping"},${call('p', 'lab__die')}]`,
    );
    const answers = JSON.parse(array ?? '') as Message[];
    expect(answers.map(({ id, error }) => [id, error?.code])).toEqual([
      [null, -32600],
      ['p', undefined],
      ['p', -32600],
      [1, undefined],
      ['slow', undefined],
    ]);
    expect(array).toMatch(/"id": ?1\.0[,}]/);
    expect(array).toContain(
      '{"content":[{"type":"text","text":"\\u0041\\ud83d\\ude00","new":{"n":9007199254740993}},{"type":"future","x":1.0}],"_meta":{"k":1e400,"k":2},"structuredContent":{"z":-0, "a":[ 1 , 2 ]}}',
    );
    expect((await gateway.status('lab')).generation).toBe(1);
  });

  it('sends progress at once, and leaves out the answer of a cancelled call', async () => {
    const wait = call('gone', 'lab__wait', { marker: '', delayMs: 60_000 });
    const lines = await say(`[${wait},${call('done', 'lab__progress', {}, 'mine')}]`, 3);
    expect(lines.map((line) => JSON.parse(line).params)).toEqual(
      [1, 2, 3].map((progress) => ({ extra: 1.0, progress, progressToken: 'mine' })),
    );
    const [array] = await say('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gone"}}');
    expect(JSON.parse(array ?? '').map(({ id }: Message) => id)).toEqual(['done']);
  });

  it('is refused as a whole when it is empty, or has initialize in it', async () => {
    const initialize = '{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}';
    const refusals = [...(await say('[]')), ...(await say(`[${call(1, 'lab__die')},${initialize}]`))];
    expect(refusals).toEqual([
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The batch is empty"}}',
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"initialize cannot be in a batch"}}',
    ]);
    expect((await gateway.status('lab')).generation).toBe(1);
  });
});

describe('a batch over stdio in a revision without batches', () => {
  afterEach(() => gateway.dispose());

  it.each(['2025-11-25', '2025-06-18', '2024-11-05'])('is refused when %s was agreed on', async (revision) => {
    await start({ servers: { lab: {} } }, revision);
    expect(await say(`[${call(1, 'lab__die')}]`)).toEqual([
      `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Revision ${revision} has no batches"}}`,
    ]);
    expect((await gateway.status('lab')).generation).toBe(1);
  });
});

describe('a batch over HTTP', () => {
  let url = '';

  beforeAll(async () => {
    const servers = { lab: { tools: { deny: ['effect'] } } };
    await start({ servers, args: ['--stdio', '--no-auth', '--http', '127.0.0.1:0'] });
    await until('it listens', () => /^Trunkline serves /m.test(gateway.stderr));
    url = /^Trunkline serves (\S+)/m.exec(gateway.stderr)?.[1] ?? '';
  });
  afterAll(() => gateway.dispose());

  function post(body: string, headers: Record<string, string> = {}): Promise<Response> {
    const accept = 'application/json, text/event-stream';
    return fetch(url, { method: 'POST', headers: { accept, 'content-type': 'application/json', ...headers }, body });
  }

  async function openSession(protocolVersion: string): Promise<Record<string, string>> {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const response = await post(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
    return { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' };
  }

  it('reaches the servers as one message each, although it has line breaks', async () => {
    const session = await openSession('2025-03-26');
    // To a server each line is a message: the second one here would call what the configuration denies.
    const smuggled = '{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"effect","arguments":{}}}';
    const spread = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lab__echo","arguments":{"x":\n${smuggled}\n}}}`;
    const response = await post(`[\n${spread}\n]`, session);
    const [answer] = (await response.json()) as { id: number; result: { content: { text: string }[] } }[];
    expect(answer?.id).toBe(1);
    expect(answer?.result.content[0]?.text).toContain('effect');
    const status = await post(call(2, 'trunkline__status', { server: 'lab' }), session);
    const { result } = (await status.json()) as { result: { structuredContent: { servers: { dropped: object }[] } } };
    // Nothing came back that nobody had asked for, nor was a line answered that was no message.
    expect(result.structuredContent.servers[0]?.dropped).toMatchObject({ unknown: 0, junk: 0 });
  });

  it('is answered with an array of JSON, or with events when something comes first', async () => {
    const session = await openSession('2025-03-26');
    const wait = call(1, 'lab__wait', { marker: 'late', delayMs: 60 });
    const plain = await post(
      `[${wait},{"jsonrpc":"2.0","id":"p","method":"ping"}, null,{"jsonrpc":"2.0","method":"notifications/x"}]`,
      session,
    );
    expect([plain.status, plain.headers.get('content-type')]).toEqual([200, 'application/json']);
    const text = await plain.text();
    expect(text).toMatch(
      /^\[\{"jsonrpc":"2\.0","id":"p","result":\{\}\},\{"jsonrpc":"2\.0","id":null,"error":\{"code":-32600,/,
    );
    expect(JSON.parse(text)[2]).toMatchObject({ id: 1, result: { content: [{ text: 'late' }] } });

    const streamed = await post(`[${wait},${call(2, 'lab__progress', {}, 'mine')}]`, session);
    expect(streamed.headers.get('content-type')).toBe('text/event-stream');
    const events = [...(await streamed.text()).matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data ?? ''));
    expect(events.slice(0, 3).map(({ params }) => params.progress)).toEqual([1, 2, 3]);
    expect(events.slice(3).map(({ id, result }) => [id, result.content[0].text])).toEqual(
      expect.arrayContaining([
        [1, 'late'],
        [2, 'done'],
      ]),
    );
    expect(events).toHaveLength(5);
  });

  it('without a request is answered with 202', async () => {
    const session = await openSession('2025-03-26');
    const response = await post(
      '[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":1,"result":{}}]',
      session,
    );
    expect([response.status, await response.text()]).toEqual([202, '']);
  });

  it('is refused with 400 and -32600 where batches are not allowed', async () => {
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    const initialize = '{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}';
    const old = await openSession('2025-03-26');
    const refused = [
      await post(`[${initialize}]`),
      await post(`[${ping},${initialize}]`, old),
      await post('[]', old),
      await post(`[${Array(101).fill(ping).join(',')}]`, old),
      ...(await Promise.all(
        ['2025-11-25', '2025-06-18', '2024-11-05'].map(async (revision) =>
          post(`[${ping}]`, await openSession(revision)),
        ),
      )),
    ];
    expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 400));
    for (const response of refused) expect(await response.json()).toMatchObject({ id: null, error: { code: -32600 } });
    expect((await post(`[${ping}]`, old)).status).toBe(200);
  });
});

describe('a server that writes batches', () => {
  const SERVERS = { all: { command: 'node', args: [BATCHING] } };
  afterEach(() => gateway.dispose());

  it('gets and sends answers and progress, and its invalid elements are counted', async () => {
    await start({ servers: SERVERS });
    const lines = await say(
      `[${['a', 'b', 'c'].map((id) => call(id, 'all__together', { count: 3, marker: `for ${id}` }, `t-${id}`)).join(',')}]`,
      4,
    );
    expect(lines.slice(0, 3)).toEqual(
      ['a', 'b', 'c'].map(
        (id) => `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t-${id}","progress":1}}`,
      ),
    );
    // Each answer waits for a moment after its progress, so their order may differ.
    const answers = JSON.parse(lines[3] ?? '').toSorted((one: Message, other: Message) => (one.id < other.id ? -1 : 1));
    expect(answers).toEqual(
      ['a', 'b', 'c'].map((id) => ({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: `for ${id}` }] } })),
    );
    const { state, dropped } = await gateway.status('all');
    // Two elements that are no messages in each of its arrays: for its era, the handshake, the list and the calls.
    expect([state, dropped.junk]).toEqual(['ready', 8]);
  });
});
