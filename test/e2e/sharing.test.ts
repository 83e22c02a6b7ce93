import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import type { Message } from '../support/gateway-process.js';
import { until } from '../support/processes.js';
import { type Hello, HttpGateway, type HttpGatewayOptions, type RawHttpClient } from '../support/raw-http-client.js';

const LAB = fileURLToPath(new URL('../fixtures/servers/lab.mjs', import.meta.url));
const FAULTY = fileURLToPath(new URL('../fixtures/servers/faulty.mjs', import.meta.url));
const FAILING = fileURLToPath(new URL('../fixtures/cli/exits-at-once.mjs', import.meta.url));
const ROOTS = { roots: { listChanged: true } };

let gateway: HttpGateway;
afterEach(() => gateway.dispose());

async function serve(sharing = 'profile', options: Partial<HttpGatewayOptions> = {}): Promise<void> {
  gateway = await HttpGateway.start({ servers: { lab: { program: LAB, sharing } }, ...options });
}

/** What the client's own process was told of its client. */
async function told(client: RawHttpClient): Promise<Message> {
  return JSON.parse(await client.call('lab__hello'));
}

/** The processes of the server, as a client sees them. */
async function instances(client: RawHttpClient): Promise<Message[]> {
  const { result } = await client.request('tools/call', { name: 'trunkline__status', arguments: { server: 'lab' } });
  return result.structuredContent.servers[0].instances;
}

async function ownPid(client: RawHttpClient): Promise<number> {
  await told(client);
  return (await instances(client)).find(({ isYours }) => isYours)?.pid;
}

describe('a server that clients with the same profile share', () => {
  it('gets the name, revision and capabilities of each client', async () => {
    await serve();
    const hellos: Hello[] = [
      { name: 'one', revision: '2025-06-18', capabilities: { sampling: {}, experimental: { 'x/y': [1] } } },
      { name: 'other', capabilities: { elicitation: { form: {} } } },
    ];
    const clients = await Promise.all(hellos.map((hello) => gateway.handshake(hello)));
    expect(await Promise.all(clients.map(told))).toEqual(
      hellos.map(({ name, revision = '2025-11-25', capabilities }) => ({
        protocolVersion: revision,
        capabilities,
        clientInfo: { name, version: '1' },
      })),
    );
  });

  it('is one process for clients with the same profile, even when they connect at the same time, and another for one with a different profile', async () => {
    await serve();
    const [one, same] = await Promise.all([gateway.handshake(), gateway.handshake()]);
    const other = await gateway.handshake({ name: 'other' });
    await Promise.all([one, same, other].map(told));
    expect(await instances(one)).toMatchObject([
      { id: 'lab', state: 'ready', clients: 2, isYours: true },
      { id: 'lab~2', state: 'ready', clients: 1, isYours: false },
    ]);
    expect((await instances(other)).map(({ isYours }) => isYours)).toEqual([false, true]);
    expect(await ownPid(one)).toBe(await ownPid(same));
    expect(gateway.processes('lab.mjs')).toHaveLength(2);
  });

  it('shows each client the lists of its own process, and notifies only that client when they change', async () => {
    await serve();
    const [one, other] = [await gateway.handshake({ name: 'one' }), await gateway.handshake({ name: 'other' })];
    const names = async (client: RawHttpClient) =>
      (await client.request('tools/list')).result.tools.map(({ name }: Message) => name);
    await Promise.all([names(one), names(other)]);
    await one.call('lab__change');
    await one.next('notifications/tools/list_changed');
    expect(await names(one)).toContain('lab__added1');
    expect(await names(other)).not.toContain('lab__added1');
    expect(other.received).toEqual([]);
  });

  it('serves the next client of the same profile for a while, and ends when none connects', async () => {
    await serve('profile', { gateway: { idleStop: '2s' } });
    const one = await gateway.handshake();
    const pid = await ownPid(one);
    await one.end();
    const next = await gateway.handshake();
    expect(await ownPid(next)).toBe(pid);
    await next.end();
    await until('the process is gone', () => gateway.processes('lab.mjs').length === 0);
    const last = await gateway.handshake();
    expect(await ownPid(last)).not.toBe(pid);
  });

  it('gets the roots of the client that it serves, and runs once for each client with roots from then on', async () => {
    await serve();
    const clients = [await gateway.handshake({ capabilities: ROOTS })];
    const answer = async (client: RawHttpClient, uri: string) => {
      const call = client.call('lab__ask', { method: 'roots/list' });
      const { id } = await client.next('roots/list');
      await client.send({ jsonrpc: '2.0', id, result: { roots: [{ uri }] } });
      return JSON.parse(await call).result.roots;
    };
    const [one] = clients as [RawHttpClient];
    expect(await answer(one, 'file:///one')).toEqual([{ uri: 'file:///one' }]);
    clients.push(await gateway.handshake({ capabilities: ROOTS }), await gateway.handshake({ capabilities: ROOTS }));
    const uris = ['file:///a', 'file:///b', 'file:///c'];
    const roots = await Promise.all(clients.map((client, index) => answer(client, uris[index] ?? '')));
    expect(roots).toEqual(uris.map((uri) => [{ uri }]));
    expect(new Set(await Promise.all(clients.map(ownPid))).size).toBe(3);
    // Whose roots change concerns the process of that client alone.
    expect((await instances(one)).map(({ clients: count }) => count)).toEqual([1, 1, 1]);
  });
});

