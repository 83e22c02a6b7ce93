import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { splice } from '../../../src/wire/json/splice.js';
import { until } from '../../support/processes.js';
import { toolOf } from '../../support/scripted-gateway.js';
import type { Message } from '../../support/wire.js';
import { type ServedGateway, serveGateway } from './served-gateway.js';
import { DEFAULT_LIMITS, TOKEN } from './serving.js';

const REGION = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } };
const SERVERS = {
  files: { tools: ['read', toolOf('query', { inputSchema: REGION })] },
  mail: { tools: ['send'] },
};
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The official client. */
async function connect(front: ServedGateway, mode: 'auto' | 'legacy' | 'modern' = 'modern', path = '/mcp') {
  const pinned = { pin: '2026-07-28' } as const;
  const client = new Client(
    { name: 'official', version: '2' },
    { versionNegotiation: { mode: mode === 'modern' ? pinned : mode } },
  );
  const transport = new StreamableHTTPClientTransport(new URL(`${front.url}${path}`), {
    requestInit: { headers: { authorization: `Bearer ${TOKEN}` } },
  });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return { client, transport };
}

async function toolNames(client: Client): Promise<string[]> {
  return (await client.listTools()).tools.map(({ name }) => name);
}

/** Sends a request without the official client. */
async function post(front: ServedGateway, method: string, params: Message, more: Record<string, string> = {}) {
  const response = await fetch(`${front.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${TOKEN}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...more,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { _meta: META, ...params } }),
  });
  return { status: response.status, answer: (await response.json()) as Message };
}

describe('the official client of revision 2026-07-28', () => {
  it.each(['modern', 'auto'] as const)('finds the revision, and no session: %s', async (mode) => {
    const front = await serveGateway({ servers: SERVERS });
    const { client, transport } = await connect(front, mode);
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    expect(transport.sessionId).toBeUndefined();
    expect(await toolNames(client)).toEqual(['files__read', 'files__query', 'mail__send']);
  });

  it('sees one server at its endpoint, and a view at its own', async () => {
    const views = { views: [{ name: 'work', servers: ['mail'] }], clients: [] };
    const front = await serveGateway({ servers: SERVERS, views });
    expect(await toolNames((await connect(front, 'modern', '/mcp/v/work')).client)).toEqual(['mail__send']);
    const alone = await connect(front, 'modern', '/mcp/mail');
    expect(alone.client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
  });

  it('gets answers to calls, after their progress', async () => {
    const front = await serveGateway({ servers: SERVERS });
    const { client } = await connect(front);
    const { child } = front.server('mail');
    const progress: number[] = [];
    const answered = client.callTool(
      { name: 'mail__send', arguments: {} },
      { onprogress: (each) => void progress.push(each.progress) },
    );
    await until('the call has arrived', () => child.calls.length === 1);
    const progressToken = child.calls[0]?.params._meta.progressToken;
    child.say({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } });
    await until('the progress has arrived', () => progress.length === 1);
    child.answer(0, { content: [{ type: 'text', text: 'sent' }] });
    front.clock.advance(5);
    expect((await answered).content).toEqual([{ type: 'text', text: 'sent' }]);
  });

  it('F158: cancels a call by closing its response, and no other call', async () => {
    const front = await serveGateway({ servers: SERVERS });
    const [one, other] = [await connect(front), await connect(front)];
    const { child } = front.server('mail');
    const abort = new AbortController();
    const cancelled = one.client.callTool({ name: 'mail__send', arguments: {} }, { signal: abort.signal });
    await until('the first call has arrived', () => child.calls.length === 1);
    const answered = other.client.callTool({ name: 'mail__send', arguments: {} });
    await until('the second call has arrived', () => child.calls.length === 2);
    abort.abort();
    await expect(cancelled).rejects.toThrow();
    await until('the server knows', () => child.cancellations.length === 1);
    expect(child.cancellations[0]?.params.requestId).toBe(child.calls[0]?.id);
    child.answer(1);
    expect((await answered).content).toEqual([]);
  });

  it('repeats parameters in headers as the tool wants it', async () => {
    const front = await serveGateway({ servers: SERVERS });
    const { client } = await connect(front);
    await client.listTools();
    const { child } = front.server('files');
    for (const [index, region] of ['us-west1', ' Zürich '].entries()) {
      const answered = client.callTool({ name: 'files__query', arguments: { region } });
      await until('the call has arrived', () => child.calls.length === index + 1);
      expect(child.calls[index]?.params.arguments).toEqual({ region });
      child.answer(index);
      await answered;
    }
  });

  it('lives beside clients with a session, on the same endpoint', async () => {
    const front = await serveGateway({ servers: SERVERS });
    const [modern, legacy] = [await connect(front, 'modern'), await connect(front, 'legacy')];
    expect(legacy.client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
    expect(legacy.transport.sessionId).toBeDefined();
    expect(await toolNames(modern.client)).toEqual(await toolNames(legacy.client));
  });
});

describe('over HTTP, revision 2026-07-28', () => {
  it.each([
    ['server/discover', {}, 200, undefined],
    ['initialize', {}, 404, -32601],
    ['logging/setLevel', { level: 'debug' }, 404, -32601],
    ['tools/list', { _meta: { ...META, 'io.modelcontextprotocol/clientCapabilities': null } }, 400, -32602],
  ])('answers %s with %j', async (method, params, status, code) => {
    const front = await serveGateway({ servers: SERVERS });
    const { answer, ...head } = await post(front, method, params);
    expect([head.status, answer.id, answer.error?.code]).toEqual([status, 1, code]);
  });

  it('shows recordings each message once, in both directions', async () => {
    const front = await serveGateway({ servers: SERVERS });
    const seen: unknown[] = [];
    front.messages.observe(({ direction, message }) => {
      if (direction.includes('c')) seen.push([direction, JSON.parse(Buffer.from(splice(message)).toString())]);
    });
    const { answer } = await post(front, 'tools/list', {});
    expect(seen).toEqual([
      ['c>g', expect.objectContaining({ method: 'tools/list' })],
      ['g>c', answer],
    ]);
  });

  it('answers a call that fails because its client lacks what a legacy server asked for, with 400', async () => {
    const front = await serveGateway({ servers: SERVERS });
    const answered = post(front, 'tools/call', { name: 'mail__send' }, { 'mcp-name': 'mail__send' });
    const { child } = front.server('mail');
    await until('the call has arrived', () => child.calls.length === 1);
    child.say({ jsonrpc: '2.0', id: 'ask', method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } });
    child.reply('tools/call', { content: [{ type: 'text', text: 'No model' }], isError: true });
    expect(await answered).toMatchObject({
      status: 400,
      answer: { error: { code: -32021, data: { requiredCapabilities: { sampling: {} } } } },
    });
  });

  it.each(['files__query', 'query'])('F159: compares the parameters that headers repeat, of %s', async (name) => {
    const front = await serveGateway({ servers: SERVERS });
    const call = (header: Record<string, string>) =>
      post(front, 'tools/call', { name, arguments: { region: 'eu' } }, { 'mcp-name': name, ...header });
    expect(await call({})).toMatchObject({ status: 400, answer: { id: 1, error: { code: -32020 } } });
    expect(await call({ 'mcp-param-region': 'us' })).toMatchObject({ status: 400 });
    expect(front.server('files').child.calls).toEqual([]);
    const served = call({ 'Mcp-Param-Region': 'eu' });
    await until('the call has arrived', () => front.server('files').child.calls.length === 1);
    front.server('files').child.answer(0);
    expect(await served).toMatchObject({ status: 200 });
  });

  it('counts programs that state the same as one client, until they were idle', async () => {
    const front = await serveGateway({ servers: SERVERS });
    const seen: string[] = [];
    front.events.subscribe('client.connected', ({ name, clients }) => seen.push(`${name} came: ${clients}`));
    front.events.subscribe('client.left', ({ name, clients }) => seen.push(`${name} left: ${clients}`));
    await (await connect(front)).client.listTools();
    await (await connect(front)).client.listTools();
    expect(seen).toEqual(['official came: 1']);
    front.clock.advance(DEFAULT_LIMITS.sessionIdleMs);
    expect(seen).toEqual(['official came: 1', 'official left: 0']);
  });

  it('ends with the server, after the calls that are in flight', async () => {
    const front = await serveGateway({ servers: SERVERS });
    const { client } = await connect(front, 'modern', '/mcp/mail');
    const left: string[] = [];
    front.events.subscribe('client.left', ({ name }) => left.push(name));
    const { child } = front.server('mail');
    const answered = client.callTool({ name: 'send', arguments: {} });
    await until('the call has arrived', () => child.calls.length === 1);
    front.change({ files: SERVERS.files }, ['mail']);
    child.answer(0);
    expect((await answered).content).toEqual([]);
    await until('the client is gone', () => left.length === 1);
    await expect(client.callTool({ name: 'send', arguments: {} })).rejects.toThrow('There is no such server');
  });
});

describe('two programs of one user that state the same about themselves', () => {
  /** A call of either program, which is answered when the test lets its server answer. */
  function call(front: ServedGateway, marker: string) {
    const capabilities = { elicitation: { form: {} } };
    const meta = { ...META, 'io.modelcontextprotocol/clientCapabilities': capabilities };
    return post(
      front,
      'tools/call',
      { name: 'mail__send', arguments: { marker }, _meta: meta },
      { 'mcp-name': 'mail__send' },
    );
  }

  it('never get the questions of each other, and do not wait for the answers of each other', async () => {
    const front = await serveGateway({ servers: SERVERS });
    const { child } = front.server('mail');
    const ask = (id: string) =>
      child.say({ jsonrpc: '2.0', id, method: 'elicitation/create', params: { message: 'Who?', requestedSchema: {} } });
    const both = [call(front, 'Alice'), call(front, 'Bob')];
    await until('both calls arrived', () => child.calls.length === 2);
    ask('first');
    await until('the question is refused', () => child.received.lines.some((line) => line.includes('"id":"first"')));
    expect(child.received.last.error.code).toBe(-32603);
    for (const index of [0, 1]) child.answer(index);
    expect((await Promise.all(both)).map(({ answer }) => answer.result.resultType)).toEqual(['complete', 'complete']);
    // A call that waits for its client cannot cause a server request, so no other call has to wait for that client.
    const alice = call(front, 'Alice');
    await until('her call arrived', () => child.calls.length === 3);
    ask('second');
    await until('she is waited for', () => {
      front.clock.advance(15);
      return front.server('mail').backend.dispatcher.inFlightCalls.cause?.isSuspended === true;
    });
    expect((await alice).answer.result.resultType).toBe('input_required');
    const bob = call(front, 'Bob');
    await until('his call arrived', () => child.calls.length === 4);
    ask('third');
    await until('he is asked', () => {
      front.clock.advance(15);
      return front.server('mail').backend.dispatcher.inFlightCalls.size === 2;
    });
    expect((await bob).answer.result.inputRequests).toMatchObject({ 'input-1': { method: 'elicitation/create' } });
  });
});
