import type { FailureReason } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import type { Outcome } from '../../upstream/port.js';
import { isTaskResultWait } from './in-flight-calls.js';

type SendFailure = Exclude<Extract<Outcome, { kind: 'failed' }>['reason'], 'cancelled'>;

/**
 * Whether the breaker counts the failure: those of a process that runs and does not answer. The end of a process is the
 * supervisor's concern. A task that outlasts the wait for its result is no failure. Nor is a call that was refused because
 * too much waits to be written: one client can cause that with large calls, and a process that reads nothing does not
 * answer the calls before it either. Nor is a result of the wrong shape: the server answers, and its other tools may be fine.
 */
export function isFailureOfServer(reason: SendFailure, exchange: Exchange): boolean {
  if (HARMLESS.has(reason)) return false;
  return reason !== 'timeout' || !isTaskResultWait(exchange);
}

const HARMLESS: ReadonlySet<SendFailure> = new Set(['exited', 'stopped', 'overloaded', 'result_malformed']);

/** What a request that the server did not answer means for the client. */
export const FAILURE_REASONS: Readonly<Record<SendFailure, FailureReason>> = {
  timeout: 'timeout',
  exited: 'child_exited',
  stopped: 'stopped',
  overloaded: 'overloaded',
  response_too_large: 'response_too_large',
  response_dropped: 'response_dropped',
  response_malformed: 'response_malformed',
  result_malformed: 'response_malformed',
};
