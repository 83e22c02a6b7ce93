import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Leases } from '../../../src/extras/cluster/leases.js';
import { type ClusterStore, StoreUnavailable } from '../../../src/extras/cluster/store.js';
import { FakeClock } from '../../support/fake-clock.js';
import { until } from '../../support/processes.js';
import { MemoryServer, MemoryStore } from './memory-store.js';

/** A gateway with a connection of its own to the store. The clock of its leases is moved by the test. */
interface Gateway {
  readonly store: ClusterStore;
  readonly leases: Leases;
  /** The leases that it lost, with the time for an end and the reason. */
  readonly lost: [ms: number, because: string][];
}

let server: MemoryServer;
let clock: FakeClock;
const opened: Gateway[] = [];

beforeEach(() => {
  server = new MemoryServer();
  clock = new FakeClock();
});

afterEach(async () => {
  for (const { leases, store } of opened.splice(0)) {
    await leases.release();
    await store.close();
  }
  // A renewal that has nothing left to renew schedules no other one.
  await clock.advanceSlowly(10_000, () => Promise.resolve());
});

async function gateway(self: string): Promise<Gateway> {
  const store = new MemoryStore(server);
  await store.beat(self, '', 10_000);
  const onInternalError = (error: unknown) => expect(error).toBeUndefined();
  const each = { store, leases: new Leases({ store, self, clock, isKept: () => true, onInternalError }), lost: [] };
  opened.push(each);
  return each;
}

/** Two gateways at a store that has had its leases for long. */
async function two() {
  const [one, other] = [await gateway('one'), await gateway('other')];
  await expect(one.leases.take('p')).rejects.toThrow(StoreUnavailable);
  clock.advance(15_000);
  expect(await one.leases.take('p')).toBe('one');
  one.leases.onLost('p', (...how) => one.lost.push(how));
  return { one, other };
}

/** Lets the renewal happen that is due next, or fail. */
async function renew({ store }: Gateway, isAway = false): Promise<void> {
  clock.advance(3_000);
  await until('the renewal is over', () => clock.pending > 0);
  expect(store.isUp).toBe(!isAway);
}

describe('Leases', () => {
  it('are taken by one gateway, and by the next one after they were released', async () => {
    const { one, other } = await two();
    expect(await other.leases.take('p')).toBe('one');
    expect(await other.leases.take('q')).toBe('other');
    await other.leases.release('p', 'q');
    expect(await other.leases.take('p')).toBe('one');
    await one.leases.release('p');
    expect(await other.leases.take('p')).toBe('other');
    expect(one.lost).toEqual([]);
  });

  it('are given back before the store is closed by a gateway that waits for that', async () => {
    const { one, other } = await two();
    const released = one.leases.release();
    await one.leases.none();
    await one.store.close();
    await released;
    expect(await other.leases.take('p')).toBe('other');
  });

  it('count as taken while the store is asked, because others may learn of them first', async () => {
    const { one, other } = await two();
    expect([one.leases.has('p'), other.leases.has('p')]).toEqual([true, false]);
    let answered = () => {};
    const answer = new Promise<void>((resolve) => {
      answered = resolve;
    });
    const { store } = other;
    const late: ClusterStore = Object.create(store, {
      claim: { value: (...of: Parameters<ClusterStore['claim']>) => store.claim(...of).finally(() => answer) },
      read: { value: (name: string) => store.read(name) },
      release: { value: (...of: Parameters<ClusterStore['release']>) => store.release(...of) },
    });
    const leases = new Leases({ store: late, self: 'other', clock, isKept: () => true, onInternalError: () => {} });
    const taking = leases.take('q');
    await expect.poll(() => one.store.holderOf('q')).toBe('other');
    expect(leases.has('q')).toBe(true);
    answered();
    await taking;
    expect(leases.has('q')).toBe(true);
    await leases.release();
  });

  it('F372: are not taken while a store that lost its data may lack those of others, who renew them in that time', async () => {
    const { one, other } = await two();
    server.kill();
    server.restart();
    await expect(other.leases.take('p')).rejects.toThrow(StoreUnavailable);
    await Promise.all([one, other].map(({ store }) => store.beat('x', '', 1_000)));
    await expect(other.leases.take('p')).rejects.toThrow('the store of the cluster is new or has lost its data');
    for (const _ of [1, 2, 3, 4]) await renew(one);
    await expect(other.leases.take('p')).rejects.toThrow('the store of the cluster is new or has lost its data');
    await renew(one);
    expect(await other.leases.take('p')).toBe('one');
    expect(one.lost).toEqual([]);
  });

  it('wait anew if the store loses its data again in that time', async () => {
    const { one, other } = await two();
    server.entries.clear();
    await expect(other.leases.take('p')).rejects.toThrow(StoreUnavailable);
    clock.advance(14_999);
    server.entries.clear();
    await expect(other.leases.take('p')).rejects.toThrow(StoreUnavailable);
    clock.advance(14_999);
    await expect(other.leases.take('p')).rejects.toThrow(StoreUnavailable);
    clock.advance(1);
    expect(await other.leases.take('q')).toBe('other');
    await one.leases.release();
  });

  it('F372: are given up with time to end what they protect, when the store does not answer', async () => {
    const { one } = await two();
    await renew(one);
    server.stop();
    for (const _ of [1, 2]) await renew(one, true);
    expect(one.lost).toEqual([]);
    clock.advance(3_000);
    await until('the lease is lost', () => one.lost.length > 0);
    expect(one.lost).toEqual([[5_000, expect.stringContaining('does not answer')]]);
    server.restart();
  });

  it('are kept when the store is away for a shorter time', async () => {
    const { one, other } = await two();
    server.stop();
    for (const _ of [1, 2]) await renew(one, true);
    server.restart();
    await one.store.beat('x', '', 1_000);
    await renew(one);
    expect(await other.leases.take('p')).toBe('one');
    expect(one.lost).toEqual([]);
  });

  it('are over at once after a pause of the process in which others could take them', async () => {
    const { one, other } = await two();
    server.entries.delete('claim:p');
    expect(await other.leases.take('p')).toBe('other');
    clock.jump(15_000);
    expect(one.lost).toEqual([[0, 'this gateway could not renew its lease in time']]);
    const late: number[] = [];
    one.leases.onLost('p', (ms) => late.push(ms));
    expect(late).toEqual([0]);
  });

  it('are over at once when another gateway has them', async () => {
    const { one } = await two();
    server.set('claim:p', 'other');
    clock.advance(3_000);
    await until('the lease is lost', () => one.lost.length > 0);
    expect(one.lost).toEqual([[0, 'another gateway has taken its lease']]);
  });
});
