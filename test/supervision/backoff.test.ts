import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffDelayMs } from '../../src/supervision/backoff.js';

const options = { firstDelayMs: 500, maxDelayMs: 30_000 };
const noJitter = () => 0.5;

describe('backoffDelayMs', () => {
  it('doubles with each attempt up to the longest delay', () => {
    const delays = [0, 1, 2, 3, 4, 5, 6, 7, 2_000].map((attempt) => backoffDelayMs(attempt, options, noJitter));
    expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  it('stays within a fifth of the delay without jitter', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, drawn) => {
        const ratio = backoffDelayMs(attempt, options, () => drawn) / backoffDelayMs(attempt, options, noJitter);
        expect(ratio).toBeGreaterThanOrEqual(0.8 - 1e-9);
        expect(ratio).toBeLessThanOrEqual(1.2 + 1e-9);
      }),
    );
  });
});
