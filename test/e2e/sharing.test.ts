// Clients that share a process of a server, with real processes. `test/gateway/registry` has the rules.
import { afterEach, expect, it } from 'vitest';
import type { Message } from '../support/gateway-process.js';
import { Place, type RawHttpClient, type Running } from '../support/http-place.js';
import { until } from '../support/processes.js';

let place: Place;
let running: Running;
afterEach(() => place.dispose());

async function serve(sharing: string): Promise<void> {
  place = new Place();
  running = await place.serve({ servers: { lab: { ...place.lab(), sharing } }, gateway: { idleStop: '5s' } });
}

const processes = () => place.leftovers().filter(({ args }) => args.includes('lab.mjs'));

/** The introduction that the client's process got. */
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
  const [one, same] = await Promise.all([place.handshake(running), place.handshake(running)]);
  const hello = { name: 'other', revision: '2025-06-18', capabilities: { sampling: {}, experimental: { 'x/y': [1] } } };
  const other = await place.handshake(running, hello);
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
  expect(processes()).toHaveLength(2);

  for (const client of [one, other]) await client.request('tools/list');
  await one.call('lab__change');
  await one.next('notifications/tools/list_changed');
  expect(other.received).toEqual([]);

  for (const client of [one, same, other]) await client.end();
  const next = await place.handshake(running);
  expect(await ownPid(next)).toBe(pid);
  await next.end();
  await until('the processes are gone', () => processes().length === 0);
});

it('all clients share a process, which is told what Trunkline provides to each of them', async () => {
  await serve('all');
  const one = await place.handshake(running, { name: 'one', revision: '2025-06-18', capabilities: { roots: {} } });
  const other = await place.handshake(running, { name: 'other', capabilities: { sampling: {} } });
  expect(await ownPid(one)).toBe(await ownPid(other));
  expect(await told(one)).toEqual({
    protocolVersion: '2025-11-25',
    capabilities: { sampling: { context: {}, tools: {} }, elicitation: { form: {}, url: {} } },
    clientInfo: { name: 'trunkline', version: expect.any(String) },
  });
  expect(processes()).toHaveLength(1);
});
