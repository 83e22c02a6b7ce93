import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairMemory, SharedLimit } from '../../../src/wire/io/shared-limit.js';
import { repetitions } from '../../support/repetitions.js';

describe('SharedLimit', () => {
  it('grants what there is, and no more until some is released', () => {
    const limit = new SharedLimit(10);
    expect([limit.tryAcquire(6), limit.tryAcquire(5), limit.tryAcquire(4), limit.tryAcquire(1)]).toEqual([
      true,
      false,
      true,
      false,
    ]);
    limit.release(6);
    expect(limit.tryAcquire(5)).toBe(true);
    expect(limit).toMatchObject({ used: 9, max: 10, refusals: 2 });
  });

  it('leaves what was acquired in use when it becomes smaller', () => {
    const limit = new SharedLimit(10);
    limit.tryAcquire(8);
    limit.limitTo(5);
    expect([limit.used, limit.tryAcquire(1)]).toEqual([8, false]);
    limit.release(8);
    expect(limit.tryAcquire(5)).toBe(true);
  });
});

/** A memory, the holders that join it, and the names of those that lost their bytes to another one. */
function sharing(max: number, exemptBytes?: number) {
  const memory = new FairMemory(max, exemptBytes);
  const evicted: string[] = [];
  const join = (name: string, owners: readonly string[] = []) =>
    memory.join({ owners, evict: () => evicted.push(name) });
  return { memory, evicted, join };
}

describe('FairMemory', () => {
  it('grants what there is, then takes from the largest holder', () => {
    const { memory, evicted, join } = sharing(10);
    const [small, late, early, needy] = ['small', 'late', 'early', 'needy'].map((name) => join(name));
    for (const [holder, bytes] of [
      [small, 1],
      [early, 5],
      [late, 3],
    ] as const)
      expect(memory.grow(holder as never, bytes)).toBe(true);
    expect([memory.used, evicted]).toEqual([9, []]);
    expect(memory.grow(needy as never, 3)).toBe(true);
    expect([memory.used, memory.evictions, evicted]).toEqual([7, 1, ['early']]);
    expect(early).toMatchObject({ bytes: 0 });
  });

  it('takes from the holder that grows, if that is the largest, and does not call it', () => {
    const { memory, evicted, join } = sharing(10);
    const [small, greedy] = [join('small'), join('greedy')];
    memory.grow(small, 4);
    expect(memory.grow(greedy, 7)).toBe(false);
    expect([small.bytes, greedy.bytes, memory.used, memory.evictions, evicted]).toEqual([4, 0, 4, 1, []]);
  });

  it('takes from the owner that holds the most, however small each of its pieces is', () => {
    const { memory, evicted, join } = sharing(10);
    for (const piece of ['1', '2', '3', '4', '5', '6']) memory.grow(join(piece, ['hoarder']), 1);
    const other = join('other', ['other']);
    expect(memory.grow(other, 4)).toBe(true);
    expect(memory.grow(other, 5)).toBe(true);
    expect(evicted).toEqual(['1']);
    expect(memory.grow(other, 6)).toBe(false);
  });

  it('takes from the part of the owner that holds the most', () => {
    const { memory, evicted, join } = sharing(10);
    memory.grow(join('a', ['token', 'quiet session']), 3);
    memory.grow(join('b', ['token', 'busy session']), 2);
    memory.grow(join('c', ['token', 'busy session']), 2);
    memory.grow(join('d', ['other token', 'busy session']), 3);
    expect(memory.grow(join('e', ['other token', 'third session']), 1)).toBe(true);
    expect(evicted).toEqual(['b']);
  });

  it('leaves a holder its exempt bytes, even beyond the limit, and takes nothing for them', () => {
    const { memory, evicted, join } = sharing(10, 2);
    memory.grow(join('large'), 10);
    const [one, two] = [join('one'), join('two')];
    expect([memory.grow(one, 2), memory.grow(two, 2), memory.used, evicted]).toEqual([true, true, 14, []]);
    expect(memory.grow(two, 3)).toBe(true);
    expect([memory.used, evicted]).toEqual([5, ['large']]);
  });

  it('leaves everybody what they hold when it becomes smaller, until somebody needs more', () => {
    const { memory, evicted, join } = sharing(10);
    const [one, two] = [join('one'), join('two')];
    memory.grow(one, 5);
    memory.grow(two, 3);
    memory.limitTo(5);
    expect([memory.used, memory.max, evicted]).toEqual([8, 5, []]);
    memory.grow(two, 4);
    expect([memory.used, evicted]).toEqual([4, ['one']]);
  });

  it('never holds more than the limit, and takes from nobody that holds less than an equal part', () => {
    const holders = 5;
    const step = fc.record({ who: fc.nat(holders - 1), bytes: fc.integer({ min: 1, max: 60 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const memory = new FairMemory(100);
        const lost: number[] = [];
        let held: number[] = [];
        const all = Array.from({ length: holders }, (_, who) =>
          memory.join({ evict: () => void lost.push(held[who] ?? 0) }),
        );
        for (const { who, bytes } of steps) {
          const holder = all[who] as (typeof all)[number];
          const grown = holder.bytes + bytes;
          held = all.map((each) => each.bytes);
          if (!memory.grow(holder, grown)) lost.push(grown);
          expect(memory.used).toBeLessThanOrEqual(100);
          expect(memory.used).toBe(all.reduce((sum, each) => sum + each.bytes, 0));
        }
        expect(lost.every((bytes) => bytes * holders > 100)).toBe(true);
        expect(memory.evictions).toBe(lost.length);
      }),
      { numRuns: repetitions({ full: 1_000, short: 100 }) },
    );
  });
});
