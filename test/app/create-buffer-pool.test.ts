import { describe, expect, it } from 'vitest';
import { createBufferPool } from '../../src/app/create-buffer-pool.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/processes.js';

const MIB = 1024 * 1024;

describe('memory for large messages', () => {
  it('is used again while more come, and freed some seconds after the last one without the garbage collector', async () => {
    const clock = new FakeClock();
    const bufferPool = createBufferPool(clock);
    const before = process.memoryUsage().arrayBuffers;
    const freeSpace = bufferPool.take(10 * MIB);
    bufferPool.release(freeSpace);
    clock.advance(2_000);
    expect(bufferPool.take(10 * MIB) === freeSpace).toBe(true);
    bufferPool.release(freeSpace);
    clock.advance(2_000);
    expect(process.memoryUsage().arrayBuffers - before).toBeGreaterThanOrEqual(10 * MIB);
    clock.advance(2_000);
    expect(freeSpace.length).toBe(0);
    await until('it is freed', () => process.memoryUsage().arrayBuffers - before < MIB);
  });

  it('is bounded: what comes back beyond that is freed at once', () => {
    const bufferPool = createBufferPool(new FakeClock());
    const taken = Array.from({ length: 20 }, () => bufferPool.take(10 * MIB));
    for (const freeSpace of taken) bufferPool.release(freeSpace);
    expect(bufferPool.idleBytes).toBeLessThanOrEqual(112 * MIB);
    expect(taken.filter(({ length }) => length === 0)).toHaveLength(17);
    bufferPool.clear();
  });
});
