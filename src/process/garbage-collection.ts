import { setFlagsFromString } from 'node:v8';

/** Whether marking what is in use has tasks of its own; without them it goes on in steps, and beside us, all the same. */
export const WITHOUT_TASKS = '--no-incremental-marking-task';

/**
 * Has the engine look for garbage as memory is taken, and not in tasks between events as well.
 *
 * The bytes of large messages are outside the heap, and each message leaves twice its size behind. Some of them a second
 * are reason enough for the engine to begin anew all the time, and what else there is to do then waits for 10 ms and
 * more.
 */
export function collectWithoutTasks(): void {
  setFlagsFromString(WITHOUT_TASKS);
}
