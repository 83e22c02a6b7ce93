import { describe, expect, it } from 'vitest';
import { SharedLimit } from '../../src/io/shared-limit.js';

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
