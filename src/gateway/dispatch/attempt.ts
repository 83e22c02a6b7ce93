import type { Exchange } from '../../downstream/exchange.js';
import type { FailureReason } from '../../downstream/failure.js';
import { type OnInternalError, reportInternalError, withErrorBoundaryAsync } from '../../errors/error-boundary.js';
import { internalError } from '../../errors/internal-error.js';
import type { Edit } from '../../json/splice.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import type { Clock } from '../../timing/clock.js';
import type { CircuitBreaker } from '../../upstream/health/circuit-breaker.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import type { Outcome, RequestHandler, RequestTimeouts, SentRequest } from '../../upstream/request.js';
import type { Call, CallLimits } from './call.js';
import type { CallCounters, Latencies } from './call-metrics.js';
import { type InFlightCall, type InFlightCalls, isTaskResultWait } from './in-flight-calls.js';

export interface AttemptContext {
  readonly clock: Clock;
  readonly limits: () => CallLimits;
  readonly counters: CallCounters;
  readonly latencies: Latencies;
  readonly inFlightCalls: InFlightCalls;
  /** Judges the process that is there. */
  readonly breaker: () => CircuitBreaker;
  /** Answers a call that no process will. */
  readonly fail: (exchange: Exchange, reason: FailureReason, sent: boolean, detail?: string) => void;
  /** Gives back what the call holds of the server's admission. */
  readonly leave: (call: Call) => void;
  /** The connection has ended, and the call may be sent over the next one. */
  readonly retry: (call: Call, ended: UpstreamConnection) => void;
  /** Told of our own errors, each of which fails one call. */
  readonly onInternalError: OnInternalError | undefined;
}

/** For a wait until a task is done, which is silent for as long as that takes. */
export function taskTimeouts({ maxTimeoutMs }: CallLimits): RequestTimeouts {
  return { idleMs: maxTimeoutMs, maxMs: maxTimeoutMs };
}

/** For any other request. */
function callTimeouts({ idleTimeoutMs, maxTimeoutMs }: CallLimits): RequestTimeouts {
  return { idleMs: idleTimeoutMs, maxMs: maxTimeoutMs };
}

/** Sends a call to a process and sees it to its end there: answered, failed, cancelled, or on its way to the next one. */
export function send(context: AttemptContext, connection: UpstreamConnection, call: Call): void {
  new Attempt(context, connection, call).begin();
}

class Attempt implements RequestHandler, InFlightCall {
  previous: InFlightCall | undefined;
  next: InFlightCall | undefined;
  readonly progressed: number | undefined;
  onWritten: (() => void) | undefined;
  readonly #context: AttemptContext;
  readonly #connection: UpstreamConnection;
  readonly #call: Call;
  /** Absent before it was sent. */
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

  // Errors are caught in place: a function for each step of each call would cost more than the check.

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

  /** A report that is lost is no reason to fail. */
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

  #begin(): void {
    const { exchange, handling, earlier } = this.#call;
    const { translation } = handling;
    // The process may be another one than when the call came, and its tools too.
    const refusal = handling.refusal?.();
    if (refusal !== undefined) {
      this.#context.leave(this.#call);
      this.#context.fail(exchange, 'not_approved', earlier !== undefined, refusal);
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
    if (translation === undefined) this.onWritten = exchange.passing();
    const sent = this.#connection.relay(exchange.request, edits, timeouts, this);
    if (sent === undefined) return;
    this.#sent = sent;
    exchange.onCancel((notice) => this.#cancel(notice));
  }

  #cancel(notice?: NotificationEnvelope): void {
    this.#sent?.cancel(notice, notice && this.#call.handling.translation?.cancel(notice));
  }

