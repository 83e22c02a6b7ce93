import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRedisStore } from '../../../src/extras/cluster/redis-store.js';
import type { ClusterStore } from '../../../src/extras/cluster/store.js';
import { StoredSessions } from '../../../src/extras/cluster/stored-sessions.js';
import { RedisPlace, type RedisProcess } from '../../support/redis-place.js';

const IDLE_MS = 1_800_000;
const DAY_MS = 86_400_000;
const LIMITS = { sessionIdleMs: IDLE_MS, maxSessionAgeMs: 7 * DAY_MS };
const KEY = randomBytes(32);

let place: RedisPlace;
let redis: RedisProcess;
let store: ClusterStore;

beforeEach(async () => {
  place = new RedisPlace();
  redis = await place.start();
  const location = { addresses: [{ host: '127.0.0.1', port: redis.port }], isTls: false, database: 0 } as const;
  store = await openRedisStore({ location, name: 'test' });
  await store.beat('aaaaaaaaaa', '', 10_000);
});

afterEach(async () => {
  await store.close();
  await place.end();
});

const sessionsWith = (...keys: [Uint8Array, ...Uint8Array[]]) => new StoredSessions({ store, keys, limits: LIMITS });
const keysIn = async () => (await redis.ask('KEYS', '*record*')).trim().split('\n').filter(Boolean);

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
    const [key = '', ...others] = await keysIn();
    expect(others).toEqual([]);
    expect(Number(await redis.ask('PTTL', key)) / IDLE_MS).toBeCloseTo(1.1, 2);
    expect(`${key} ${await redis.ask('GET', key)}`).not.toMatch(/the id|ada|debug|level/);
  });

  it('reads no record of another session, and those of an older key', async () => {
    const [older, newer] = [sessionsWith(KEY), sessionsWith(randomBytes(32), KEY)];
    await write(older, 'one', ['x://1']);
    expect(await newer.read('one')).toEqual({ uris: ['x://1'] });
    expect(await sessionsWith(randomBytes(32)).read('one')).toBeUndefined();
    const [one = ''] = await keysIn();
    await write(older, 'two', []);
    const two = (await keysIn()).find((key) => key !== one) ?? '';
    await redis.ask('COPY', one, two, 'REPLACE');
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
    const [key = ''] = await keysIn();
    expect(Number(await redis.ask('STRLEN', key))).toBeLessThanOrEqual(1_024);
  });

  it('F350: remembers a deleted session for as long as its id could be used, also if a gateway writes its state again', async () => {
    const sessions = sessionsWith(KEY);
    await sessions.delete('the id');
    const [key = ''] = await keysIn();
    expect(Number(await redis.ask('PTTL', key)) / DAY_MS).toBeCloseTo(7, 2);
    await write(sessions, 'the id', ['x://1']);
    expect(await sessions.read('the id')).toBe('deleted');
  });

  it('knows nothing, and fails nothing, while the store is away', async () => {
    const sessions = sessionsWith(KEY);
    await sessions.delete('the id');
    redis.signal('SIGSTOP');
    expect(await sessions.read('the id')).toBeUndefined();
    sessions.write('the id', { uris: [] });
    await sessions.delete('the id');
  });
});
