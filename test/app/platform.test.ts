import { describe, expect, it } from 'vitest';
import { createBufferPool } from '../../src/app/platform.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/processes.js';

const MIB = 1024 * 1024;

describe('memory for large messages', () => {
  it('is used again while more come, and freed some seconds after the last one without the garbage collector', async () => {
    const clock = new FakeClock();
    const bufferPool = createBufferPool(clock);
    const before = process.memoryUsage().arrayBuffers;
    const first = bufferPool.lease(10 * MIB);
    first.release();
    await new Promise(setImmediate);
    clock.advance(2_000);
    const second = bufferPool.lease(10 * MIB);
    expect(second.memory === first.memory).toBe(true);
    second.release();
    await new Promise(setImmediate);
    clock.advance(2_000);
    expect(first.memory.length).toBeGreaterThanOrEqual(10 * MIB);
    clock.advance(2_000);
    expect(first.memory.length).toBe(0);
    await until('it is freed', () => process.memoryUsage().arrayBuffers - before < MIB);
  });

  it('is bounded: what is released beyond that is freed at once', async () => {
    const bufferPool = createBufferPool(new FakeClock());
    const leases = Array.from({ length: 20 }, () => bufferPool.lease(10 * MIB));
    for (const lease of leases) lease.release();
    await new Promise(setImmediate);
    expect(bufferPool.idleBytes).toBeLessThanOrEqual(112 * MIB);
    expect(leases.filter(({ memory }) => memory.length === 0)).toHaveLength(17);
    bufferPool.clear();
  });
});
