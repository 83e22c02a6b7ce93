import type { Clock } from '../timing/clock.js';

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
