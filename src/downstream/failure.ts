import { toBytes } from '../json/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import { METHODS } from '../mcp/methods.js';
import type { Exchange } from './exchange.js';

/** Why the gateway, and not a server, answers a call. Stable: programs may act on it. */
export type FailureReason =
  | 'installing'
  | 'not_installed'
  | 'starting'
  | 'restarting'
  | 'parked'
  | 'stopped'
  | 'misconfigured'
  /** Nobody has approved what the tool is now. */
  | 'not_approved'
  | 'unresponsive'
  | 'breaker_open'
  | 'queue_full'
  /** Told as `queue_full`: it is the queues of all servers together that are. */
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
  /** Of the process that the call went to, or would have. */
  readonly generation: number | undefined;
  /** Whether a byte of the call may have reached the server. */
  readonly sent: boolean;
  readonly retryAfterMs: number | undefined;
  /** For `not_approved`: what the server did, and what the person has to do. */
  readonly detail?: string | undefined;
}

/**
 * Answers an exchange that failed within the gateway.
 *
 * A tool call gets a tool result, because models read results and many hosts hide errors; every other method, and a
 * call whose answer would be a task, gets a JSON-RPC error with the same facts.
 */
export function answerFailure(exchange: Exchange, failure: Failure): void {
  const facts = {
    reason: failure.reason === 'all_queues_full' ? 'queue_full' : failure.reason,
    server: failure.server,
    generation: failure.generation,
    sent: failure.sent,
    outcome: outcomeOf(failure),
    retryAfterMs: failure.retryAfterMs,
  };
  const text = describeFailure(failure);
  const { method, tokens } = exchange.request;
  if (method === METHODS.callTool && tokens.task === undefined) {
    const result = { content: [{ type: 'text', text }], isError: true, _meta: { 'trunkline/failure': facts } };
    exchange.succeed(toBytes(JSON.stringify(result)));
  } else {
    exchange.fail(new RpcError(RPC_CODES.internalError, text, facts));
  }
}

/** For the model and the person: what happened, whether the call may have run, and what to do. */
export function describeFailure(failure: Failure): string {
  if (failure.reason === 'not_approved') return describeRejection(failure);
  const consequence = failure.sent
    ? 'Whether the call took effect is unknown: check before repeating it.'
    : 'The call was not sent, so repeating it is safe.';
  const isWaitKnown = !failure.sent && failure.retryAfterMs !== undefined;
  const wait = isWaitKnown ? ` Try again in ${Math.max(1, Math.ceil(failure.retryAfterMs / 1000))} s.` : '';
  return `Server "${failure.server}" ${SENTENCES[failure.reason]} ${consequence}${wait} ${ADVICE}`;
}

/** To repeat it is as safe as it is useless. */
function describeRejection({ server, sent, detail = '' }: Failure): string {
  const consequence = sent
    ? 'Whether the call took effect is unknown, and it was not repeated.'
    : 'The call was not sent; to repeat it is of no use before that.';
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
  unresponsive: 'has stopped answering; it is being looked at, and restarted if it stays silent.',
  breaker_open: 'runs but has stopped answering; calls are held back until it answers again.',
  queue_full: 'has too many calls waiting already.',
  all_queues_full: 'has no room for this call: Trunkline as a whole has too many calls waiting already.',
  queue_timeout: 'was busy with other calls for too long.',
  overloaded: 'does not read what is sent to it.',
  timeout: 'did not answer in time; the call was cancelled.',
  child_exited: 'ended while this call was under way. It is restarted by itself.',
  response_too_large: 'answered with more than the frame limit allows, so the answer was dropped.',
  response_malformed: 'answered with something that is not valid JSON-RPC, so the answer was dropped.',
};

function outcomeOf({ reason, sent }: Failure): 'not_sent' | 'unknown' | 'failed' {
  if (!sent) return 'not_sent';
  return reason === 'response_too_large' || reason === 'response_malformed' ? 'failed' : 'unknown';
}
