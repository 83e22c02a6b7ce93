import type { FailureReason } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import { type OnInternalError, reportInternalError, withErrorBoundaryAsync } from '../../errors/error-boundary.js';
import { internalError } from '../../errors/internal-error.js';
import type { Edit } from '../../json/splice.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import type { Clock } from '../../timing/clock.js';
import type { CircuitBreaker } from '../../upstream/health/circuit-breaker.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import type { Outcome, RequestHandler, RequestTimeouts, SentRequest } from '../../upstream/request.js';
import type { CallCounters } from './call-counters.js';
import type { CallLimits } from './call-limits.js';
import type { Handling } from './handling.js';
import { type InFlightCalls, isTaskResultWait } from './in-flight-calls.js';
import type { Latencies } from './latencies.js';

/** A call that has its turn; it keeps it until `leave`. */
export interface AdmittedCall {
  readonly exchange: Exchange;
  readonly handling: Handling;
  readonly leave: () => void;
  /** Present when a process ended while it was at work on the call, which may then have another one. */
  readonly earlier?: EarlierTry;
}

/** How far an earlier process got with a call. Times are milliseconds on the clock. */
interface EarlierTry {
  readonly startedAt: number;
  /** When it was sent, or progress came last. */
  readonly lastSignAt: number;
  /** The progress that its client was told of. */
  readonly progressed: number;
}

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
  /** The process has ended, and the call may have the next one. */
  readonly sendElsewhere: (call: AdmittedCall, ended: UpstreamConnection) => void;
  /** Told of our own errors, each of which fails one call. */
  readonly onFault: OnInternalError | undefined;
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
export function send(context: AttemptContext, connection: UpstreamConnection, call: AdmittedCall): void {
  new Attempt(context, connection, call).begin();
}

class Attempt implements RequestHandler {
  readonly progressed: number | undefined;
  onWritten: (() => void) | undefined;
  readonly #context: AttemptContext;
  readonly #connection: UpstreamConnection;
  readonly #call: AdmittedCall;
  /** Absent before it was sent. */
  #sent: SentRequest | undefined;
  #lastProgressAt: number | undefined;
  #lastProgress: number;
  #hasLeft = false;

  constructor(context: AttemptContext, connection: UpstreamConnection, call: AdmittedCall) {
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
      reportInternalError(error, this.#context.onFault);
    }
  }

  #begin(): void {
    const { exchange, handling, earlier, leave } = this.#call;
    const { translation } = handling;
    // The process may be another one than when the call came, and its tools too.
    const refusal = handling.refusal?.();
    if (refusal !== undefined) {
      leave();
      this.#context.fail(exchange, 'not_approved', earlier !== undefined, refusal);
      return;
    }
    this.#context.inFlightCalls.add(exchange);
    const timeouts = this.#timeouts();
    if (earlier !== undefined) {
      if (Math.min(timeouts.firstMs ?? timeouts.idleMs, timeouts.maxMs) <= 0) {
        this.#settle({ kind: 'failed', reason: 'timeout', sent: true });
        return;
      }
      this.#context.counters.repeated += 1;
    }
    const edits = joined(handling.edits, translation?.request?.(this.#connection));
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
    const again = this.#again(outcome);
    if (again !== undefined) {
      this.#context.inFlightCalls.delete(this.#call.exchange);
      this.#context.sendElsewhere(again, this.#connection);
      return;
    }
    const { translation } = this.#call.handling;
    const response = outcome.kind === 'answered' ? outcome.response : undefined;
    const rest = response && translation?.goOn?.(response, this.#connection, () => this.#keepProgress());
    if (rest === undefined) this.#end(outcome);
    else
      void withErrorBoundaryAsync(
        rest.then((end) => this.#end(end)),
        this.#context.onFault,
        () => this.#giveUp(),
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
   * The call as the next process gets it, if it does: the one that ended has seen nothing of it, or it may be served
   * twice, and then it is only once that it is repeated.
   */
  #again(outcome: Outcome): AdmittedCall | undefined {
    const call = this.#call;
    if (outcome.kind !== 'failed' || call.exchange.isSettled) return undefined;
    if (outcome.reason !== 'exited' && outcome.reason !== 'stopped') return undefined;
    if (!outcome.sent) return call;
    if (call.handling.isRepeatable !== true || call.earlier !== undefined || this.#sent === undefined) return undefined;
    const { sentAt } = this.#sent;
    const lastSignAt = this.#lastProgressAt ?? sentAt;
    return { ...call, earlier: { startedAt: sentAt, lastSignAt, progressed: this.#lastProgress } };
  }

  #end(outcome: Outcome): void {
    const { exchange, earlier } = this.#call;
    const { inFlightCalls, counters, fail, breaker } = this.#context;
    inFlightCalls.delete(exchange);
    this.#leave();
    if (outcome.kind === 'answered') {
      this.#answered(outcome.response, outcome.at);
      return;
    }
    if (outcome.reason === 'cancelled') {
      counters.cancelled += 1;
      return;
    }
    fail(exchange, FAILURE_REASONS[outcome.reason], outcome.sent || earlier !== undefined);
    // How a process ends is the supervisor's to judge; the breaker is for one that lives and does not serve. A task
    // that takes longer than we wait for its result says nothing of that either.
    const isToBeExpected = outcome.reason === 'timeout' && isTaskResultWait(exchange);
    if (outcome.reason !== 'exited' && outcome.reason !== 'stopped' && !isToBeExpected) breaker().failed();
  }

  #answered(response: ResponseEnvelope, at: number): void {
    const { exchange, handling, earlier } = this.#call;
    const { counters, latencies, breaker } = this.#context;
    const { editAnswer, translation, onAnswered } = handling;
    const ofTask = translation?.answer(response, () => this.#keepProgress());
    exchange.answer(response, joined(editAnswer?.(response), ofTask));
    if (!isTaskResultWait(exchange)) latencies.add(at - (earlier?.startedAt ?? this.#sent?.sentAt ?? at));
    if (response.error !== undefined || isTrue(response.bytes, response.tokens.isError)) counters.errors += 1;
    breaker().succeeded(at);
    // The answer leaves in a microtask that is queued already; this one comes after it.
    if (onAnswered !== undefined) void SETTLED.then(() => onAnswered(response));
  }

  /** An error of our own. */
  #recover(error: unknown): void {
    reportInternalError(error, this.#context.onFault);
    this.#giveUp();
  }

  /** Ends this call after an error of our own, and gives back what it held. */
  #giveUp(): void {
    this.#context.inFlightCalls.delete(this.#call.exchange);
    this.#leave();
    this.#call.exchange.fail(internalError());
  }

  /** What a call holds is given back once, whatever goes wrong on the way. */
  #leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#call.leave();
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
function joined(some: readonly Edit[] = NOTHING, others: readonly Edit[] = NOTHING): readonly Edit[] {
  if (others.length === 0) return some;
  return some.length === 0 ? others : [...some, ...others];
}

const NOTHING: readonly Edit[] = [];

function isTrue(bytes: Uint8Array, span: { readonly start: number } | undefined): boolean {
  return span !== undefined && bytes[span.start] === 0x74;
}
