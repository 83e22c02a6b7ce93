import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FailureWindow, TokenBucket } from '../../../src/downstream/http/rate-limit.js';

describe('a token bucket', () => {
  it('says how long to wait, and keeps its word', () => {
    const bucket = new TokenBucket({ capacity: 1, perSecond: 4, now: 0 });
    expect(bucket.take(0)).toBe(0);
    expect(bucket.take(0)).toBe(250);
    expect(bucket.take(100)).toBe(150);
    expect(bucket.take(250)).toBe(0);
  });

  it('never gives more in any time than the burst and what the rate adds', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { maxLength: 500 }), (gaps) => {
        const bucket = new TokenBucket({ capacity: 10, perSecond: 100, now: 0 });
        let now = 0;
        let given = 0;
        for (const gap of gaps) {
          now += gap;
          if (bucket.take(now) === 0) given += 1;
        }
        expect(given).toBeLessThanOrEqual(10 + now / 10 + 1e-6);
      }),
    );
  });
});

describe('a window of failures', () => {
  it('lets so many pass from its first, for each address by itself', () => {
    const failures = new FailureWindow({ limit: 2, windowMs: 1_000 });
    expect([failures.count('a', 0), failures.count('a', 100), failures.count('a', 400)]).toEqual([0, 0, 600]);
    expect(failures.count('b', 400)).toBe(0);
    expect(failures.count('a', 999)).toBe(1);
    expect(failures.count('a', 1_000)).toBe(0);
  });

  it('forgets the oldest rather than grow without end', () => {
    const failures = new FailureWindow({ limit: 1, windowMs: 1_000 });
    failures.count('first', 0);
    for (let n = 0; n < 5_000; n += 1) failures.count(`address ${n}`, 1);
    expect(failures.count('first', 2)).toBe(0);
    expect(failures.count('address 4999', 2)).toBe(999);
  });
});
