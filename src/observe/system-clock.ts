import type { Clock } from '../timing/clock.js';

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
