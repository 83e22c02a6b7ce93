import { describe, expect, it } from 'vitest';
import { createRooms } from '../../src/compose/create-rooms.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/processes.js';

const MIB = 1024 * 1024;

describe('memory for large messages', () => {
  it('is used again while more come, and freed some seconds after the last one without the garbage collector', async () => {
    const clock = new FakeClock();
    const rooms = createRooms(clock);
    const before = process.memoryUsage().arrayBuffers;
    const room = rooms.take(10 * MIB);
    rooms.giveBack(room);
    clock.advance(2_000);
    expect(rooms.take(10 * MIB) === room).toBe(true);
    rooms.giveBack(room);
    clock.advance(2_000);
    expect(process.memoryUsage().arrayBuffers - before).toBeGreaterThanOrEqual(10 * MIB);
    clock.advance(2_000);
    expect(room.length).toBe(0);
    await until('it is freed', () => process.memoryUsage().arrayBuffers - before < MIB);
  });

  it('is bounded: what comes back beyond that is freed at once', () => {
    const rooms = createRooms(new FakeClock());
    const taken = Array.from({ length: 20 }, () => rooms.take(10 * MIB));
    for (const room of taken) rooms.giveBack(room);
    expect(rooms.idleBytes).toBeLessThanOrEqual(112 * MIB);
    expect(taken.filter(({ length }) => length === 0)).toHaveLength(17);
    rooms.clear();
  });
});
