import { describe, expect, it } from 'vitest';
import { BufferPool } from '../../src/io/buffer-pool.js';

const KIB = 1024;

/** Rooms of 128 and 512 KiB, and what was freed of them. */
function bufferPool(maxIdleBytes = 4096 * KIB) {
  const freed: Uint8Array[] = [];
  const made = new BufferPool({
    sizes: [128 * KIB, 512 * KIB],
    maxIdleBytes,
    free: (freeSpace) => void freed.push(freeSpace),
  });
  return { bufferPool: made, freed };
}

describe('a room', () => {
  it('comes in the smallest size that will do, or is as large as it has to be', () => {
    const { bufferPool: some } = bufferPool();
    expect([1, 128, 129, 512, 700].map((kib) => some.take(kib * KIB).length / KIB)).toEqual([128, 128, 512, 512, 700]);
  });

  it('is nobody else’s', () => {
    const { bufferPool: some } = bufferPool();
    const memories = Array.from({ length: 5 }, () => some.take(100 * KIB).buffer);
    expect(new Set(memories).size).toBe(5);
  });
});

describe('a room that was given back', () => {
  it('is the next one of its size, and nobody else has it meanwhile', () => {
    const { bufferPool: some } = bufferPool();
    const first = some.take(128 * KIB);
    some.release(first);
    expect(some.idleBytes).toBe(128 * KIB);
    expect(some.take(129 * KIB) === first).toBe(false);
    expect(some.take(100 * KIB) === first).toBe(true);
    expect(some.idleBytes).toBe(0);
    expect(some.take(100 * KIB) === first).toBe(false);
  });

  it('is taken before others that have been idle for longer', () => {
    const { bufferPool: some } = bufferPool();
    const [one, other] = [some.take(128 * KIB), some.take(128 * KIB)];
    some.release(one);
    some.release(other);
    expect(some.take(128 * KIB) === other).toBe(true);
  });

  it('stays as it is until all are through with it, where it is given back later', () => {
    const tasks: (() => void)[] = [];
    const some = new BufferPool({ maxIdleBytes: 4096 * KIB, later: (task) => void tasks.push(task) });
    const freeSpace = some.take(128 * KIB);
    some.releaseLater(freeSpace);
    expect(some.take(128 * KIB) === freeSpace).toBe(false);
    for (const task of tasks) task();
    expect(some.take(128 * KIB) === freeSpace).toBe(true);
  });

  it('may be told by any of its bytes, and goes back once', () => {
    const { bufferPool: some } = bufferPool();
    const freeSpace = some.take(128 * KIB);
    for (let time = 0; time < 2; time += 1) some.release(freeSpace.subarray(10, 20));
    expect(some.idleBytes).toBe(128 * KIB);
    expect(some.take(128 * KIB) === freeSpace).toBe(true);
    expect(some.take(128 * KIB) === freeSpace).toBe(false);
  });

  it('is freed beyond what may be idle, and when nothing is to be kept', () => {
    const { bufferPool: some, freed } = bufferPool(200 * KIB);
    const [one, other] = [some.take(128 * KIB), some.take(128 * KIB)];
    some.release(one);
    some.release(other);
    expect(some.idleBytes).toBe(128 * KIB);
    expect(freed).toEqual([other]);
    some.clear();
    expect(some.idleBytes).toBe(0);
    expect(freed).toEqual([other, one]);
    expect(some.take(128 * KIB) === one).toBe(false);
  });

  it('is none of theirs when it is from elsewhere, or for small lines', () => {
    const { bufferPool: some, freed } = bufferPool();
    some.release(new Uint8Array(128 * KIB));
    some.release(some.slab());
    expect(some.idleBytes).toBe(0);
    expect(freed).toEqual([]);
  });
});