describe('an isolated server', () => {
  it('is one process for each session, and ends after the session', async () => {
    await serve('isolated');
    const [one, other] = await Promise.all([gateway.handshake(), gateway.handshake()]);
    const pids = await Promise.all([ownPid(one), ownPid(other)]);
    expect(new Set(pids).size).toBe(2);
    expect(gateway.processes('lab.mjs')).toHaveLength(2);
    await one.end();
    await until('its process is gone', () => gateway.processes('lab.mjs').length === 1);
    expect(gateway.processes('lab.mjs')[0]?.pid).toBe(pids[1]);
    expect(await told(other)).toMatchObject({ clientInfo: { name: 'test' } });
  });

  it('ends with a session that ends while it starts', async () => {
    await serve('isolated', { servers: { lab: { program: LAB, sharing: 'isolated', args: ['slow=2000'] } } });
    const one = await gateway.handshake();
    await until('its process is there', () => gateway.processes('lab.mjs').length === 1);
    await one.end();
    await until('its process is gone', () => gateway.processes('lab.mjs').length === 0);
  });
});

describe('a server that all clients share', () => {
  it('is one process for all clients, and gets the capabilities that Trunkline provides to each of them', async () => {
    await serve('all');
    const one = await gateway.handshake({ name: 'one', revision: '2025-06-18', capabilities: ROOTS });
    const other = await gateway.handshake({ name: 'other', capabilities: { sampling: {} } });
    expect(await ownPid(one)).toBe(await ownPid(other));
    expect(await told(one)).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: { sampling: { context: {}, tools: {} }, elicitation: { form: {}, url: {} } },
      clientInfo: { name: 'trunkline', version: expect.any(String) },
    });
    for (const client of [one, other]) await client.end();
    expect(gateway.processes('lab.mjs')).toHaveLength(1);
  });

  it('gets an error for a request that the client does not support', async () => {
    await serve('all');
    const one = await gateway.handshake();
    expect(JSON.parse(await one.call('lab__ask', { method: 'sampling/createMessage' })).error.code).toBe(-32601);
    expect(JSON.parse(await one.call('lab__ask', { method: 'roots/list' })).error.code).toBe(-32601);
    expect(one.received).toEqual([]);
  });
});

describe('the endpoint of one server', () => {
  it("shows its own initialize result and names, and nothing of Trunkline's", async () => {
    await serve('profile', { servers: { lab: { program: LAB }, other: { program: LAB } } });
    const client = gateway.client('lab');
    const { result } = await client.initialize({ capabilities: { sampling: {} } });
    expect(result).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'lab', version: '1' },
      instructions: 'Lab instructions.',
    });
    const { result: list } = await client.request('tools/list');
    const { result: rest } = await client.request('tools/list', { cursor: list.nextCursor });
    const names = (page: Message) => page.tools.map(({ name }: Message) => name);
    expect([names(list), names(rest)]).toEqual([['echo', 'wait'], expect.arrayContaining(['verbatim'])]);
    expect([...names(list), ...names(rest)].filter((name) => name.includes('__'))).toEqual([]);
    expect(JSON.parse(await client.call('hello')).capabilities).toEqual({ sampling: {} });
    expect(await client.call('trunkline__status')).toBe('no tool trunkline__status');
  });

  it('answers initialize with an error when the server does not start, and keeps no session', async () => {
    const restart = { budget: 1 };
    await serve('profile', { servers: { bad: { program: FAILING, restart }, lab: { program: LAB } } });
    const client = gateway.client('bad');
    const { error } = await client.initialize();
    expect(error).toMatchObject({ code: -32603, message: expect.stringContaining('"bad"') });
    expect((await client.post({ jsonrpc: '2.0', id: 2, method: 'ping' })).status).toBe(404);
    expect((await gateway.handshake({}, 'lab')).received).toEqual([]);
  });

  it('answers initialize with what is wrong with the answer of the server', async () => {
    const restart = { budget: 1 };
    await serve('profile', { servers: { bad: { program: FAULTY, args: ['revision=1999-01-01'], restart } } });
    const { error } = await gateway.client('bad').initialize();
    expect(error.message).toContain(
      'Its last start failed: initialize: the server chose protocol version "1999-01-01", which is unknown here.',
    );
  });

  it('relays a ping of the server to a client that listens, and answers it for one that does not', async () => {
    await serve('profile', { servers: { lab: { program: LAB } } });
    const one = await gateway.handshake({ listens: false }, 'lab');
    expect(JSON.parse(await one.call('ask', { method: 'ping' })).result).toEqual({});
    await one.listen();
    const asked = one.call('ask', { method: 'ping' });
    const { id } = await one.next('ping');
    await one.send({ jsonrpc: '2.0', id, result: { _meta: { mine: true } } });
    expect(JSON.parse(await asked).result).toEqual({ _meta: { mine: true } });
  });

  it('waits for a server that takes its time', async () => {
    await serve('profile', { servers: { lab: { program: LAB, args: ['slow=700'] } } });
    expect((await gateway.client('lab').initialize()).result.serverInfo.name).toBe('lab');
  });
});
