import { describe, expect, it } from 'vitest';
import { SharedLimit } from '../../src/io/shared-limit.js';

describe('SharedLimit', () => {
  it('gives what there is, and no more until some is given back', () => {
    const limit = new SharedLimit(10);
    expect([limit.take(6), limit.take(5), limit.take(4), limit.take(1)]).toEqual([true, false, true, false]);
    limit.give(6);
    expect(limit.take(5)).toBe(true);
    expect(limit).toMatchObject({ taken: 9, max: 10, refusals: 2 });
  });

  it('can be overdrawn by who must have it, and then gives nothing', () => {
    const limit = new SharedLimit(10);
    limit.takeAnyway(11);
    expect(limit.take(0)).toBe(false);
    limit.give(11);
    expect([limit.taken, limit.take(10)]).toEqual([0, true]);
  });

  it('leaves what was taken to its holders when it becomes smaller', () => {
    const limit = new SharedLimit(10);
    limit.take(8);
    limit.limitTo(5);
    expect([limit.taken, limit.take(1)]).toEqual([8, false]);
    limit.give(8);
    expect(limit.take(5)).toBe(true);
  });
});
