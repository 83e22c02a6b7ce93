import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { Cancel, Clock } from '../../wire/timing/clock.js';

/** A local binding is faster than the global, which is looked up for each access. */
const { performance } = globalThis;

/**
 * The clock of the machine. Timers keep the process alive until they fire. Delays are rounded up, since Node truncates
 * them and would fire early.
 */
export const systemClock: Clock = {
  now: () => performance.now(),
  schedule: (delayMs, task) => {
    const timer = setTimeout(task, Math.ceil(delayMs));
    return () => clearTimeout(timer);
  },
};

/** Timers of this clock do not keep the process alive. */
export const backgroundClock: Pick<Clock, 'schedule'> = {
  schedule: (delayMs, task) => {
    const timer = setTimeout(task, Math.ceil(delayMs)).unref();
    return () => clearTimeout(timer);
  },
};

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
 * the last look, if it was more than `heldMs`.
 */
export function watchEventLoop(
  clock: Pick<Clock, 'schedule'>,
  heldMs: number,
  onHeld: (ms: number) => void,
): EventLoopDelay & { close(): void } {
  const [all, latest] = [measure(), measure()];
  let cancel: Cancel;
  const look = () => {
    const ms = delayMs(latest.max);
    latest.reset();
    if (ms > heldMs) onHeld(ms);
    cancel = clock.schedule(LOOK_EVERY_MS, look);
  };
  cancel = clock.schedule(LOOK_EVERY_MS, look);
  return {
    get p99Ms() {
      return delayMs(all.percentile(99));
    },
    get maxMs() {
      return delayMs(all.max);
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
