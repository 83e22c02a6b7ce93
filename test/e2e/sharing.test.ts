// Which clients share a process of a server, with real processes. `test/gateway/registry` has the rules.
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import type { Message } from '../support/gateway-process.js';
import { until } from '../support/processes.js';
import { HttpGateway, type RawHttpClient } from '../support/raw-http-client.js';

const LAB = fileURLToPath(new URL('../fixtures/servers/lab.mjs', import.meta.url));

let gateway: HttpGateway;
afterEach(() => gateway.dispose());

async function serve(sharing: string): Promise<void> {
  gateway = await HttpGateway.start({ servers: { lab: { program: LAB, sharing } }, gateway: { idleStop: '2s' } });
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

it('clients with the same profile share a process, which is told of them, has its own lists, and serves the next one for a while', async () => {
  await serve('profile');
  const [one, same] = await Promise.all([gateway.handshake(), gateway.handshake()]);
  const hello = { name: 'other', revision: '2025-06-18', capabilities: { sampling: {}, experimental: { 'x/y': [1] } } };
  const other = await gateway.handshake(hello);
  expect(await told(other)).toEqual({
    protocolVersion: '2025-06-18',
    capabilities: hello.capabilities,
    clientInfo: { name: 'other', version: '1' },
  });
  const pid = await ownPid(one);
  expect(await ownPid(same)).toBe(pid);
  expect(await instances(one)).toMatchObject([
    { id: 'lab', state: 'ready', clients: 2, isYours: true },
    { id: 'lab~2', state: 'ready', clients: 1, isYours: false },
  ]);
  expect(gateway.processes('lab.mjs')).toHaveLength(2);

  for (const client of [one, other]) await client.request('tools/list');
  await one.call('lab__change');
  await one.next('notifications/tools/list_changed');
  expect(other.received).toEqual([]);

  for (const client of [one, same, other]) await client.end();
  const next = await gateway.handshake();
  expect(await ownPid(next)).toBe(pid);
  await next.end();
  await until('the processes are gone', () => gateway.processes('lab.mjs').length === 0);
});

it('all clients share a process, which is told what Trunkline provides to each of them', async () => {
  await serve('all');
  const one = await gateway.handshake({ name: 'one', revision: '2025-06-18', capabilities: { roots: {} } });
  const other = await gateway.handshake({ name: 'other', capabilities: { sampling: {} } });
  expect(await ownPid(one)).toBe(await ownPid(other));
  expect(await told(one)).toEqual({
    protocolVersion: '2025-11-25',
    capabilities: { sampling: { context: {}, tools: {} }, elicitation: { form: {}, url: {} } },
    clientInfo: { name: 'trunkline', version: expect.any(String) },
  });
  expect(gateway.processes('lab.mjs')).toHaveLength(1);
});
