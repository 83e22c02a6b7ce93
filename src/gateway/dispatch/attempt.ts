import type { Failure, FailureReason } from '../../downstream/failure.js';
import type { DownstreamClient, Exchange, InputRequest, WithdrawInput } from '../../downstream/port.js';
import {
  internalError,
  type OnInternalError,
  reportInternalError,
  withErrorBoundaryAsync,
} from '../../errors/internal-error.js';
import { concatEdits, type SplicedMessage } from '../../json/splice.js';
import { isErrorResponse, type NotificationEnvelope } from '../../mcp/envelope.js';
import { requestedList } from '../../mcp/lists.js';
import { METHODS, TASK_METHODS } from '../../mcp/methods.js';
import { asOlderInput } from '../../mcp/older-content.js';
import type { EventSink } from '../../observe/events/event-bus.js';
import type { GatewayEvent } from '../../observe/events/events.js';
import type { Clock } from '../../timing/clock.js';
import type { CircuitBreaker } from '../../upstream/health/circuit-breaker.js';
import type { Outcome, RequestHandler, RequestTimeouts, SentRequest, UpstreamConnection } from '../../upstream/port.js';
import { type Call, type CallCounters, type CallLimits, callTimeouts, type Latencies, taskTimeouts } from './call.js';
import { type Linked, LinkedList } from './linked-list.js';

/** Details of a failure besides its reason. */
export type FailureWords = Pick<Failure, 'detail' | 'because'>;

export interface AttemptContext {
  readonly events: EventSink;
  /** The server's key, and the id of this instance of it. */
  readonly server: string;
  readonly instance: string;
  readonly clock: Clock;
  readonly limits: () => CallLimits;
  readonly counters: CallCounters;
  readonly latencies: Latencies;
  readonly inFlightCalls: InFlightCalls;
  /** Circuit breaker of the current process. */
  readonly breaker: () => CircuitBreaker;
  /** Answers a call that no process will answer. */
  readonly fail: (exchange: Exchange, reason: FailureReason, sent: boolean, words?: FailureWords) => void;
  /** Releases what the call holds of the server's admission. */
  readonly leave: (call: Call) => void;
  /** Sends the call over the next connection, because this one has ended. */
  readonly retry: (call: Call, ended: UpstreamConnection) => void;
  /** Called with each internal error. An internal error fails one call. */
  readonly onInternalError: OnInternalError | undefined;
}

/** Sends a call over a connection. The attempt ends when the call is answered, failed, cancelled, or sent again. */
export function send(context: AttemptContext, connection: UpstreamConnection, call: Call): void {
  new Attempt(context, connection, call).begin();
}

class Attempt implements RequestHandler, InFlightCall {
  previous: InFlightCall | undefined;
  next: InFlightCall | undefined;
  readonly progressed: number | undefined;
  lease: SplicedMessage['lease'];
  readonly #context: AttemptContext;
  readonly #connection: UpstreamConnection;
  readonly #call: Call;
  /** Absent before the request was sent. */
  #sent: SentRequest | undefined;
  #lastProgressAt: number | undefined;
  #lastProgress: number;

  constructor(context: AttemptContext, connection: UpstreamConnection, call: Call) {
    this.#context = context;
    this.#connection = connection;
    this.#call = call;
    this.progressed = call.earlier?.progressed;
    this.#lastProgress = this.progressed ?? Number.NEGATIVE_INFINITY;
  }

  // Each method catches its own errors: passing a closure to an error boundary for each step would slow down every
  // call.

