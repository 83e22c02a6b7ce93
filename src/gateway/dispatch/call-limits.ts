/** Milliseconds and counts that bound the calls to one server. */
export interface CallLimits {
  /** Without an answer or progress. */
  readonly idleTimeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly listTimeoutMs: number;
  readonly concurrency: number;
  readonly maxQueued: number;
  /** How long a call may wait for its turn. */
  readonly maxWaitMs: number;
}
