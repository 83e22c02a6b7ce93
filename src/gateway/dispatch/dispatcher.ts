import type { Failure, FailureReason, WhyDown } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import type { CallLimits } from '../../spec/server-rules.js';
import type { ServerState } from '../../spec/server-state.js';
import { CircuitBreaker } from '../../upstream/health/circuit-breaker.js';
import { PROBES } from '../../upstream/health/health-monitor.js';
import type { RequestTimeouts, UpstreamConnection } from '../../upstream/upstream-connection.js';
import type { SharedLimit } from '../../wire/io/shared-limit.js';
import { Admission } from './admission.js';
import {
  type Availability,
  afterClose,
  afterConnect,
  afterConnectionEnd,
  afterIdleStop,
  afterState,
  initialAvailability,
} from './availability.js';
import {
  Call,
  type CallHost,
  type CallHostOptions,
  type FailureWords,
  type Handling,
  Latencies,
  newCallCounters,
  taskTimeouts,
} from './call.js';
import { InFlightCalls } from './in-flight-calls.js';

export interface CallRules {
  readonly limits: CallLimits;
  /** Names in lower case of the headers of a client's request that go to the server with its calls. */
  readonly passHeaders?: readonly string[];
}

export interface DispatcherOptions extends CallHostOptions, CallRules {
  /** Counts the waiting calls of all servers together. */
  readonly waiting?: SharedLimit;
  readonly isMisconfigured?: boolean;
  /** Milliseconds until the supervisor's next start, or `undefined` if none is planned. */
  readonly retryInMs: () => number | undefined;
  /** Reason for which no process runs, without secrets. */
  readonly whyDown?: () => WhyDown | undefined;
  /** Says as a clause on which page the user of this instance logs in. Absent if each reason says how to log in. */
  readonly loginAdvice?: (() => string | undefined) | undefined;
  readonly isRemote?: boolean;
}

/**
 * Dispatches client calls to one server: circuit breaker, admission, then one attempt on each connection.
 *
 * A call that was sent ends with its connection, unless the call may be repeated. Only the dispatcher changes the
 * availability of the server.
 */
export class Dispatcher implements CallHost {
  readonly options: DispatcherOptions;
  readonly counters = newCallCounters();
  readonly failureReasons = new Map<FailureReason, number>();
  readonly latencies = new Latencies();
  /** The fault of the first result of each method that clients would have rejected, and that was repaired. */
  readonly repairedResults = new Map<string, string>();
  readonly inFlightCalls = new InFlightCalls();
  readonly admission: Admission;
  limits: CallLimits;
  passHeaders: readonly string[];
  #breaker: CircuitBreaker;
  #availability: Availability;

  constructor(options: DispatcherOptions) {
    this.options = options;
    this.limits = options.limits;
    this.passHeaders = options.passHeaders ?? [];
    this.#availability = initialAvailability(options.isMisconfigured === true);
    this.#breaker = this.#newBreaker();
    this.admission = new Admission(this);
  }

  get availability(): Availability {
    return this.#availability;
  }

  /** The open connection, also while the liveness probe runs. `undefined` without a process. */
  get connection(): UpstreamConnection | undefined {
    return this.#availability.connection;
  }

  get hasBeenUp(): boolean {
    return this.#availability.generation !== undefined;
  }

  get breaker(): CircuitBreaker {
    return this.#breaker;
  }

  /** Reason for which no call may be sent now, even if the server is ready. */
  get refusal(): FailureReason | undefined {
    return this.#breaker.state === 'closed' ? undefined : 'breaker_open';
  }

  get isBusy(): boolean {
    return this.admission.queued > 0 || this.inFlightCalls.size > 0;
  }

  get listTimeouts(): RequestTimeouts {
    const { listTimeoutMs } = this.limits;
    return { idleMs: listTimeoutMs, maxMs: listTimeoutMs };
  }

  get taskTimeouts(): RequestTimeouts {
    return taskTimeouts(this.limits);
  }

  /** Takes a new connection with a new circuit breaker, and sends the calls that waited for a connection. */
  connect(connection: UpstreamConnection): void {
    this.#breaker.close();
    this.#breaker = this.#newBreaker();
    this.#setAvailability(afterConnect(this.#availability, connection));
  }

