import { toBytes } from '../json/json-text.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import { METHODS } from '../mcp/methods.js';
import type { Exchange } from './exchange.js';

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
}

/**
 * Answers an exchange whose call failed in the gateway.
 *
 * A tool call gets a tool result with `isError`: clients should show these to the model, but need not show JSON-RPC
 * errors (MCP specification, page server/tools, "Error Handling"). Every other request gets a JSON-RPC error with the
 * same facts, and so does a tool call with `task`, whose result would have to be a task.
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

/** Returns the text for models and people: what happened, whether the call may have run, and what to do. */
export function describeFailure(failure: Failure): string {
  if (failure.reason === 'not_approved') return describeRejection(failure);
  const consequence = failure.sent
    ? 'Whether the call took effect is unknown: check before repeating it.'
    : 'The call was not sent, so repeating it is safe.';
  const isWaitKnown = !failure.sent && failure.retryAfterMs !== undefined;
  const wait = isWaitKnown ? ` Try again in ${Math.max(1, Math.ceil(failure.retryAfterMs / 1000))} s.` : '';
  return `Server "${failure.server}" ${SENTENCES[failure.reason]} ${consequence}${wait} ${ADVICE}`;
}

function describeRejection({ server, sent, detail = '' }: Failure): string {
  const consequence = sent
    ? 'Whether the call took effect is unknown. It was not repeated.'
    : 'The call was not sent. Repeating it fails until that is done.';
  return `Server "${server}" ${detail} ${consequence} ${ADVICE}`;
}

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
  breaker_open: 'runs but has stopped answering. Trunkline refuses calls to it until it answers again.',
  queue_full: 'has too many calls waiting.',
  all_queues_full: 'cannot take this call: Trunkline as a whole has too many calls waiting.',
  queue_timeout: 'was busy with other calls for too long.',
  overloaded: 'does not read its input, so no more messages can be sent to it.',
  timeout: 'did not answer in time, so Trunkline canceled the call.',
  child_exited: 'exited during this call. Trunkline restarts it automatically.',
  response_too_large: 'sent an answer larger than its setting `maxFrame` allows, so Trunkline dropped the answer.',
  response_malformed: 'sent an answer that is not valid JSON-RPC, so Trunkline dropped the answer.',
};

function outcomeOf({ reason, sent }: Failure): 'not_sent' | 'unknown' | 'failed' {
  if (!sent) return 'not_sent';
  return reason === 'response_too_large' || reason === 'response_malformed' ? 'failed' : 'unknown';
}
