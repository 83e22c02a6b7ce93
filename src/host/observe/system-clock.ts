import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { Cancel, Clock, Timers } from '../../wire/timing/clock.js';

/** A local binding is faster than the global, which is looked up for each access. */
const { performance } = globalThis;

/** Timers keep the process alive until they fire. Delays are rounded up, since Node truncates them and would fire early. */
export const systemClock: Clock = {
  now: () => performance.now(),
  schedule: (delayMs, task) => {
    const timer = setTimeout(task, Math.ceil(delayMs));
    return () => clearTimeout(timer);
  },
};

/** Timers of this clock do not keep the process alive. */
export const backgroundClock: Timers = {
  schedule: (delayMs, task) => {
    const timer = setTimeout(task, Math.ceil(delayMs)).unref();
    return () => clearTimeout(timer);
  },
};

/** Longest time that counts as one step, in milliseconds. After more, the machine slept, or this process was stopped. */
const MAX_STEP_MS = 15_000;
/** Time between two readings, in milliseconds: short enough that a machine that is awake never makes a longer step. */
const BEAT_MS = 5_000;

/**
 * A clock that stands still while the machine sleeps. The monotonic clocks of Windows and macOS go on meanwhile, so that after eight hours
 * all timers would fire at once: calls would count as unanswered, and sessions as unused, although nobody could answer or use them.
 */
export class AwakeClock implements Clock {
  readonly #machine: Clock;
  #readAt: number;
  #sleptMs = 0;

  /** `repeat` reads the clock from time to time, so that only sleep makes a long step. */
  constructor(machine: Clock, repeat: (task: () => void, everyMs: number) => void) {
    this.#machine = machine;
    this.#readAt = machine.now();
    repeat(() => this.now(), BEAT_MS);
  }

  now(): number {
    const now = this.#machine.now();
    if (now - this.#readAt > MAX_STEP_MS) this.#sleptMs += now - this.#readAt;
    this.#readAt = now;
    return now - this.#sleptMs;
  }

  schedule(delayMs: number, task: () => void): Cancel {
    const dueAt = this.now() + delayMs;
    let cancel: Cancel;
    const wait = (ms: number) => {
      cancel = this.#machine.schedule(ms, () => {
        const leftMs = dueAt - this.now();
        if (leftMs > 0) wait(leftMs);
        else task();
      });
    };
    wait(delayMs);
    return () => cancel();
  }
}

/** Time between two measurements, in milliseconds: ten a second take 0.07 % of a processor. A shorter delay may be missed. */
const RESOLUTION_MS = 100;
const LOOK_EVERY_MS = 60_000;

/** Delays of the event loop. One long piece of work delays everything else. */
export interface EventLoopDelay {
  /** 99 % of the measured delays were no longer. */
  readonly p99Ms: number;
  readonly maxMs: number;
}

/**
 * Measures the delays of the event loop until `close` is called. Once a minute at most, `onHeld` gets the longest delay since
 * the last look, if it was more than `heldMs`. A delay of more than 15 s is sleep of the machine.
 */
export function watchEventLoop(
  clock: Timers,
  heldMs: number,
  onHeld: (ms: number) => void,
): EventLoopDelay & { close(): void } {
  const all = measure();
  const latest = measure();
  let cancel: Cancel;
  const look = () => {
    const ms = delayMs(latest.max);
    latest.reset();
    if (ms > heldMs && ms <= MAX_STEP_MS) onHeld(ms);
    cancel = clock.schedule(LOOK_EVERY_MS, look);
  };
  cancel = clock.schedule(LOOK_EVERY_MS, look);
  const awake = () => {
    if (delayMs(all.max) > MAX_STEP_MS) all.reset();
    return all;
  };
  return {
    get p99Ms() {
      return delayMs(awake().percentile(99));
    },
    get maxMs() {
      return delayMs(awake().max);
    },
    close: () => {
      cancel();
      all.disable();
      latest.disable();
    },
  };
}

function measure(): IntervalHistogram {
  const intervals = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  intervals.enable();
  return intervals;
}

/** Node records the time between two ticks of a timer, in nanoseconds. */
function delayMs(nanoseconds: number): number {
  return Math.max(0, Math.round(nanoseconds / 1e6) - RESOLUTION_MS);
}
