import type { Code } from '../host/errors/codes.js';
import { toBytes } from '../wire/json/json-text.js';
import { RPC_CODES, RpcError } from '../wire/jsonrpc/message.js';
import type { RequestFailure } from '../wire/mcp/outcome.js';

const RESTARTS = 'Trunkline restarts it, unless it has failed too often.';

/**
 * Reasons for which the gateway answers a call itself. The names are stable, because programs may act on them. Each
 * reason has a code, which `src/host/errors` explains, and a sentence that follows the server's name. `isLost` means that
 * the server answered, but no client can get the answer.
 */
export const REASONS = {
  installing: { code: 'TL-SERVER-INSTALLING', sentence: 'is being installed.' },
  not_installed: {
    code: 'TL-SERVER-NOT-INSTALLED',
    sentence: 'cannot run because its package could not be installed.',
  },
  starting: { code: 'TL-SERVER-STARTING', sentence: 'is still starting.' },
  restarting: { code: 'TL-SERVER-RESTARTING', sentence: 'stopped unexpectedly and is being restarted.' },
  parked: {
    code: 'TL-SERVER-PARKED',
    sentence: 'failed too often in a row and is parked: Trunkline now restarts it less often.',
  },
  stopped: { code: 'TL-SERVER-STOPPED', sentence: 'is stopped.' },
  misconfigured: { code: 'TL-SERVER-MISCONFIGURED', sentence: 'cannot run because its configuration is wrong.' },
  /** The current definition of the tool is not approved. The sentence is `Failure.detail`. */
  not_approved: { code: 'TL-CALL-NOT-APPROVED', sentence: '' },
  /** A rule of the configuration denies the request. The sentence is `Failure.detail`. */
  denied: { code: 'TL-CALL-DENIED', sentence: '' },
  /** An interceptor refuses the request or the result, or cannot look at it. The sentence is `Failure.detail`. */
  intercepted: { code: 'TL-CALL-INTERCEPTED', sentence: '', isLost: true },
  unresponsive: {
    code: 'TL-SERVER-UNRESPONSIVE',
    sentence: 'has stopped answering. Trunkline probes it, and restarts it if it stays silent.',
  },
  breaker_open: {
    code: 'TL-SERVER-BREAKER-OPEN',
    sentence:
      'runs, but too many of its recent calls failed. Trunkline refuses calls to it until it answers a test request.',
  },
  queue_full: { code: 'TL-CALL-QUEUE-FULL', sentence: 'has too many calls waiting.' },
  /** The limit of waiting calls over all servers is reached. Clients get `queue_full`. */
  all_queues_full: {
    code: 'TL-CALL-QUEUE-FULL',
    sentence: 'cannot take this call: Trunkline as a whole has too many calls waiting.',
  },
  queue_timeout: { code: 'TL-CALL-QUEUE-TIMEOUT', sentence: 'was busy with other calls for too long.' },
  overloaded: {
    code: 'TL-CALL-OVERLOADED',
    sentence: 'does not read its input, or too slowly, so this call was not sent.',
  },
  timeout: { code: 'TL-CALL-TIMEOUT', sentence: 'did not answer in time, so Trunkline cancelled the call.' },
  child_exited: { code: 'TL-CALL-EXITED', sentence: `exited during this call. ${RESTARTS}` },
  response_too_large: {
    code: 'TL-CALL-TOO-LARGE',
    sentence: 'sent an answer larger than its setting `maxFrame` allows, so Trunkline dropped the answer.',
    isLost: true,
  },
  response_dropped: {
    code: 'TL-CALL-DROPPED',
    sentence:
      'was sending the largest of the unfinished messages that Trunkline held, and their limit `gateway.maxPartial` was reached, so Trunkline dropped the answer.',
    isLost: true,
  },
  response_malformed: {
    code: 'TL-CALL-MALFORMED',
    sentence: 'sent an answer that is no valid MCP message, so Trunkline dropped the answer.',
    isLost: true,
  },
  unreachable: { code: 'TL-SERVER-UNREACHABLE', sentence: 'cannot be reached.' },
  login_required: { code: 'TL-SERVER-LOGIN', sentence: 'needs a login or other credentials.' },
  connection_lost: {
    code: 'TL-CALL-CONNECTION-LOST',
    sentence: 'was called, but the connection broke before the answer.',
  },
  unavailable: { code: 'TL-CALL-UNAVAILABLE', sentence: 'is overloaded or out of order.' },
  refused: { code: 'TL-CALL-REFUSED', sentence: 'did not serve this request.' },
} as const satisfies Readonly<Record<string, Reason>>;

export type FailureReason = keyof typeof REASONS;

/** The failures of a request that its client has not cancelled. */
export type SendFailure = Exclude<RequestFailure, 'cancelled'>;

/** Returns the reason that the client gets for the failure of a request to a server. */
export function reasonFor(failure: SendFailure): FailureReason {
  if (failure === 'exited') return 'child_exited';
  return failure === 'result_malformed' ? 'response_malformed' : failure;
}

interface Reason {
  readonly code: Code;
  readonly sentence: string;
  readonly isLost?: boolean;
}

interface DownWords {
  /** Cause for which the server does not run: one printable sentence from its output, from npm, or about its handshake. */
  readonly cause?: string | undefined;
  /** Reason for which Trunkline ended the server: a phrase with *it* as the subject, without a period. */
  readonly because?: string | undefined;
}