  begin(): void {
    try {
      this.#begin();
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

  /** An error here loses one progress notification and does not fail the call. */
  progress(notification: NotificationEnvelope, value: number): void {
    try {
      this.#progress(notification, value);
    } catch (error) {
      reportInternalError(error, this.#context.onInternalError);
    }
  }

  get exchange(): Exchange {
    return this.#call.exchange;
  }

  get takesInputRequests(): boolean {
    return this.#call.exchange.takesInputRequests;
  }

  requireInput(input: InputRequest): WithdrawInput {
    const { exchange } = this.#call;
    const edits = asOlderInput(input.request, exchange.client.revision);
    return exchange.requireInput(edits.length === 0 ? input : { ...input, edits: [...input.edits, ...edits] });
  }

  send(message: SplicedMessage): void {
    this.#call.exchange.send(message);
  }

  #begin(): void {
    const { exchange, handling, earlier } = this.#call;
    const { translation } = handling;
    // The process and its tools may have changed since the call arrived.
    const refusal = handling.refusal?.();
    if (refusal !== undefined) {
      this.#context.leave(this.#call);
      this.#context.fail(exchange, 'not_approved', earlier !== undefined, { detail: refusal });
      return;
    }
    this.#context.inFlightCalls.add(this);
    const timeouts = this.#timeouts();
    if (earlier !== undefined) {
      if (Math.min(timeouts.firstMs ?? timeouts.idleMs, timeouts.maxMs) <= 0) {
        this.#settle({ kind: 'failed', reason: 'timeout', sent: true });
        return;
      }
      this.#context.counters.repeated += 1;
    }
    const edits = concatEdits(handling.edits, translation?.request?.(this.#connection));
    if (translation === undefined) this.lease = exchange.leaseRequest();
    const sent = this.#connection.send(exchange.request, edits, timeouts, this);
    if (sent === undefined) {
      this.lease?.release();
      return;
    }
    this.#sent = sent;
    this.#reportStart();
    exchange.onCancel((notification) => this.#cancel(notification));
  }

  #cancel(notification?: NotificationEnvelope): void {
    this.#sent?.cancel(notification, notification && this.#call.handling.translation?.cancel(notification));
  }

  #settle(outcome: Outcome): void {
    if (this.#mayRetry(outcome)) {
      this.#reportEnd(outcome);
      this.#context.inFlightCalls.delete(this);
      this.#context.retry(this.#call, this.#connection);
      return;
    }
    const { translation } = this.#call.handling;
    const response = outcome.kind === 'answered' ? outcome.response : undefined;
    const rest = response && translation?.goOn?.(response, this.#connection, () => this.#keepProgress());
    if (rest === undefined) this.#end(outcome);
    else
      void withErrorBoundaryAsync(
        rest.then((end) => this.#end(end)),
        this.#context.onInternalError,
        () => this.#failInternally(),
      );
  }

  #progress(notification: NotificationEnvelope, value: number): void {
    const { exchange, handling } = this.#call;
    this.#lastProgressAt = this.#context.clock.now();
    this.#lastProgress = value;
    if (!exchange.wantsProgress) return;
    const via = exchange.isSettled ? this.#context.inFlightCalls.taskResultWaitOf(exchange.client) : undefined;
    exchange.progress(notification, handling.translation?.progress(notification), via);
  }

  /** Timeouts of this attempt. The time that an earlier process spent on the call counts. */
  #timeouts(): RequestTimeouts {
    const limits = this.#context.limits();
    if (isTaskResultWait(this.#call.exchange)) return taskTimeouts(limits);
    const { earlier } = this.#call;
    const timeouts = callTimeouts(limits);
    if (earlier === undefined) return timeouts;
    const { idleMs, maxMs } = timeouts;
    const now = this.#context.clock.now();
    return { firstMs: earlier.lastSignAt + idleMs - now, idleMs, maxMs: earlier.startedAt + maxMs - now };
  }

  /**
   * Whether the next process gets the call: nothing of the call was sent to the process that ended, or the call is
   * repeatable and was not repeated before. A repeatable call records how far this attempt got.
   */
  #mayRetry(outcome: Outcome): boolean {
    const call = this.#call;
    if (outcome.kind !== 'failed' || call.exchange.isSettled) return false;
    if (outcome.reason !== 'exited' && outcome.reason !== 'stopped') return false;
    if (!outcome.sent) return true;
    if (call.handling.isRepeatable !== true || call.earlier !== undefined || this.#sent === undefined) return false;
    const { sentAt } = this.#sent;
    const lastSignAt = this.#lastProgressAt ?? sentAt;
    const { because } = outcome;
    call.earlier = { startedAt: sentAt, lastSignAt, progressed: this.#lastProgress, because };
    return true;
  }

  #end(outcome: Outcome): void {
    const call = this.#call;
    const { exchange, earlier } = call;
    const { inFlightCalls, counters, fail, breaker, leave } = this.#context;
    inFlightCalls.delete(this);
    this.#reportEnd(outcome);
    if (outcome.kind === 'answered') {
      leave(call);
      this.#answered(outcome);
      return;
    }
    if (outcome.reason === 'cancelled') {
      leave(call);
      counters.cancelled += 1;
      return;
    }
    fail(exchange, FAILURE_REASONS[outcome.reason], outcome.sent || earlier !== undefined, outcome);
    // Counts before the call leaves: the next call must not start if this failure opens the breaker.
    if (isFailureOfServer(outcome.reason, exchange)) breaker().failed();
    leave(call);
  }

  #answered({ response, at, edits }: Extract<Outcome, { readonly kind: 'answered' }>): void {
    const { exchange, handling, earlier } = this.#call;
    const { counters, latencies, breaker } = this.#context;
    const { editAnswer, translation, onAnswered } = handling;
    const ofTask = translation?.answer(response, () => this.#keepProgress());
    const all = concatEdits(concatEdits(editAnswer?.(response, this.#connection), ofTask), edits);
    exchange.answer(response, all, this.#connection.nameInResults);
    if (!isTaskResultWait(exchange)) latencies.add(at - (earlier?.startedAt ?? this.#sent?.sentAt ?? at));
    if (isErrorResponse(response)) counters.errors += 1;
    breaker().succeeded(at);
    // A microtask that is queued already writes the answer, so `onAnswered` runs after the write.
    if (onAnswered !== undefined) void SETTLED.then(() => onAnswered(response));
  }

  #reportStart(): void {
    const { events, server, instance } = this.#context;
    if (!events.wants('attempt.started')) return;
    const { generation } = this.#connection;
    const { method } = this.exchange.request;
    const isRepeated = this.#call.earlier !== undefined;
    events.emit({ kind: 'attempt.started', server, instance, generation, method, isRepeated });
  }

  /** An attempt that could not be sent has not started, and so does not end. */
  #reportEnd(outcome: Outcome): void {
    const { events, server, instance, clock } = this.#context;
    if (this.#sent === undefined || !events.wants('attempt.ended')) return;
    const { generation } = this.#connection;
    const { method } = this.exchange.request;
    const durationMs = (outcome.kind === 'answered' ? outcome.at : clock.now()) - this.#sent.sentAt;
    events.emit({
      kind: 'attempt.ended',
      server,
      instance,
      generation,
      method,
      outcome: toResult(outcome),
      durationMs,
    });
  }

  /** Reports an internal error and fails the call. */
  #recover(error: unknown): void {
    reportInternalError(error, this.#context.onInternalError);
    this.#failInternally();
  }

  /** Fails the call with an internal error, and releases what it holds. */
  #failInternally(): void {
    this.#context.inFlightCalls.delete(this);
    this.#context.leave(this.#call);
    this.#call.exchange.fail(internalError());
  }

  /** Passes on progress after the answer, until the returned function is called. */
  #keepProgress(): () => void {
    const ends = [this.#call.exchange.keepProgress(), this.#sent?.keepProgress()];
    return () => {
      for (const end of ends) end?.();
    };
  }
}

function toResult(outcome: Outcome): AttemptEnded['outcome'] {
  if (outcome.kind === 'answered') return isErrorResponse(outcome.response) ? 'error' : 'answered';
  return outcome.reason === 'cancelled' ? 'cancelled' : 'failed';
}

type AttemptEnded = Extract<GatewayEvent, { readonly kind: 'attempt.ended' }>;

const SETTLED = Promise.resolve();

type SendFailure = Exclude<Extract<Outcome, { kind: 'failed' }>['reason'], 'cancelled'>;

/**
 * Whether the breaker counts the failure: those of a process that runs and does not answer. The end of a process is the
 * supervisor's concern. A task that outlasts the wait for its result is no failure. Nor is a call that was refused because
 * too much waits to be written: one client can cause that with large calls, and a process that reads nothing does not
 * answer the calls before it either. Nor is a result of the wrong shape: the server answers, and its other tools may be fine.
 */
function isFailureOfServer(reason: SendFailure, exchange: Exchange): boolean {
  if (HARMLESS.has(reason)) return false;
  return reason !== 'timeout' || !isTaskResultWait(exchange);
}

const HARMLESS: ReadonlySet<SendFailure> = new Set(['exited', 'stopped', 'overloaded', 'result_malformed']);

/** Failure that the client gets for each failure of sending. */
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

/** A call that was sent, as a node of the linked list in `InFlightCalls`. */
export interface InFlightCall extends Linked<InFlightCall> {
  readonly exchange: Exchange;
}

/**
 * The calls in flight on one process, in the order in which they were sent or resumed. They decide which client a
 * notification or a server request is for. A settled call cannot carry messages to its client any more.
 */
export class InFlightCalls {
  readonly #calls = new LinkedList<InFlightCall>();
  #onIdle = () => {};

  get size(): number {
    return this.#calls.size;
  }

  add(call: InFlightCall): void {
    this.#calls.add(call);
  }

  /** Removes a call. Calling it again does nothing. */
  delete(call: InFlightCall): void {
    if (this.#calls.delete(call) && this.#calls.size === 0) this.#onIdle();
  }

  /** The server goes on with a call for which its client came back, as if the call had been sent just now. */
  resumed(exchange: Pick<Exchange, 'requireInput'>): void {
    let call = this.#calls.first;
    while (call !== undefined && call.exchange !== exchange) call = call.next;
    if (call === undefined || call === this.#calls.last) return;
    this.delete(call);
    this.add(call);
  }

  /** Calls `onIdle` each time the last call ends, and at once if no call is in flight now. */
  whenIdle(onIdle: () => void): void {
    this.#onIdle = onIdle;
    if (this.#calls.size === 0) onIdle();
  }

  /**
   * The call that caused a notification or a server request: the latest candidate, if all candidates belong to one
   * conversation. `undefined` without a candidate, or with candidates of several conversations. Client capabilities do not help to
   * decide, because a process that serves all clients knows none of them.
   *
   * Messages about a task name that task, so task requests are candidates only if no other call is in flight. Calls
   * that are not interactive are candidates only if no interactive call is in flight, and those that wait for their client
   * only if no other one is. A call of another user that waits counts all the same: no user may get another's question.
   */
  get cause(): Exchange | undefined {
    const all = this.#all.filter(({ isSettled }) => !isSettled);
    const possible = preferring(preferring(all, isNotTaskRequest), isInteractive);
    const candidates = preferring(possible, isActive);
    const latest = candidates.at(-1);
    const isCertain = candidates.every(({ conversation }) => conversation === latest?.conversation);
    const isOfOneUser = possible.every(({ client }) => client.principal === latest?.client.principal);
    return isCertain && isOfOneUser ? latest : undefined;
  }

  /**
   * The call of this client that carries a message about a task: the latest that waits for a task result, else the
   * latest that is not a task request. A request that reads or cancels a task carries only its own answer.
   */
  latestOf(client: DownstreamClient): Exchange | undefined {
    let latest: Exchange | undefined;
    for (const exchange of this.#all) {
      const isOutranked = latest !== undefined && isTaskResultWait(latest);
      const isCandidate = isTaskResultWait(exchange) || (isNotTaskRequest(exchange) && !isOutranked);
      if (exchange.client === client && !exchange.isSettled && isCandidate) latest = exchange;
    }
    return latest;
  }

  /** The call that carries progress of a task: only a task-result wait, so that progress keeps its order. */
  taskResultWaitOf(client: DownstreamClient): Exchange | undefined {
    const latest = this.latestOf(client);
    return latest !== undefined && isTaskResultWait(latest) ? latest : undefined;
  }

  get #all(): Exchange[] {
    const all: Exchange[] = [];
    for (let call = this.#calls.first; call !== undefined; call = call.next) all.push(call.exchange);
    return all;
  }
}

/** Whether the request waits for a task result (`tasks/result`), which costs the server no work. */
function isTaskResultWait({ request }: Exchange): boolean {
  return request.method === METHODS.taskResult;
}

/** Whether the request does not count toward the concurrency limit of the server. */
export function needsNoSlot(exchange: Exchange): boolean {
  return isTaskResultWait(exchange) || requestedList(exchange.request.method) !== undefined;
}

/** Whether the server may send a request to the client before it answers this request. */
export function isInteractive({ request }: Exchange): boolean {
  return INTERACTIVE.has(request.method);
}

const INTERACTIVE: ReadonlySet<string> = new Set([METHODS.callTool, METHODS.getPrompt, METHODS.readResource]);

function isNotTaskRequest({ request }: Exchange): boolean {
  return !TASK_METHODS.has(request.method);
}

/** Returns the calls of this kind, or all calls if none is of this kind. */
function preferring(calls: readonly Exchange[], isOfKind: (call: Exchange) => boolean): readonly Exchange[] {
  const some = calls.filter(isOfKind);
  return some.length > 0 ? some : calls;
}

/** Whether the server works on the request, and does not wait for input of its client. */
function isActive({ isSuspended }: Exchange): boolean {
  return !isSuspended;
}
