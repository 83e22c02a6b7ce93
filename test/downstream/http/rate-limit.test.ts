import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FailureWindow, FairBucket } from '../../../src/downstream/http/rate-limit.js';

describe('a bucket that senders share', () => {
  it('says how long to wait, and keeps its word', () => {
    const bucket = new FairBucket({ burst: 1, perSecond: 4, now: 0 });
    expect(bucket.take('a', 0)).toBe(0);
    expect(bucket.take('a', 0)).toBe(250);
    // The result is not exact, because the waiting time is a difference of fractions.
    expect(bucket.take('a', 100)).toBeCloseTo(150);
    expect(bucket.take('a', 250)).toBe(0);
  });

  it('never gives all senders together more than half a burst on top', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(20), fc.nat(40)), { maxLength: 500 }), (requests) => {
        const bucket = new FairBucket({ burst: 10, perSecond: 100, now: 0 });
        let now = 0;
        let given = 0;
        for (const [gap, sender] of requests) {
          now += gap;
          given += passed(bucket, `${sender}`, 1, now);
        }
        expect(given).toBeLessThanOrEqual(15 + now / 10 + 1e-6);
      }),
    );
  });

  it('always has a token for a sender that keeps to its share, however many others ask without end', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.nat(2_000), (flooders, from) => {
        const bucket = new FairBucket({ burst: 100, perSecond: 50, now: 0 });
        // There is one share more than there are senders.
        const period = ((flooders + 2) * 1_000) / 50;
        let due = from;
        const given = new Map<number, number>();
        for (let now = 0; now < 10_000; now += 5) {
          for (let n = 0; n < flooders; n += 1) given.set(n, (given.get(n) ?? 0) + passed(bucket, `${n}`, 1, now));
          if (now < due) continue;
          expect(bucket.take('modest', now)).toBe(0);
          due = now + period;
        }
        // No part of the rate is lost, and each of the other senders has about the same part.
        const total = [...given.values()].reduce((sum, count) => sum + count, (10_000 - from) / period);
        expect(total).toBeGreaterThan(100 + 50 * 10 * 0.95);
        expect(Math.min(...given.values())).toBeGreaterThan(500 / (flooders + 2) - 2);
      }),
      { numRuns: 50 },
    );
  });

  it('has tokens at once for a sender that is new, and does not remember those that went', () => {
    const bucket = new FairBucket({ burst: 100, perSecond: 50, now: 0 });
    expect(passed(bucket, 'flooder', 500, 0)).toBe(100);
    for (let n = 0; n < 10; n += 1) expect(passed(bucket, `${n}`, 2, 0)).toBe(2);
    expect(bucket.senders).toBe(11);
    bucket.take('later', 2_000);
    expect(bucket.senders).toBe(1);
    expect(passed(bucket, 'flooder', 500, 60_000)).toBe(100);
  });
});

const _gaps = fc.array(fc.nat(50), { maxLength: 500 });

/** Number of these requests that pass. */
function passed(bucket: FairBucket, sender: string, requests: number, now: number): number {
  let count = 0;
  for (let n = 0; n < requests; n += 1) count += bucket.take(sender, now) === 0 ? 1 : 0;
  return count;
}

describe('a window of failures', () => {
  it('forgets the oldest rather than grow without end', () => {
    const failures = new FailureWindow({ limit: 1, windowMs: 1_000 });
    failures.count('first', 0);
    for (let n = 0; n < 5_000; n += 1) failures.count(`address ${n}`, 1);
    expect(failures.count('first', 2)).toBe(0);
    expect(failures.count('address 4999', 2)).toBe(999);
  });
});
