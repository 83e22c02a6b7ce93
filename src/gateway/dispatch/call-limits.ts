import type { RequestTimeouts } from '../../upstream/port.js';

/** Limits of the calls to one server. Times are milliseconds. */
export interface CallLimits {
  /** Longest time without an answer or progress. */
  readonly idleTimeoutMs: number;
  /** Longest time until the answer, whatever progress comes. */
  readonly maxTimeoutMs: number;
  /** Longest time until the answer to a request for a list. */
  readonly listTimeoutMs: number;
  /** Calls that may be in flight at the same time. */
  readonly concurrency: number;
  /** Calls that may wait for a slot. */
  readonly maxQueued: number;
  /** Longest wait for a slot, and longest wait until the calls of another client are done. */
  readonly maxWaitMs: number;
}

/** Timeouts of a request that waits for a task result. No message comes until the task is done. */
export function taskTimeouts({ maxTimeoutMs }: CallLimits): RequestTimeouts {
  return { idleMs: maxTimeoutMs, maxMs: maxTimeoutMs };
}

/** Timeouts of every other request. */
export function callTimeouts({ idleTimeoutMs, maxTimeoutMs }: CallLimits): RequestTimeouts {
  return { idleMs: idleTimeoutMs, maxMs: maxTimeoutMs };
}
