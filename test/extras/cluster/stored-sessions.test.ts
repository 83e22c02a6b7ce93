import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { StoredSessions } from '../../../src/extras/cluster/stored-sessions.js';
import { MemoryServer, MemoryStore } from './memory-store.js';

const IDLE_MS = 1_800_000;
const DAY_MS = 86_400_000;
const LIMITS = { sessionIdleMs: IDLE_MS, maxSessionAgeMs: 7 * DAY_MS };
const KEY = randomBytes(32);

let server: MemoryServer;
let store: MemoryStore;

beforeEach(async () => {
  server = new MemoryServer();
  store = new MemoryStore(server);
  await store.connect();
});

const sessionsWith = (...keys: [Uint8Array, ...Uint8Array[]]) => new StoredSessions({ store, keys, limits: LIMITS });
/** The records, each with its name, its value and the time that it is stored for. */
const records = () => [...server.entries].map(([name, { value, ms }]) => ({ name, value: Buffer.from(value), ms }));

/** Writes a record, and waits until the store has it. */
async function write(sessions: StoredSessions, id: string, uris: readonly string[], level?: string): Promise<void> {
  sessions.write(id, { level, uris });
  await store.read('after it');
}

describe('StoredSessions', () => {
  it('stores the state of a session for a little longer than its idle time, and tells the store nothing about it', async () => {
    const sessions = sessionsWith(KEY);
    await write(sessions, 'the id', ['file:///home/ada/secret.txt'], 'debug');
    expect(await sessions.read('the id')).toEqual({ level: 'debug', uris: ['file:///home/ada/secret.txt'] });
    expect(await sessions.read('another id')).toBeUndefined();
    expect(records().map(({ ms }) => ms)).toEqual([Math.ceil(1.1 * IDLE_MS)]);
    expect(
      records()
        .map(({ name, value }) => `${name} ${value}`)
        .join(),
    ).not.toMatch(/the id|ada|debug|level/);
  });

  it('reads no record of another session, and those of an older key', async () => {
    const [older, newer] = [sessionsWith(KEY), sessionsWith(randomBytes(32), KEY)];
    await write(older, 'one', ['x://1']);
    expect(await newer.read('one')).toEqual({ uris: ['x://1'] });
    expect(await sessionsWith(randomBytes(32)).read('one')).toBeUndefined();
    await write(older, 'two', []);
    const [one, two] = records();
    server.set(two?.name ?? '', one?.value ?? '');
    expect(await older.read('two')).toBeUndefined();
  });

  it('stores the latest subscriptions that fit into 1 KiB', async () => {
    const sessions = sessionsWith(KEY);
    const uris = Array.from({ length: 60 }, () => `x://${randomBytes(20).toString('hex')}`);
    await write(sessions, 'the id', uris, 'info');
    const state = await sessions.read('the id');
    const kept = state === 'deleted' ? [] : (state?.uris ?? []);
    expect(kept).toEqual(uris.slice(-kept.length));
    expect(kept.length).toBeGreaterThan(20);
    expect(records()[0]?.value.length).toBeLessThanOrEqual(1_024);
  });

  it('F350: remembers a deleted session for as long as its id could be used, also if a gateway writes its state again', async () => {
    const sessions = sessionsWith(KEY);
    await sessions.delete('the id');
    expect(records().map(({ ms }) => ms)).toEqual([7 * DAY_MS]);
    await write(sessions, 'the id', ['x://1']);
    expect(await sessions.read('the id')).toBe('deleted');
  });

  it('knows nothing, and fails nothing, while the store is away', async () => {
    const sessions = sessionsWith(KEY);
    await sessions.delete('the id');
    server.stop();
    expect(await sessions.read('the id')).toBeUndefined();
    sessions.write('the id', { uris: [] });
    await sessions.delete('the id');
  });
});
