// A clock that runs faster than the machine's. Use it where real processes have to answer within a long timeout.
import type { Clock } from '../../src/wire/timing/clock.js';

/** A clock that runs `times` as fast as the machine's, for real processes and long timeouts. */
export function hurryingClock(times: number): Clock {
  return {
    now: () => performance.now() * times,
    schedule: (delayMs, task) => {
      const timer = setTimeout(task, Math.ceil(delayMs / times));
      return () => clearTimeout(timer);
    },
  };
}