  #settle(outcome: Outcome): void {
    if (this.#mayRetry(outcome)) {
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

  /** What an earlier process has used of the call's time is used. */
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
   * Whether the next process gets the call: the one that ended has seen nothing of it, or the call may be served twice,
   * and then it is repeated once only. In that case the call notes how far this attempt got.
   */
  #mayRetry(outcome: Outcome): boolean {
    const call = this.#call;
    if (outcome.kind !== 'failed' || call.exchange.isSettled) return false;
    if (outcome.reason !== 'exited' && outcome.reason !== 'stopped') return false;
    if (!outcome.sent) return true;
    if (call.handling.isRepeatable !== true || call.earlier !== undefined || this.#sent === undefined) return false;
    const { sentAt } = this.#sent;
    const lastSignAt = this.#lastProgressAt ?? sentAt;
    call.earlier = { startedAt: sentAt, lastSignAt, progressed: this.#lastProgress };
    return true;
  }

  #end(outcome: Outcome): void {
    const call = this.#call;
    const { exchange, earlier } = call;
    const { inFlightCalls, counters, fail, breaker, leave } = this.#context;
    inFlightCalls.delete(this);
    if (outcome.kind === 'answered') {
      leave(call);
      this.#answered(outcome.response, outcome.at);
      return;
    }
    if (outcome.reason === 'cancelled') {
      leave(call);
      counters.cancelled += 1;
      return;
    }
    fail(exchange, FAILURE_REASONS[outcome.reason], outcome.sent || earlier !== undefined);
    // The supervisor judges how a process ends; the breaker judges one that lives and does not serve. A task that takes
    // longer than the gateway waits for its result says nothing about that either.
    const isExpected = outcome.reason === 'timeout' && isTaskResultWait(exchange);
    if (outcome.reason === 'exited' || outcome.reason === 'stopped' || isExpected) leave(call);
    // The next call must not start before the breaker has counted this failure.
    else
      void breaker()
        .failed()
        .then(() => leave(call));
  }

  #answered(response: ResponseEnvelope, at: number): void {
    const { exchange, handling, earlier } = this.#call;
    const { counters, latencies, breaker } = this.#context;
    const { editAnswer, translation, onAnswered } = handling;
    const ofTask = translation?.answer(response, () => this.#keepProgress());
    exchange.relay(response, concatEdits(editAnswer?.(response), ofTask));
    if (!isTaskResultWait(exchange)) latencies.add(at - (earlier?.startedAt ?? this.#sent?.sentAt ?? at));
    if (response.error !== undefined || isTrue(response.bytes, response.tokens.isError)) counters.errors += 1;
    breaker().succeeded(at);
    // The answer leaves in a microtask that is queued already; this one comes after it.
    if (onAnswered !== undefined) void SETTLED.then(() => onAnswered(response));
  }

  /** An error of our own. */
  #recover(error: unknown): void {
    reportInternalError(error, this.#context.onInternalError);
    this.#failInternally();
  }

  /** Ends this call after an error of our own, and gives back what it held. */
  #failInternally(): void {
    this.#context.inFlightCalls.delete(this);
    this.#context.leave(this.#call);
    this.#call.exchange.fail(internalError());
  }

  /** Lets the exchange hear of progress after its answer. */
  #keepProgress(): () => void {
    const ends = [this.#call.exchange.keepProgress(), this.#sent?.keepProgress()];
    return () => {
      for (const end of ends) end?.();
    };
  }
}

const SETTLED = Promise.resolve();

type SendFailure = Exclude<Extract<Outcome, { kind: 'failed' }>['reason'], 'cancelled'>;

const FAILURE_REASONS: Readonly<Record<SendFailure, FailureReason>> = {
  timeout: 'timeout',
  exited: 'child_exited',
  stopped: 'stopped',
  overloaded: 'overloaded',
  response_too_large: 'response_too_large',
  response_malformed: 'response_malformed',
};

/** Most calls have neither, and need no list for it. */
function concatEdits(some: readonly Edit[] = NO_EDITS, others: readonly Edit[] = NO_EDITS): readonly Edit[] {
  if (others.length === 0) return some;
  return some.length === 0 ? others : [...some, ...others];
}

const NO_EDITS: readonly Edit[] = [];

function isTrue(bytes: Uint8Array, span: { readonly start: number } | undefined): boolean {
  return span !== undefined && bytes[span.start] === 0x74;
}
