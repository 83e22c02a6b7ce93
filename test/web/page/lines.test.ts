import { describe, expect, it } from 'vitest';
import { HISTORY_MINUTES } from '../../../src/status/usage-history.js';
import { callRate, linePath, spanOf, topOf, untilNow } from '../../../src/web/page/lines.js';

/** A report `seconds` after the start of a minute. */
function rateAt(seconds: number, ...calls: readonly number[]): number {
  return callRate(
    { at: 1_790_000 * 60_000 + seconds * 1_000, servers: [] },
    { server: 'files', calls, memory: [], cpu: [] },
  );
}

describe('the rate of calls', () => {
  it('is that of the last 60 s, also at the start of a minute', () => {
    expect(rateAt(0, 90, 30, 0)).toBe(30);
    expect(rateAt(30, 90, 30, 10)).toBe(25);
    expect(rateAt(59, 90, 30, 10)).toBe(11);
  });

  it('counts the calls of a gateway that began in this minute', () => {
    expect(rateAt(20, 4)).toBe(4);
  });
});

describe('a line', () => {
  it('goes from the first value to the last, with the largest at the top', () => {
    expect(linePath([0, 10, 5], 10, 100, 20)).toBe('M0.0 20.0h0L50.0 0.0L100.0 10.0');
    expect(linePath([5], 10, 100, 20)).toBe('M100.0 10.0h0');
  });

  it('is interrupted where no value is known, and shows a value between two interruptions', () => {
    expect(linePath([1, null, 1], 10, 100, 20)).toBe('M0.0 18.0h0M100.0 18.0h0');
  });

  it('names its time, which grows to an hour', () => {
    expect([spanOf([1, null]), spanOf(Array(HISTORY_MINUTES).fill(null))]).toEqual(['last 2 min', 'last hour']);
  });

  it('ends with what is known now, or with the value of the minute that runs', () => {
    expect(untilNow([1, 2], 7)).toEqual([1, 7]);
    expect(untilNow([1, 2], null)).toEqual([1, 2]);
    expect(untilNow([], null)).toEqual([null]);
  });

  it('of small values is low', () => {
    expect([topOf([1, null], 64), topOf([1, 90, null], 64)]).toEqual([64, 90]);
  });
});