  stateChanged(state: ServerState): void {
    this.#setAvailability(afterState(this.#availability, state));
  }

  /** Call this before the server is stopped because it is idle. */
  idleStop(): void {
    this.#availability = afterIdleStop(this.#availability);
  }

  /** Sets other rules. Calls in flight keep their timeouts. */
  configure({ limits, passHeaders = [] }: CallRules): void {
    this.limits = limits;
    this.passHeaders = passHeaders;
    this.admission.configure();
  }

  /** Fails a call without sending it. */
  refuse(exchange: Exchange, reason: FailureReason, words?: FailureWords): void {
    this.counters.calls += 1;
    this.fail(exchange, reason, false, words);
  }

  /** Describes a failure of a request to this server. `sent` is whether a process may have seen the request. */
  failureOf(reason: FailureReason, sent: boolean, { detail, because, rule }: FailureWords = {}): Failure {
    const { isRemote } = this.options;
    return {
      // A server behind a URL has no process that could exit.
      reason: isRemote === true && reason === 'child_exited' ? 'connection_lost' : reason,
      server: this.options.key,
      generation: this.#availability.generation,
      sent,
      detail,
      rule,
      isRemote,
      ...this.#reasonOf(reason, because),
      retryAfterMs: reason === 'breaker_open' ? this.#breaker.retryAfterMs : this.options.retryInMs(),
    };
  }

  /** The reason of a failure. A user who lacks a login is told where to log in. */
  #reasonOf(reason: FailureReason, because: string | undefined): Partial<Failure> {
    const { whyDown, loginAdvice } = this.options;
    const known = IS_DOWN.includes(reason) && because === undefined ? { because, ...whyDown?.() } : { because };
    const advice = reason === 'login_required' ? loginAdvice?.() : undefined;
    return advice === undefined ? known : { ...known, because: `${known.because ?? 'there is no login'}; ${advice}` };
  }

  serve(exchange: Exchange, handling: Handling): void {
    this.counters.calls += 1;
    const { refusal } = this;
    if (refusal === undefined) this.admission.enter(new Call(this, exchange, handling));
    else this.fail(exchange, refusal, false);
  }

  leave(call: Call): void {
    this.admission.leave(call);
  }

  withdraw(call: Call): void {
    if (this.admission.withdraw(call)) this.counters.cancelled += 1;
  }

  retry(call: Call, ended: UpstreamConnection): void {
    this.#availability = afterConnectionEnd(this.#availability, ended);
    this.admission.connect(call);
  }

  close(): void {
    this.#setAvailability(afterClose(this.#availability));
    this.#breaker.close();
    this.admission.close();
  }

  #setAvailability(availability: Availability): void {
    this.#availability = availability;
    this.admission.availabilityChanged();
  }

  /** Fails a call and counts the failure. Does nothing if the call was answered or cancelled. */
  fail(exchange: Exchange, reason: FailureReason, sent: boolean, words?: FailureWords): void {
    if (exchange.isSettled) return;
    const { key: server, id: instance, events } = this.options;
    const { method } = exchange.request;
    const failure = this.failureOf(reason, sent, words);
    if (events?.wants('call.failed') === true)
      events.emit({ kind: 'call.failed', server, instance, method, reason: failure.reason, sent });
    this.counters.failures += 1;
    this.failureReasons.set(failure.reason, (this.failureReasons.get(failure.reason) ?? 0) + 1);
    exchange.fail(failure);
  }

  #newBreaker(): CircuitBreaker {
    return new CircuitBreaker(this.options.clock, async () => {
      for (const method of PROBES) {
        const outcome = await this.connection?.request(method, undefined, this.listTimeouts);
        if (outcome?.kind === 'answered') return true;
      }
      return false;
    });
  }
}

/** Failures of calls to a server that does not run or cannot be reached. `whyDown` explains them. */
const IS_DOWN: readonly FailureReason[] = [
  ...(['parked', 'not_installed', 'restarting', 'unreachable', 'login_required', 'misconfigured'] as const),
];
