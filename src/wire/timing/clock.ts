/** Cancels a scheduled task. Does nothing if the task has run or was cancelled. */
export type Cancel = () => void;

/**
 * The time and timers, which tests replace.
 *
 * All times are milliseconds on a monotonic clock with an arbitrary zero, so that neither a laptop that slept nor a
 * corrected wall clock makes a deadline fire early.
 */
export interface Clock extends Timers {
  now(): number;
}

/** Runs tasks later. */
export interface Timers {
  /** Runs `task` once, `delayMs` from now at the earliest. */
  schedule(delayMs: number, task: () => void): Cancel;
}
