import type { Code } from '../errors/codes.js';
import { toBytes } from '../json/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';

/** Why the gateway answers a call itself. The values are stable, because programs may act on them. */
export type FailureReason =
  | 'installing'
  | 'not_installed'
  | 'starting'
  | 'restarting'
  | 'parked'
  | 'stopped'
  | 'misconfigured'
  /** The current definition of the tool is not approved. */
  | 'not_approved'
  | 'unresponsive'
  | 'breaker_open'
  | 'queue_full'
  /** The limit of waiting calls over all servers is reached. Clients get `queue_full`. */
  | 'all_queues_full'
  | 'queue_timeout'
  | 'overloaded'
  | 'timeout'
  | 'child_exited'
  | 'response_too_large'
  | 'response_dropped'
  | 'response_malformed';

/** A call that the gateway answers because the server did not. */
export interface Failure {
  readonly reason: FailureReason;
  /** Key of the server. */
  readonly server: string;
  /** Generation of the latest process of the server; `undefined` if there was none. */
  readonly generation: number | undefined;
  /** Whether any byte of the call may have reached the server. */
  readonly sent: boolean;
  /** Milliseconds after which a retry may succeed, if known. */
  readonly retryAfterMs: number | undefined;
  /** For `not_approved`: sentences that follow `Server "NAME"` and say what the server did and what to do. */
  readonly detail?: string | undefined;
  /** Why the server does not run, as one printable sentence: what its output or npm says, or what its handshake lacked. */
  readonly cause?: string | undefined;
  /** Reason for which Trunkline ended the server: a phrase with *it* as the subject, without a period. */
  readonly because?: string | undefined;
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
  const { reason, server, generation, sent, retryAfterMs, because } = failure;
  return {
    reason: reason === 'all_queues_full' ? 'queue_full' : reason,
    code: CODES_OF_REASONS[reason],
    server,
    generation,
    sent,
    outcome: outcomeOf(failure),
    retryAfterMs,
    because,
  };
}

/** The stable code of each reason. The meaning of each code is in `src/errors`, which no call needs. */
export const CODES_OF_REASONS: Readonly<Record<FailureReason, Code>> = {
  installing: 'TL-SERVER-INSTALLING',
  not_installed: 'TL-SERVER-NOT-INSTALLED',
  starting: 'TL-SERVER-STARTING',
  restarting: 'TL-SERVER-RESTARTING',
  parked: 'TL-SERVER-PARKED',
  stopped: 'TL-SERVER-STOPPED',
  misconfigured: 'TL-SERVER-MISCONFIGURED',
  not_approved: 'TL-CALL-NOT-APPROVED',
  unresponsive: 'TL-SERVER-UNRESPONSIVE',
  breaker_open: 'TL-SERVER-BREAKER-OPEN',
  queue_full: 'TL-CALL-QUEUE-FULL',
  all_queues_full: 'TL-CALL-QUEUE-FULL',
  queue_timeout: 'TL-CALL-QUEUE-TIMEOUT',
  overloaded: 'TL-CALL-OVERLOADED',
  timeout: 'TL-CALL-TIMEOUT',
  child_exited: 'TL-CALL-EXITED',
  response_too_large: 'TL-CALL-TOO-LARGE',
  response_dropped: 'TL-CALL-DROPPED',
  response_malformed: 'TL-CALL-MALFORMED',
};

/** The message for the model and the person: what happened, whether the call may have run, and what to do. */
export function describeFailure(failure: Failure): string {
  if (failure.reason === 'not_approved') return describeUnapproved(failure);
  const consequence = failure.sent
    ? 'Whether the call took effect is unknown: check before repeating it.'
    : 'The call was not sent, so repeating it is safe.';
  const isWaitKnown = !failure.sent && failure.retryAfterMs !== undefined;
  const wait = isWaitKnown ? ` Try again in ${Math.max(1, Math.ceil(failure.retryAfterMs / 1000))} s.` : '';
  const cause = failure.cause === undefined ? '' : ` ${failure.cause}`;
  return `Server "${failure.server}" ${sentenceOf(failure.reason, failure.because)}${cause} ${consequence}${wait} ${ADVICE}`;
}

/** Repeating the call does not help before a person approves the tool. */
function describeUnapproved({ server, sent, detail = '' }: Failure): string {
  const consequence = sent
    ? 'Whether the call took effect is unknown. It was not repeated.'
    : 'The call was not sent. Repeating it fails until that is done.';
  return `Server "${server}" ${detail} ${consequence} ${ADVICE}`;
}

function sentenceOf(reason: Exclude<FailureReason, 'not_approved'>, because: string | undefined): string {
  if (because === undefined) return SENTENCES[reason];
  switch (reason) {
    case 'child_exited':
      return `was ended during this call, because ${because}. ${RESTARTS}`;
    case 'restarting':
      return `is being restarted, because ${because}.`;
    case 'parked':
      return `${SENTENCES.parked} It was ended the last time because ${because}.`;
    default:
      return SENTENCES[reason];
  }
}

const RESTARTS = 'Trunkline restarts it, unless it has failed too often.';

const ADVICE = 'The tool trunkline__status shows the state of every server.';

const SENTENCES: Readonly<Record<Exclude<FailureReason, 'not_approved'>, string>> = {
  installing: 'is being installed.',
  not_installed: 'cannot run because its package could not be installed.',
  starting: 'is still starting.',
  restarting: 'stopped unexpectedly and is being restarted.',
  parked: 'failed too often in a row and is parked: Trunkline now restarts it less often.',
  stopped: 'is stopped.',
  misconfigured: 'cannot run because its configuration is wrong.',
  unresponsive: 'has stopped answering. Trunkline probes it, and restarts it if it stays silent.',
  breaker_open:
    'runs, but too many of its recent calls failed. Trunkline refuses calls to it until it answers a test request.',
  queue_full: 'has too many calls waiting.',
  all_queues_full: 'cannot take this call: Trunkline as a whole has too many calls waiting.',
  queue_timeout: 'was busy with other calls for too long.',
  overloaded: 'does not read its input, so no more messages can be sent to it.',
  timeout: 'did not answer in time, so Trunkline cancelled the call.',
  child_exited: `exited during this call. ${RESTARTS}`,
  response_too_large: 'sent an answer larger than its setting `maxFrame` allows, so Trunkline dropped the answer.',
  response_dropped:
    'was sending the largest of the unfinished messages that Trunkline held, and their limit `gateway.maxPartial` was reached, so Trunkline dropped the answer.',
  response_malformed: 'sent an answer that is no valid MCP message, so Trunkline dropped the answer.',
};

/** The server answered, and no client can have the answer. */
const LOST_ANSWERS: ReadonlySet<FailureReason> = new Set([
  'response_too_large',
  'response_dropped',
  'response_malformed',
]);

function outcomeOf({ reason, sent }: Failure): 'not_sent' | 'unknown' | 'failed' {
  if (!sent) return 'not_sent';
  return LOST_ANSWERS.has(reason) ? 'failed' : 'unknown';
}
