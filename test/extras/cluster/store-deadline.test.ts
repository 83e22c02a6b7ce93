// How long a command waits for a store that the test plays.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openRedisStore } from '../../../src/extras/cluster/redis-store.js';
import { type ClusterStore, StoreUnavailable } from '../../../src/extras/cluster/store.js';

const NOTHING = '$-1\r\n';
const server = createServer();
let store: ClusterStore;
let socket: Socket;
/** Number of commands that have arrived since the connection was made. */
let asked = 0;

beforeEach(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const location = { addresses: [{ host: '127.0.0.1', port }], isTls: false, database: 0 } as const;
  store = await openRedisStore({ location, name: 'trunkline', commandMs: 250 });
  const accepted = once(server, 'connection');
  const connected = store.connect();
  [socket] = await accepted;
  await once(socket, 'data');
  socket.write(NOTHING);
  await connected;
  asked = 0;
  socket.on('data', (bytes) => {
    asked += bytes.toString().split('GET').length - 1;
  });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(async () => {
  vi.useRealTimers();
  await store.close();
  server.close();
});

/** Begins commands that reach the store. */
async function commands(count: number): Promise<Promise<unknown>[]> {
  const begun = Array.from({ length: count }, (_, at) => store.read(`${at}`).catch((error: unknown) => error));
  while (asked < count) await nextTurn();
  return begun;
}

/** Lets time pass in which this process runs. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    vi.advanceTimersByTime(10);
    await nextTurn();
  }
}

describe('a command at a store', () => {
  it('fails when no answer comes for 250 ms', async () => {
    const [only] = await commands(1);
    await pass(260);
    expect(await only).toBeInstanceOf(StoreUnavailable);
  });

  it('waits longer while answers to others come, and fails 250 ms after the last of them', async () => {
    const [first, second, third, last] = await commands(4);
    for (const each of [first, second, third]) {
      await pass(200);
      socket.write(NOTHING);
      expect(await each).toBeUndefined();
    }
    await pass(310);
    expect(await last).toBeInstanceOf(StoreUnavailable);
  });

  it('does not fail because this process was held up for seconds', async () => {
    const [only] = await commands(1);
    vi.advanceTimersByTime(5_000);
    await nextTurn();
    socket.write(NOTHING);
    expect(await only).toBeUndefined();
  });
});
