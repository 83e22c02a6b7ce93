import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { AwakeClock, watchEventLoop } from '../../../src/host/observe/system-clock.js';
import { FakeClock } from '../../support/fake-clock.js';

const HOUR_MS = 3_600_000;
/** The clock of a machine that sleeps is read this often. */
const BEAT_MS = 5_000;

const clock = new FakeClock();
const onHeld = vi.fn();

describe('the delay of the event loop', () => {
  it('F82: is that of the longest work, less what one measurement may miss, and is reported once', async () => {
    const watch = watchEventLoop(clock, 500, onHeld);
    onTestFinished(() => watch.close());
    const work = () => {
      const until = performance.now() + 700;
      while (performance.now() < until);
      return watch.maxMs;
    };
    // The first work may come before the first tick of the timer, which has nothing to compare with.
    await expect.poll(work).toBeGreaterThanOrEqual(550);
    expect(watch.p99Ms).toBeLessThanOrEqual(watch.maxMs);
    clock.advance(59_999);
    expect(onHeld).not.toHaveBeenCalled();
    clock.advance(1);
    // Two timers measure the longest delay and that since the last look.
    expect(onHeld.mock.calls).toEqual([[expect.closeTo(watch.maxMs, -2)]]);
    clock.advance(60_000);
    expect(onHeld).toHaveBeenCalledTimes(1);
    watch.close();
    expect(clock.pending).toBe(0);
  });
});

describe('the clock of a machine that sleeps', () => {
  const machine = new FakeClock();
  const awake = new AwakeClock(machine, (task, everyMs) => {
    const repeat = () => {
      task();
      machine.schedule(everyMs, repeat);
    };
    machine.schedule(everyMs, repeat);
  });

  it.each([
    ['a timer that fell due during eight hours of sleep', 8 * HOUR_MS, 60_000],
    ['a timer that fell due during 16 s in which the process was stopped', 16_000, 10_000],
  ])('%s waits for the time that is left of it', (_, sleepMs, delayMs) => {
    const task = vi.fn();
    awake.schedule(delayMs, task);
    machine.advance(4_000);
    machine.jump(sleepMs);
    machine.advance(delayMs - 4_001);
    expect(task).not.toHaveBeenCalled();
    machine.advance(BEAT_MS);
    expect(task).toHaveBeenCalledOnce();
  });

  it('counts no sleep, and of the time before it all but the last beat', () => {
    const before = awake.now();
    machine.advance(7_000);
    machine.jump(8 * HOUR_MS);
    machine.advance(30_000);
    machine.jump(8 * HOUR_MS);
    expect(awake.now() - before).toBeLessThanOrEqual(37_000);
    expect(awake.now() - before).toBeGreaterThanOrEqual(37_000 - 2 * BEAT_MS);
  });

  it('counts a busy event loop and a long wait as time', () => {
    const before = awake.now();
    machine.jump(15_000);
    machine.advance(HOUR_MS);
    expect(awake.now() - before).toBe(HOUR_MS + 15_000);
  });

  it('runs no task that was cancelled, also after it has waited again', () => {
    const task = vi.fn();
    const cancel = awake.schedule(60_000, task);
    machine.jump(8 * HOUR_MS);
    cancel();
    machine.advance(HOUR_MS);
    expect(task).not.toHaveBeenCalled();
  });
});