/** The reason for which a server does not run, for the failures of its calls. */
export interface WhyDown extends DownWords {
  readonly reason?: FailureReason;
}

/** A call that the gateway answers in place of the server. */
export interface Failure extends DownWords {
  readonly reason: FailureReason;
  readonly server: string;
  /** Generation of the latest process of the server; `undefined` if there was none. */
  readonly generation: number | undefined;
  /** Whether any byte of the call may have reached the server. */
  readonly sent: boolean;
  /** Milliseconds after which a retry may succeed, if known. */
  readonly retryAfterMs: number | undefined;
  /** For `not_approved`, `denied` and `intercepted`: sentences that follow `Server "NAME"` and say what the server did and what to do. */
  readonly detail?: string | undefined;
  /** The place of the rule in the configuration, such as `servers.files.rules[0]`, or the names of an interceptor. */
  readonly rule?: string | undefined;
  /** Whether the server is behind a URL, so that it has a connection and no process. */
  readonly isRemote?: boolean | undefined;
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
  const { reason, server, generation, sent, retryAfterMs, because, rule } = failure;
  return {
    reason: reason === 'all_queues_full' ? 'queue_full' : reason,
    code: REASONS[reason].code,
    server,
    generation,
    sent,
    outcome: outcomeOf(failure),
    retryAfterMs: retryAfterMs && Math.ceil(retryAfterMs),
    because,
    rule,
  };
}

/** The message for the model and the user: what happened, whether the call may have run, and what to do. */
export function describeFailure(failure: Failure): string {
  if (failure.reason === 'not_approved') return describeUnapproved(failure);
  if (failure.reason === 'denied') return describeDenied(failure);
  if (failure.reason === 'intercepted') return describeIntercepted(failure);
  const consequence = failure.sent
    ? 'Whether the call took effect is unknown: check before repeating it.'
    : 'The call was not sent, so repeating it is safe.';
  const isWaitKnown = !failure.sent && failure.retryAfterMs !== undefined;
  const wait = isWaitKnown ? ` Try again in ${Math.max(1, Math.ceil(failure.retryAfterMs / 1000))} s.` : '';
  const cause = failure.cause === undefined ? '' : ` ${failure.cause}`;
  return `Server "${failure.server}" ${sentenceOf(failure)}${cause} ${consequence}${wait} ${ADVICE}`;
}

/** Describes a call of a tool without approval. A repeated call fails too, until the user approves the tool. */
function describeUnapproved({ server, sent, detail = '' }: Failure): string {
  const consequence = sent
    ? 'Whether the call took effect is unknown. It was not repeated.'
    : 'The call was not sent. Repeating it fails until that is done.';
  return `Server "${server}" ${detail} ${consequence} ${ADVICE}`;
}

/** Describes a request that a rule denies. The detail says what to do otherwise. */
function describeDenied({ server, sent, detail = '' }: Failure): string {
  const consequence = sent ? 'Whether an earlier attempt took effect is unknown. It was not repeated.' : '';
  return `Server "${server}" ${detail} ${consequence}`.trimEnd();
}

/** Describes a request that was not sent, or a result that is withheld, because of an interceptor. */
function describeIntercepted({ server, sent, detail = '' }: Failure): string {
  const consequence = sent ? 'The call took effect, and only its result is withheld.' : 'The call was not sent.';
  return `Server "${server}" ${detail} ${consequence}`;
}

function sentenceOf({ reason, because, isRemote = false }: Failure): string {
  const { sentence } = REASONS[reason];
  const remote = isRemote ? REMOTE_SENTENCES[reason] : undefined;
  if (because === undefined) return remote === undefined ? sentence : `${remote.join('.')}.`;
  if (remote !== undefined) return `${remote[0]}, because ${because}.${remote[1]}.`;
  switch (reason) {
    case 'child_exited':
      return `was ended during this call, because ${because}. ${RESTARTS}`;
    case 'misconfigured':
      return `cannot run: ${because}.`;
    case 'restarting':
      return `is being restarted, because ${because}.`;
    case 'parked':
      return `${sentence} It was ended the last time because ${because}.`;
    case 'unreachable':
    case 'login_required':
    case 'connection_lost':
    case 'unavailable':
    case 'refused':
      return `${sentence.slice(0, -1)}, because ${because}.`;
    default:
      return sentence;
  }
}

/** Sentences in the words of a connection, for servers behind a URL. A reason comes between the two sentences of each. */
const REMOTE_SENTENCES: Partial<Readonly<Record<FailureReason, readonly [string, string]>>> = {
  starting: ['is still being connected', ' Its tools can be called then'],
  restarting: ['has no connection at the moment', ' Trunkline connects again'],
  connection_lost: ['lost its connection during this call', ' Trunkline connects again'],
  parked: ['failed too often in a row and is parked', ' Trunkline now connects to it less often'],
  unresponsive: ['has stopped answering', ' Trunkline probes it, and connects again if it stays silent'],
  overloaded: ['has too many requests that it has not answered', ' This call was not sent'],
};

const ADVICE = 'The tool trunkline__status shows the state of every server.';

/** Returns whether the call ran: `not_sent`, `unknown`, or `failed` for a call that ran and whose result is lost. */
export function outcomeOf({ reason, sent }: Failure): 'not_sent' | 'unknown' | 'failed' {
  if (!sent) return 'not_sent';
  const { isLost = false }: Reason = REASONS[reason];
  return isLost ? 'failed' : 'unknown';
}
