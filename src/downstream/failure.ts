import { toBytes } from '../json/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';

/** Why the gateway answers a call instead of a server. The names are stable: programs may act on them. */
export type FailureReason =
  | 'installing'
  | 'not_installed'
  | 'starting'
  | 'restarting'
  | 'parked'
  | 'stopped'
  | 'misconfigured'
  /** The tool has changed, and nobody has approved the change. */
  | 'not_approved'
  | 'unresponsive'
  | 'breaker_open'
  | 'queue_full'
  /** The queues of all servers together are full. Reported as `queue_full`. */
  | 'all_queues_full'
  | 'queue_timeout'
  | 'overloaded'
  | 'timeout'
  | 'child_exited'
  | 'response_too_large'
  | 'response_malformed';

/** What happened to a call that no server answered. */
export interface Failure {
  readonly reason: FailureReason;
  readonly server: string;
  /** The generation of the process that the call was sent to, or would have been sent to. */
  readonly generation: number | undefined;
  /** Whether a byte of the call may have reached the server. */
  readonly sent: boolean;
  readonly retryAfterMs: number | undefined;
  /** For `not_approved`: what changed, and what the person has to do. */
  readonly detail?: string | undefined;
}

/**
 * The failure as a tool result with `isError`, as JSON. Tool calls get this form because models read results, while many
 * hosts hide JSON-RPC errors.
 */
export function failureResult(failure: Failure): Uint8Array {
  const content = [{ type: 'text', text: describeFailure(failure) }];
  return toBytes(JSON.stringify({ content, isError: true, _meta: { 'trunkline/failure': factsOf(failure) } }));
}

/** The failure as a JSON-RPC error, with the facts of `failureResult` in `data`. */
export function failureError(failure: Failure): RpcError {
  return new RpcError(RPC_CODES.internalError, describeFailure(failure), factsOf(failure));
}

function factsOf(failure: Failure): Readonly<Record<string, unknown>> {
  const { reason, server, generation, sent, retryAfterMs } = failure;
  return {
    reason: reason === 'all_queues_full' ? 'queue_full' : reason,
    server,
    generation,
    sent,
    outcome: outcomeOf(failure),
    retryAfterMs,
  };
}

/** The message for the model and the person: what happened, whether the call may have run, and what to do. */
export function describeFailure(failure: Failure): string {
  if (failure.reason === 'not_approved') return describeUnapproved(failure);
  const consequence = failure.sent
    ? 'Whether the call took effect is unknown: check before repeating it.'
    : 'The call was not sent, so repeating it is safe.';
  const isWaitKnown = !failure.sent && failure.retryAfterMs !== undefined;
  const wait = isWaitKnown ? ` Try again in ${Math.max(1, Math.ceil(failure.retryAfterMs / 1000))} s.` : '';
  return `Server "${failure.server}" ${SENTENCES[failure.reason]} ${consequence}${wait} ${ADVICE}`;
}

/** Repeating the call does not help before somebody approves the tool. */
function describeUnapproved({ server, sent, detail = '' }: Failure): string {
  const consequence = sent
    ? 'Whether the call took effect is unknown, and it was not repeated.'
    : 'The call was not sent. Repeating it does not help before the tool is approved.';
  return `Server "${server}" ${detail} ${consequence} ${ADVICE}`;
}

const ADVICE = 'The tool trunkline__status shows the state of every server.';

const SENTENCES: Readonly<Record<Exclude<FailureReason, 'not_approved'>, string>> = {
  installing: 'is being installed.',
  not_installed: 'could not be installed.',
  starting: 'is still starting.',
  restarting: 'stopped unexpectedly and is being restarted.',
  parked: 'failed too often in a row and is no longer restarted at once.',
  stopped: 'is stopped.',
  misconfigured: 'cannot run as it is configured.',
  unresponsive: 'has stopped answering. Trunkline is checking it and restarts it if it stays silent.',
  breaker_open: 'runs but has stopped answering. Calls are rejected until it answers again.',
  queue_full: 'has too many calls waiting already.',
  all_queues_full: 'cannot queue this call: Trunkline as a whole has too many calls waiting already.',
  queue_timeout: 'was busy with other calls for too long.',
  overloaded: 'does not read what is sent to it.',
  timeout: 'did not answer in time; the call was cancelled.',
  child_exited: 'exited while it was working on this call. Trunkline restarts it.',
  response_too_large: 'answered with more than the frame limit allows, so the answer was dropped.',
  response_malformed: 'answered with something that is not valid JSON-RPC, so the answer was dropped.',
};

function outcomeOf({ reason, sent }: Failure): 'not_sent' | 'unknown' | 'failed' {
  if (!sent) return 'not_sent';
  return reason === 'response_too_large' || reason === 'response_malformed' ? 'failed' : 'unknown';
}
