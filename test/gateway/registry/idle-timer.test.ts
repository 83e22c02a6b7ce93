import { describe, expect, it } from 'vitest';
import { IdleTimer } from '../../../src/gateway/registry/idle-timer.js';
import { FakeClock } from '../../support/fake-clock.js';

function watching(idleMs: number) {
  const clock = new FakeClock();
  const state = { usedAt: 0, isBusy: false, idles: 0 };
  const watch = new IdleTimer({
    clock,
    idleMs,
    usedAt: () => state.usedAt,
    isBusy: () => state.isBusy,
    onIdle: () => {
      state.idles += 1;
    },
  });
  watch.start();
  return { clock, state, watch };
}

describe('a watch over what is used', () => {
  it('counts from the last use', () => {
    const { clock, state } = watching(1_000);
    clock.advance(900);
    state.usedAt = clock.now();
    clock.advance(999);
    expect(state.idles).toBe(0);
    clock.advance(1);
    expect(state.idles).toBe(1);
  });

  it('takes another limit from now on, and none', () => {
    const { clock, state, watch } = watching(1_000);
    clock.advance(900);
    watch.configure(2_000);
    clock.advance(1_999);
    expect(state.idles).toBe(0);
    watch.configure(0);
    clock.advance(10_000);
    expect([state.idles, clock.pending]).toEqual([0, 0]);
  });

  it('has no timer where nothing is to be stopped, and none after its end', () => {
    expect(watching(0).clock.pending).toBe(0);
    const { clock, watch, state } = watching(1_000);
    watch.stop();
    clock.advance(5_000);
    expect([clock.pending, state.idles]).toEqual([0, 0]);
  });
});
