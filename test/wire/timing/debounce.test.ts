import { describe, expect, it } from 'vitest';
import { Debounce } from '../../../src/wire/timing/debounce.js';
import { FakeClock } from '../../support/fake-clock.js';
import { flush } from '../../support/wire.js';

function debouncing({ everyMs = 1_000 } = {}) {
  const clock = new FakeClock();
  const starts: number[] = [];
  let finish = () => {};
  let isSlow = false;
  const debounce = new Debounce({
    clock,
    everyMs,
    run: () => {
      starts.push(clock.now());
      if (!isSlow) return;
      return new Promise<void>((resolve) => {
        finish = resolve;
      });
    },
  });
  return {
    clock,
    debounce,
    starts,
    beSlow: () => {
      isSlow = true;
    },
    finish: async () => {
      finish();
      await flush();
    },
    advance: async (ms: number) => {
      clock.advance(ms);
      await flush();
    },
  };
}

describe('Debounce', () => {
  it('makes one run of requests that come together, at once', async () => {
    const { debounce, starts, clock, advance } = debouncing();
    for (let count = 0; count < 10_000; count += 1) debounce.request();
    expect(starts).toEqual([]);
    await advance(0);
    expect(starts).toEqual([0]);
    expect(clock.pending).toBe(0);
  });

  it('never runs more often than its pace', async () => {
    const { debounce, starts, advance } = debouncing();
    for (let at = 0; at < 3_000; at += 10) {
      debounce.request();
      await advance(10);
    }
    expect(starts).toEqual([0, 1_000, 2_000, 3_000]);
  });

  it('has one run in progress and at most one more requested', async () => {
    const { debounce, starts, beSlow, finish, clock, advance } = debouncing();
    beSlow();
    debounce.request();
    await advance(0);
    for (let count = 0; count < 100; count += 1) debounce.request();
    await advance(5_000);
    expect(starts).toEqual([0]);
    await finish();
    await advance(0);
    expect(starts).toEqual([0, 5_000]);
    await finish();
    await advance(5_000);
    expect(starts).toEqual([0, 5_000]);
    expect(clock.pending).toBe(0);
  });

  it('does not run what was requested before it was closed', async () => {
    const { debounce, starts, clock, advance } = debouncing();
    debounce.request();
    debounce.close();
    expect(clock.pending).toBe(0);
    debounce.request();
    await advance(5_000);
    expect(starts).toEqual([]);
  });

  it('does not run again when it was closed during a run', async () => {
    const { debounce, starts, beSlow, finish, clock, advance } = debouncing();
    beSlow();
    debounce.request();
    await advance(200);
    debounce.request();
    debounce.close();
    await finish();
    await advance(5_000);
    expect(starts).toEqual([0]);
    expect(clock.pending).toBe(0);
  });
});
