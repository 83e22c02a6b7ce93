import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CircuitBreaker } from '../../../src/upstream/health/circuit-breaker.js';
import type { Clock } from '../../../src/wire/timing/clock.js';

/** opossum reads the time of the platform, so that is what stands still here. */
const clock: Clock = { now: () => Date.now(), schedule: () => () => {} };

const FAILURES = [false, false, false, false, false];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
});

afterEach(() => {
  vi.useRealTimers();
});

function breaking() {
  let trials = 0;
  let finish: (answered: boolean) => void = () => {};
  const breaker = new CircuitBreaker(clock, () => {
    trials += 1;
    return new Promise((resolve) => {
      finish = resolve;
    });
  });
  const record = async (...outcomes: boolean[]) => {
    for (const outcome of outcomes) {
      if (outcome) breaker.succeeded(clock.now());
      else breaker.failed();
    }
    await settled();
  };
  return {
    breaker,
    record,
    trials: () => trials,
    finishTrial: async (answered: boolean) => {
      finish(answered);
      await settled();
    },
  };
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

async function wait(ms: number): Promise<void> {
  vi.advanceTimersByTime(ms);
  await settled();
}

describe('a breaker', () => {
  it('concludes nothing from fewer calls than it needs', async () => {
    const { breaker, record } = breaking();
    await record(...FAILURES.slice(1));
    expect(breaker.state).toBe('closed');
    await record(false);
    expect(breaker.state).toBe('open');
  });

  it('stays closed while most calls succeed', async () => {
    const { breaker, record } = breaking();
    for (let round = 0; round < 20; round += 1) await record(true, true, false);
    expect(breaker.state).toBe('closed');
  });

  it('opens when half of the calls fail', async () => {
    const { breaker, record } = breaking();
    await record(true, true, true, false, false, false);
    expect(breaker.state).toBe('open');
  });

  it('forgets calls that are older than its window', async () => {
    const { breaker, record } = breaking();
    await record(...FAILURES.slice(1));
    await wait(30_001);
    await record(...FAILURES.slice(1));
    expect(breaker.state).toBe('closed');
  });

  it('counts a stream of successes no further than they matter', async () => {
    const { breaker, record } = breaking();
    for (let count = 0; count < 3_000; count += 1) breaker.succeeded(clock.now());
    await record(...Array.from({ length: 950 }, () => false));
    expect(breaker.state).toBe('closed');
    await record(...Array.from({ length: 51 }, () => false));
    expect(breaker.state).toBe('open');
  });

  it('opens before the call that failed can release its slot', () => {
    const { breaker } = breaking();
    for (let count = 0; count < FAILURES.length; count += 1) breaker.failed();
    expect([breaker.state, breaker.retryAfterMs]).toEqual(['open', 30_000]);
    breaker.close();
  });

  it('does not care about calls that end while it is open', async () => {
    const { breaker, record, trials } = breaking();
    await record(...FAILURES);
    await record(true, true, false, true);
    expect(breaker.state).toBe('open');
    expect(breaker.retryAfterMs).toBe(30_000);
    expect(trials()).toBe(0);
  });
});

describe('an open breaker', () => {
  it('tries once, with a request of our own, and closes when it is answered', async () => {
    const { breaker, record, trials, finishTrial } = breaking();
    await record(...FAILURES);
    await wait(29_999);
    expect(trials()).toBe(0);
    await wait(1);
    expect(trials()).toBe(1);
    expect(breaker.state).toBe('half-open');
    expect(breaker.retryAfterMs).toBe(0);
    await record(false, true, false);
    await wait(100_000);
    expect(trials()).toBe(1);
    await finishTrial(true);
    expect(breaker.state).toBe('closed');
  });

  it('tries again every 30 s until it is answered, and then concludes nothing from the failures before', async () => {
    const { breaker, record, trials, finishTrial } = breaking();
    await record(...FAILURES);
    for (const round of [1, 2, 3]) {
      expect([breaker.state, breaker.retryAfterMs]).toEqual(['open', 30_000]);
      await wait(30_000);
      expect(trials()).toBe(round);
      await finishTrial(round === 3);
    }
    // The trial is the first of five calls.
    await record(...FAILURES.slice(2));
    expect(breaker.state).toBe('closed');
    await record(false);
    expect(breaker.state).toBe('open');
    breaker.close();
  });
});

describe('a closed-down breaker', () => {
  it('leaves no timer, whatever state it was in', async () => {
    const closed = breaking();
    closed.breaker.close();
    expect(vi.getTimerCount()).toBe(0);

    const open = breaking();
    await open.record(...FAILURES);
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    open.breaker.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('leaves none when its trial ends afterwards', async () => {
    for (const answered of [true, false]) {
      const { breaker, record, finishTrial } = breaking();
      await record(...FAILURES);
      await wait(30_000);
      breaker.close();
      await finishTrial(answered);
      await wait(600_000);
      expect(vi.getTimerCount()).toBe(0);
    }
  });
});
