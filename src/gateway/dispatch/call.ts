import type { Denial } from '../../config/rules/request-rules.js';
import { type FailureReason, reasonFor, type SendFailure } from '../../downstream/failure.js';
import type { DownstreamClient, Exchange, InputRequest, WithdrawInput } from '../../downstream/port.js';
import {
  internalError,
  type OnInternalError,
  reportInternalError,
  withErrorBoundaryAsync,
} from '../../host/errors/internal-error.js';
import type { EventSink } from '../../host/observe/events/events.js';
import type { CallLimits } from '../../spec/server-rules.js';
import type { CircuitBreaker } from '../../upstream/health/circuit-breaker.js';
import type {
  RequestHandler,
  RequestTimeouts,
  SentRequest,
  UpstreamConnection,
} from '../../upstream/upstream-connection.js';
import { isObject, OPEN_BRACKET, skipWhitespace, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { concatEdits, type Edit, type SplicedMessage, splice } from '../../wire/json/splice.js';
import { RpcError } from '../../wire/jsonrpc/message.js';
import { withoutClaims } from '../../wire/mcp/claimed-facts.js';
import { isErrorResponse, type NotificationEnvelope, type ResponseEnvelope, scanOwn } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { asOlderInput, withoutResultMembers } from '../../wire/mcp/older-revisions.js';
import type { EndedBecause, Outcome, RequestFailure } from '../../wire/mcp/outcome.js';
import { mendResult, type ResultKind } from '../../wire/mcp/result-check.js';
import { hasHandshake } from '../../wire/mcp/revisions.js';
import { signedQuestion, signedQuestions } from '../../wire/mcp/signed-questions.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { Due } from '../../wire/timing/deadlines.js';
import { type InFlightCalls, isTaskResultWait } from './in-flight-calls.js';

/** The words of a failure, as in `Failure`. */
export interface FailureWords {
  readonly detail?: string | undefined;
  readonly because?: string | undefined;
  readonly rule?: string | undefined;
}

/** The reason for which a server must not get a request. */
export type Refusal = Denial | { readonly reason: 'not_approved'; readonly detail: string };

/** The dispatcher of one server, as its calls see it. */
export interface CallHost {
  readonly options: CallHostOptions;
  readonly limits: CallLimits;
  readonly passHeaders: readonly string[];
  readonly counters: CallCounters;
  readonly latencies: Latencies;
  readonly inFlightCalls: InFlightCalls;
  readonly breaker: CircuitBreaker;
  /** Fails a call that no process will answer. `sent` is whether a process may have seen the call. */
  fail(exchange: Exchange, reason: FailureReason, sent: boolean, words?: FailureWords): void;
  /** Releases the slot of the call and its exclusive access to the server. */
  leave(call: Call): void;
  /** Ends the wait of a call that its client has cancelled. Does nothing if the call does not wait. */
  withdraw(call: Call): void;
  /** Sends the call over the next connection, because the connection `ended` has ended. */
  retry(call: Call, ended: UpstreamConnection): void;
}

export interface CallHostOptions {
  readonly key: string;
  /** Unique among the instances of all servers. */
  readonly id: string;
  readonly clock: Clock;
  readonly events?: EventSink | undefined;
  /** Called with each internal error. An internal error fails one call. */
  readonly onInternalError?: OnInternalError | undefined;
  /** Returns a remark on the refusals of the sandbox since a time on the clock. `error` is the beginning of the call's error. */
  readonly remarkSince?: ((at: number, error: string) => string | undefined) | undefined;
}

export function taskTimeouts({ maxTimeoutMs }: CallLimits): RequestTimeouts {
  return { idleMs: maxTimeoutMs, maxMs: maxTimeoutMs };
}

/** Length of the beginning of an error in which messages of the system about files are searched, in bytes. */
const MAX_ERROR_BYTES = 4096;
const UTF8 = new TextDecoder();

/** One client request on its way to a server. Each sending over a connection is an attempt. */
export class Call implements Due, RequestHandler {
  readonly exchange: Exchange;

  // `Admission` owns the members below.
  stage: Stage = 'none';
  release: (() => void) | undefined;
  dueAt = 0;

  /** The latest progress value that the client received. */
  progressed: number | undefined;
  lease: SplicedMessage['lease'];
  /** Present if the call is repeated, because its process or its connection ended before the answer. */
  #earlier: EarlierAttempt | undefined;
  #connection: UpstreamConnection | undefined;
  /** Absent while the call waits. */
  #sent: SentRequest | undefined;
  #lastProgressAt: number | undefined;
  readonly #handling: Handling;
  readonly #host: CallHost;

  constructor(host: CallHost, exchange: Exchange, handling: Handling) {
    this.#host = host;
    this.exchange = exchange;
    this.#handling = handling;
    exchange.onCancel((notification) => this.#cancel(notification));
  }

  get client(): DownstreamClient {
    return this.exchange.client;
  }

  get earlier(): EarlierAttempt | undefined {
    return this.#earlier;
  }

  get takesInputRequests(): boolean {
    return this.exchange.takesInputRequests;
  }

  get passedHeaders(): Readonly<Record<string, string>> | undefined {
    const { http } = this.exchange;
    const { passHeaders } = this.#host;
    if (http === undefined || passHeaders.length === 0) return undefined;
    const found = passHeaders.flatMap((name) => {
      const value = http.header(name);
      return value === undefined ? [] : [[name, value] as const];
    });
    return Object.fromEntries(found);
  }

  // `sendOver` and `settle` catch their own errors, because a closure for an error boundary would slow down every call.

  sendOver(connection: UpstreamConnection): void {
    try {
      this.#begin(connection);
    } catch (error) {
      this.#recover(error);
    }
  }

  settle(outcome: Outcome): void {
    try {
      this.#settle(outcome);
    } catch (error) {
      this.#recover(error);
    }
  }

  progress(notification: NotificationEnvelope, value: number): void {
    const { exchange } = this;
    this.#lastProgressAt = this.#host.options.clock.now();
    this.progressed = value;
    if (!exchange.wantsProgress) return;
    const via = exchange.isSettled ? this.#host.inFlightCalls.taskResultWaitOf(exchange.client) : undefined;
    exchange.progress(notification, this.#handling.translation?.progress(notification), via);
  }

  requireInput(input: InputRequest): WithdrawInput {
    const signed = signedQuestion(this.#host.options.key, input.request);
    if (signed instanceof RpcError) {
      input.fail(signed);
      return () => {};
    }
    const edits = [...signed, ...asOlderInput(input.request, this.client.revision)];
    return this.exchange.requireInput(edits.length === 0 ? input : { ...input, edits: [...input.edits, ...edits] });
  }

  sent(message: SplicedMessage): void {
    this.exchange.trail?.sent(message);
  }

  send(message: SplicedMessage): void {
    this.exchange.send(message);
  }

  #begin(connection: UpstreamConnection): void {
    const { exchange } = this;
    const { edits, refusal, translation } = this.#handling;
    this.#connection = connection;
    // The process and its tools may have changed since the call arrived.
    const refused = refusal?.();
    if (refused !== undefined) {
      this.#host.leave(this);
      this.#host.fail(exchange, refused.reason, this.#earlier !== undefined, refused);
      return;
    }
    this.#host.inFlightCalls.add(this);
    const timeouts = this.#timeouts();
    if (this.#earlier !== undefined) {
      if (Math.min(timeouts.firstMs ?? timeouts.idleMs, timeouts.maxMs) <= 0) {
        this.#settle({ kind: 'failed', reason: 'timeout', sent: true });
        return;
      }
      this.#host.counters.repeated += 1;
    }
    const own = concatEdits(edits, translation?.request?.(connection));
    const all = concatEdits(own, exchange.trail?.sending(connection, own));
    if (translation === undefined) this.lease = exchange.leaseRequest();
    this.#sent = connection.send(exchange.request, all, timeouts, this);
    if (this.#sent === undefined) this.lease?.release();
    else this.#reportStart(connection);
  }

  #cancel(notification?: NotificationEnvelope): void {
    if (this.#sent === undefined) this.#host.withdraw(this);
    else this.#sent.cancel(notification, notification && this.#handling.translation?.cancel(notification));
  }

  #settle(outcome: Outcome): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    if (this.#mayRetry(outcome)) {
      this.#reportEnd(outcome);
      this.#host.inFlightCalls.delete(this);
      this.#sent = undefined;
      this.#lastProgressAt = undefined;
      const isUsable = outcome.reason === 'connection_lost' && !connection.isClosed;
      if (isUsable) this.#begin(connection);
      else this.#host.retry(this, connection);
      return;
    }
    const { translation } = this.#handling;
    const response = outcome.kind === 'answered' ? outcome.response : undefined;
    const rest = response && translation?.conclude?.(response, connection, () => this.#keepProgress());
    if (rest === undefined) this.#review(outcome);
    else this.#after(rest, (end) => this.#review(end));
  }

  /** Ends the call, once a gate has reviewed the answer. Meanwhile the call keeps its slot. */
  #review(outcome: Outcome): void {
    const reviewed = outcome.kind === 'answered' ? this.exchange.review?.(outcome) : undefined;
    if (reviewed === undefined) this.#end(outcome);
    else
      this.#after(reviewed, (end) => {
        if (end.kind === 'answered') this.#end(end);
        else this.#withhold(outcome, end);
      });
  }

  #after<T>(work: Promise<T>, then: (done: T) => void): void {
    void withErrorBoundaryAsync(work.then(then), this.#host.options.onInternalError, () => this.#failInternally());
  }

  /** Fails the call, although the server has answered well. */
  #withhold(outcome: Outcome, words: FailureWords): void {
    const { inFlightCalls, breaker } = this.#host;
    inFlightCalls.delete(this);
    this.#reportEnd(outcome);
    this.#host.leave(this);
    this.#host.fail(this.exchange, 'intercepted', true, words);
    if (outcome.kind === 'answered') breaker.succeeded(outcome.at);
  }

  /** Timeouts of this attempt, less the time that an earlier process has spent on the call. */
  #timeouts(): RequestTimeouts {
    const { limits, options } = this.#host;
    if (isTaskResultWait(this.exchange)) return taskTimeouts(limits);
    const { timeoutMs: idleMs, maxTimeoutMs: maxMs } = limits;
    if (this.#earlier === undefined) return { idleMs, maxMs };
    const { startedAt, lastSignAt } = this.#earlier;
    const now = options.clock.now();
    return { firstMs: lastSignAt + idleMs - now, idleMs, maxMs: startedAt + maxMs - now };
  }

  /** Whether the call is sent again, because it is unsent or may be repeated. Records the attempt if it was sent. */
  #mayRetry(outcome: Outcome): outcome is Extract<Outcome, { kind: 'failed' }> {
    if (outcome.kind !== 'failed' || this.exchange.isSettled) return false;
    if (!RETRIED.has(outcome.reason)) return false;
    if (!outcome.sent) return true;
    if (this.#handling.isRepeatable !== true || this.#earlier !== undefined || this.#sent === undefined) return false;
    const { sentAt } = this.#sent;
    this.#earlier = { startedAt: sentAt, lastSignAt: this.#lastProgressAt ?? sentAt, because: outcome.because };
    return true;
  }

  #end(outcome: Outcome): void {
    const { inFlightCalls, counters, breaker } = this.#host;
    inFlightCalls.delete(this);
    this.#reportEnd(outcome);
    if (outcome.kind === 'answered') {
      this.#host.leave(this);
      this.#answer(outcome);
    } else if (outcome.reason === 'cancelled') {
      this.#host.leave(this);
      counters.cancelled += 1;
    } else {
      const sent = outcome.sent || this.#earlier !== undefined;
      this.#host.fail(this.exchange, reasonFor(outcome.reason), sent, outcome);
      // Count the failure before the call releases its slot, because the next call must not start if the breaker opens.
      if (isFailureOfServer(outcome.reason, this.exchange)) breaker.failed();
      this.#host.leave(this);
    }
  }

  #answer({ response: received, at, edits: ofEra }: Extract<Outcome, { readonly kind: 'answered' }>): void {
    const { exchange } = this;
    const connection = this.#connection;
    const { mend, editAnswer, translation, onAnswered } = this.#handling;
    const response = withoutClaims((connection && mend?.(received, connection)) ?? received);
    const edits = response === received || ofEra === undefined ? ofEra : withoutResultMembers(response);
    const { counters, latencies, breaker } = this.#host;
    const ofTask = translation?.answer(response, () => this.#keepProgress());
    const ofRouting = connection && editAnswer?.(response, connection);
    const ofSandbox = isErrorResponse(response) ? this.#remarkOn(response) : undefined;
    // A server may put questions into its answer that its revision does not know. Signing is without effect on a signed question.
    const questions = signedQuestions(this.#host.options.key, response);
    if (questions instanceof RpcError) {
      exchange.fail(questions);
    } else {
      const own = concatEdits(concatEdits(ofRouting, ofTask), concatEdits(ofSandbox, questions));
      exchange.answer(response, concatEdits(own, edits), connection?.nameInResults);
    }
    if (!isTaskResultWait(exchange)) latencies.add(at - (this.#earlier?.startedAt ?? this.#sent?.sentAt ?? at));
    if (isErrorResponse(response)) counters.errors += 1;
    breaker.succeeded(at);
    // The write of the answer is a microtask that is queued already, so `onAnswered` runs after the write.
    if (onAnswered !== undefined) void SETTLED.then(() => onAnswered(response));
  }

  /** Adds the refusals of the sandbox during the call to an error: to its message, or to the result of a tool. */
  #remarkOn({ bytes, span }: ResponseEnvelope): readonly Edit[] | undefined {
    const { remarkSince } = this.#host.options;
    if (this.#sent === undefined || remarkSince === undefined) return undefined;
    const end = Math.min(span.end, span.start + MAX_ERROR_BYTES);
    const start = UTF8.decode(bytes.subarray(span.start, end));
    const remark = remarkSince(this.#sent.sentAt, start);
    if (remark === undefined) return undefined;
    const [message] = valuesAt(bytes, span, ['error', 'message']);
    if (message !== undefined) return [insertAt(message.end - 1, JSON.stringify(`. ${remark}`).slice(1, -1))];
    const [content] = valuesAt(bytes, span, ['result', 'content']);
    if (content === undefined || bytes[content.start] !== OPEN_BRACKET) return undefined;
    const isEmpty = skipWhitespace(bytes, content.start + 1) === content.end - 1;
    return [insertAt(content.end - 1, `${isEmpty ? '' : ','}${JSON.stringify({ type: 'text', text: remark })}`)];
  }

  #reportStart({ generation }: UpstreamConnection): void {
    const { events, key: server, id: instance } = this.#host.options;
    if (events?.wants('attempt.started') !== true) return;
    const { method } = this.exchange.request;
    const isRepeated = this.#earlier !== undefined;
    events.emit({ kind: 'attempt.started', server, instance, generation, method, isRepeated });
  }

  /** Emits no event for an attempt that could not be sent, because its start was not reported either. */
  #reportEnd(outcome: Outcome): void {
    this.exchange.trail?.attemptEnded(outcome, this.#sent?.sentAt);
    const { events, key: server, id: instance, clock } = this.#host.options;
    if (this.#sent === undefined || this.#connection === undefined || events?.wants('attempt.ended') !== true) return;
    const { generation } = this.#connection;
    const { method } = this.exchange.request;
    const durationMs = (outcome.kind === 'answered' ? outcome.at : clock.now()) - this.#sent.sentAt;
    const result = resultOf(outcome);
    events.emit({ kind: 'attempt.ended', server, instance, generation, method, outcome: result, durationMs });
  }

  #recover(error: unknown): void {
    reportInternalError(error, this.#host.options.onInternalError);
    this.#failInternally();
  }

  /** Fails the call with an internal error, and releases its slot. */
  #failInternally(): void {
    this.#host.inFlightCalls.delete(this);
    this.#host.leave(this);
    this.exchange.fail(internalError());
  }

  /** Relays progress also after the answer, until the returned function is called. */
  #keepProgress(): () => void {
    const ends = [this.exchange.keepProgress(), this.#sent?.keepProgress()];
    return () => {
      for (const end of ends) end?.();
    };
  }
}

function insertAt(at: number, text: string): Edit {
  return { span: { start: at, end: at }, text: toBytes(text) };
}

/** An attempt that ended with its process. Times are milliseconds on the clock. */
interface EarlierAttempt {
  readonly startedAt: number;
  /** Time at which the latest progress arrived, or at which the call was sent if no progress arrived. */
  readonly lastSignAt: number;
  /** Reason for which the gateway ended the earlier process, if it did. */
  readonly because?: EndedBecause | undefined;
}

/** The event that a call waits for. */
export type Stage = 'none' | 'slot' | 'exclusive-client' | 'connection';

function resultOf(outcome: Outcome): 'answered' | 'error' | 'failed' | 'cancelled' {
  if (outcome.kind === 'answered') return isErrorResponse(outcome.response) ? 'error' : 'answered';
  return outcome.reason === 'cancelled' ? 'cancelled' : 'failed';
}

const SETTLED = Promise.resolve();

/**
 * Whether the breaker counts the failure. It counts failures of a process that runs and does not answer well. It does not
 * count the end of a process, which the supervisor handles; `overloaded`, because one client alone can send more than a
 * server reads; a result of the wrong shape, because it is an answer; and the timeout of a task-result wait.
 */
function isFailureOfServer(reason: SendFailure, exchange: Exchange): boolean {
  if (HARMLESS.has(reason)) return false;
  return reason !== 'timeout' || !isTaskResultWait(exchange);
}

const HARMLESS: ReadonlySet<SendFailure> = new Set([
  ...(['exited', 'stopped', 'overloaded', 'result_malformed'] as const),
  // The network and the credentials are no fault of the server either.
  ...(['unreachable', 'connection_lost', 'login_required'] as const),
  // The server works, and may serve every other call.
  'refused' as const,
]);

/** Failures of a connection after which a call may be sent again. */
const RETRIED: ReadonlySet<RequestFailure> = new Set(['exited', 'stopped', 'connection_lost']);

type CallCounters = ReturnType<typeof newCallCounters>;

/** Counters of the calls to one server. They only grow. */
export function newCallCounters() {
  return {
    calls: 0,
    /** Calls that the server answered with a JSON-RPC error or with a tool result that has `isError`. */
    errors: 0,
    /** Calls that the gateway answered with a failure, because the server did not answer. */
    failures: 0,
    cancelled: 0,
    /** Calls that were sent a second time, because the first attempt ended with its process or connection. */
    repeated: 0,
  };
}

const MAX_SAMPLES = 512;

/** Durations of the latest 512 calls to one server, in milliseconds. */
export class Latencies {
  readonly #samples: number[] = [];
  #next = 0;

  add(ms: number): void {
    this.#samples[this.#next] = ms;
    this.#next = (this.#next + 1) % MAX_SAMPLES;
  }

  /**
   * Returns the latency that the share `quantile` (0 to 1) of the calls did not exceed, or `undefined` without calls. `others`
   * are those of other instances of the server.
   */
  quantile(quantile: number, others: readonly Latencies[] = []): number | undefined {
    const sorted = [this, ...others].flatMap((each) => each.#samples).sort((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))];
  }
}

export interface Handling {
  readonly edits: readonly Edit[];
  /** Returns a response in a form that clients accept. Called before all edits of the response. */
  readonly mend?: ReturnType<typeof mender>;
  readonly editAnswer?: EditAnswer | undefined;
  /** Returns the reason why the present process must not get the request. Called on arrival, and just before each attempt. */
  readonly refusal?: (() => Refusal | undefined) | undefined;
  /** Whether the request may be sent again to the next process if its process exits before the response. */
  readonly isRepeatable?: boolean | undefined;
  /** Present when the request concerns a task. */
  readonly translation?: Translation | undefined;
  /** Called with the response after it was relayed. */
  readonly onAnswered?: ((response: ResponseEnvelope) => void) | undefined;
}

/** Returns the edits of a server's response, just before the response is relayed. `connection` is the one that it came over. */
export type EditAnswer = (response: ResponseEnvelope, connection: UpstreamConnection) => readonly Edit[];

/** Replaces the task ids in messages between a client and a server, just before each message is relayed. */
export interface Translation {
  request?(connection: UpstreamConnection): readonly Edit[];
  /** Edits of the response. `keepProgress()` relays progress also after the response; call its result to stop that. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): readonly Edit[];
  progress(notification: NotificationEnvelope): readonly Edit[];
  cancel(notification: NotificationEnvelope): readonly Edit[];
  /** Resolves with the final outcome if the response only created a task. Returns `undefined` if the response is final. */
  conclude?(
    response: ResponseEnvelope,
    connection: UpstreamConnection,
    keepProgress: () => () => void,
  ): Promise<Outcome> | undefined;
}

/** The results that are mended, and where they are in the responses to these methods. A state of a task has the result within it. */
const MENDED: ReadonlyMap<string, readonly [ResultKind, ...path: string[]]> = new Map([
  [METHODS.callTool, ['tool']],
  [METHODS.taskResult, ['tool']],
  [METHODS.getTask, ['tool', 'result']],
  [METHODS.getPrompt, ['prompt']],
  [METHODS.readResource, ['resource']],
]);

/** Size limit of a result that is checked. A larger one is relayed as it is. */
const MAX_READ_BYTES = 256 * 1024;
/** Returns a function that mends the results of a request. `repaired` gets the fault of the first mended result of each method. */
export function mender({ request, client }: Exchange, repaired: Map<string, string>) {
  const { method } = request;
  const [kind, ...path] = MENDED.get(method) ?? [];
  if (kind === undefined) return undefined;
  const uri = kind === 'resource' ? stringAt(request.bytes, request.tokens.uri) : undefined;
  const isModernClient = !hasHandshake(client.revision);
  return (response: ResponseEnvelope, { revision }: UpstreamConnection): ResponseEnvelope => {
    const { bytes, span, result, tokens } = response;
    if (result === undefined || result.end - result.start > MAX_READ_BYTES) return response;
    const [inner] = valuesAt(bytes, result, path);
    if (inner === undefined || !isObject(bytes, inner) || tokens.createdTask !== undefined) return response;
    const mended = mendResult(kind, bytes, inner, { isModernServer: !hasHandshake(revision), isModernClient, uri });
    if (mended === undefined) return response;
    if (mended.repaired !== undefined && !repaired.has(method)) repaired.set(method, mended.repaired);
    const whole = scanOwn(splice({ bytes, span, edits: [{ span: inner, text: mended.bytes }] }));
    return whole.kind === 'response' ? whole : response;
  };
}
