import type { Clock } from '../timing/clock.js';

/** The global one is looked up anew each time. */
const { performance } = globalThis;

/**
 * Time of the machine. Timers keep the process alive: whatever is being waited for still has to happen. Node would cut
 * fractions of a millisecond off, and so fire early.
 */
export const systemClock: Clock = {
  now: () => performance.now(),
  schedule: (delayMs, task) => {
    const timer = setTimeout(task, Math.ceil(delayMs));
    return () => clearTimeout(timer);
  },
};
