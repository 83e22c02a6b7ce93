/** Stops what was scheduled; calling it late or twice does nothing. */
export type Cancel = () => void;

/**
 * Time as the core sees it, so that tests can hold it still.
 *
 * All times are milliseconds on a monotonic clock with an arbitrary zero: a laptop that slept or a corrected wall
 * clock never makes a deadline fire early.
 */
export interface Clock {
  now(): number;
  /** Runs `task` once, `delayMs` from now at the earliest. */
  schedule(delayMs: number, task: () => void): Cancel;
}
