import { describe, expect, it } from 'vitest';
import { BufferPool, Lease } from '../../../src/wire/io/buffer-pool.js';

const KIB = 1024;

/** Buffers of 128 and 512 KiB, and which of them were freed. */
function bufferPool(maxIdleBytes = 4096 * KIB) {
  const freed: Uint8Array[] = [];
  const made = new BufferPool({
    sizes: [128 * KIB, 512 * KIB],
    maxIdleBytes,
    free: (memory) => void freed.push(memory),
  });
  return { bufferPool: made, freed };
}

describe('a leased buffer', () => {
  it('comes in the smallest size that will do, or is as large as it has to be', () => {
    const { bufferPool: pool } = bufferPool();
    const sizes = [1, 128, 129, 512, 700].map((kib) => pool.lease(kib * KIB).memory.length / KIB);
    expect(sizes).toEqual([128, 128, 512, 512, 700]);
  });

  it('is leased to nobody else', () => {
    const { bufferPool: pool } = bufferPool();
    const memories = Array.from({ length: 5 }, () => pool.lease(100 * KIB).memory.buffer);
    expect(new Set(memories).size).toBe(5);
  });
});

describe('a buffer whose lease was released', () => {
  it('is the next one of its size, and leased to nobody else meanwhile', () => {
    const { bufferPool: pool } = bufferPool();
    const first = pool.lease(128 * KIB);
    first.release();
    expect(pool.idleBytes).toBe(128 * KIB);
    expect(pool.lease(129 * KIB).memory === first.memory).toBe(false);
    expect(pool.lease(100 * KIB).memory === first.memory).toBe(true);
    expect(pool.idleBytes).toBe(0);
    expect(pool.lease(100 * KIB).memory === first.memory).toBe(false);
  });

  it('is used again before others that have been idle for longer', () => {
    const { bufferPool: pool } = bufferPool();
    const [one, other] = [pool.lease(128 * KIB), pool.lease(128 * KIB)];
    one.release();
    other.release();
    expect(pool.lease(128 * KIB).memory === other.memory).toBe(true);
  });

  it('stays as it is until the code that is running has returned', () => {
    const tasks: (() => void)[] = [];
    const pool = new BufferPool({ maxIdleBytes: 4096 * KIB, later: (task) => void tasks.push(task) });
    const { memory } = pool.lease(128 * KIB);
    Lease.of(memory)?.release();
    expect(pool.lease(128 * KIB).memory === memory).toBe(false);
    for (const task of tasks) task();
    expect(pool.lease(128 * KIB).memory === memory).toBe(true);
  });

  it('becomes idle once, however often the lease is released', () => {
    const { bufferPool: pool } = bufferPool();
    const lease = pool.lease(128 * KIB);
    for (let time = 0; time < 3; time += 1) lease.release();
    expect(pool.idleBytes).toBe(128 * KIB);
    const next = pool.lease(128 * KIB);
    expect(next.memory === lease.memory).toBe(true);
    lease.release();
    expect(pool.idleBytes).toBe(0);
    expect(pool.lease(128 * KIB).memory === next.memory).toBe(false);
  });

  it('is freed beyond what may be idle, and when idle buffers are cleared', () => {
    const { bufferPool: pool, freed } = bufferPool(200 * KIB);
    const [one, other] = [pool.lease(128 * KIB), pool.lease(128 * KIB)];
    one.release();
    other.release();
    expect(pool.idleBytes).toBe(128 * KIB);
    expect(freed).toEqual([other.memory]);
    pool.clear();
    expect(pool.idleBytes).toBe(0);
    expect(freed).toEqual([other.memory, one.memory]);
    expect(pool.lease(128 * KIB).memory === one.memory).toBe(false);
  });
});

describe('a buffer whose lease was discarded', () => {
  it('is freed, not kept, once all that it is shared with are released', () => {
    const { bufferPool: pool, freed } = bufferPool();
    const [first, other] = [pool.lease(128 * KIB), pool.lease(128 * KIB)];
    const share = first.retain();
    first.discard();
    first.discard();
    expect(freed).toEqual([]);
    share.release();
    other.release();
    other.discard();
    expect([freed.length, freed[0] === first.memory, pool.idleBytes]).toEqual([1, true, 128 * KIB]);
  });
});

describe('a shared lease', () => {
  it('keeps the buffer until each share is released, in whatever order', () => {
    for (const order of [
      [0, 1, 2],
      [2, 0, 1],
      [1, 2, 0],
    ]) {
      const { bufferPool: pool } = bufferPool();
      const first = pool.lease(128 * KIB);
      const leases = [first, first.retain(), first.retain()];
      for (const index of order.slice(0, 2)) {
        leases[index]?.release();
        leases[index]?.release();
        expect(pool.idleBytes).toBe(0);
      }
      leases[order[2] ?? 0]?.release();
      expect(pool.idleBytes).toBe(128 * KIB);
    }
  });
});

describe('the lease of a line', () => {
  it('is found by any of its bytes until it is released', () => {
    const { bufferPool: pool } = bufferPool();
    const lease = pool.lease(128 * KIB);
    const line = lease.memory.subarray(10, 20);
    expect(Lease.of(line)).toBe(lease);
    lease.release();
    expect(Lease.of(line)).toBeUndefined();
    const next = pool.lease(128 * KIB);
    expect(Lease.of(line)).toBe(next);
  });

  it('does not exist for a small line, or one that is from elsewhere', () => {
    const { bufferPool: pool } = bufferPool();
    expect(Lease.of(pool.slab())).toBeUndefined();
    expect(Lease.of(new Uint8Array(128 * KIB))).toBeUndefined();
  });
});
