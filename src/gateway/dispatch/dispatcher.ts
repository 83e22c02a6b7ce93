import type { Failure, FailureReason } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import type { OnInternalError } from '../../errors/internal-error.js';
import type { SharedLimit } from '../../io/shared-limit.js';
import { type EventSink, NO_EVENTS } from '../../observe/events/event-bus.js';
import type { Clock } from '../../timing/clock.js';
import { type BreakerPolicy, CircuitBreaker } from '../../upstream/health/circuit-breaker.js';
import { PROBES } from '../../upstream/health/liveness-probe.js';
import type { RequestTimeouts, UpstreamConnection } from '../../upstream/port.js';
import { Admission, type HeldNotification } from './admission.js';
import { type AttemptContext, type FailureWords, InFlightCalls, send } from './attempt.js';
import {
  type Availability,
  afterClose,
  afterConnect,
  afterConnectionEnd,
  afterIdleStop,
  afterState,
  connectionOf,
  initialAvailability,
  type ServerState,
} from './availability.js';
import { Call, type CallLimits, type Handling, Latencies, newCallCounters, taskTimeouts } from './call.js';

export interface DispatcherOptions {
  /** Counts the waiting calls of all servers together. */
  readonly waiting?: SharedLimit;
  /** Called with each internal error. An internal error fails one call. */
  readonly onInternalError?: OnInternalError;
  readonly key: string;
  /** Unique among the instances of all servers. */
  readonly id: string;
  readonly clock: Clock;
  readonly limits: CallLimits;
  readonly breakerPolicy?: BreakerPolicy;
  /** Whether the configuration of this server is wrong, so that it can never run. */
  readonly isMisconfigured?: boolean;
  readonly events?: EventSink | undefined;
  /** Milliseconds until the supervisor's next start, or `undefined` if none is planned. */
  readonly retryInMs: () => number | undefined;
  /** Why no process runs. Without secrets. */
  readonly whyDown?: () => Pick<Failure, 'cause' | 'because'> | undefined;
}

/**
 * Dispatches client calls to one server: circuit breaker, admission, then one attempt per connection.
 *
 * A call that was sent ends with its connection, unless the call may be repeated. The dispatcher owns the server's
 * availability; all others read it.
 */
export class Dispatcher {
  readonly counters = newCallCounters();
  /** Number of calls that the gateway failed, by reason. */
  readonly failureReasons = new Map<FailureReason, number>();
  readonly latencies = new Latencies();
  readonly inFlightCalls = new InFlightCalls();
  readonly #options: DispatcherOptions;
  readonly #admission: Admission;
  readonly #attempts: AttemptContext;
  #limits: CallLimits;
  #breaker: CircuitBreaker;
  #availability: Availability;

  constructor(options: DispatcherOptions) {
    const { clock, limits, onInternalError, waiting, isMisconfigured = false, events = NO_EVENTS } = options;
    const { key: server, id: instance } = options;
    const { counters, latencies, inFlightCalls } = this;
    this.#options = options;
    this.#limits = limits;
    this.#availability = initialAvailability(isMisconfigured);
    this.#breaker = this.#newBreaker();
    this.#admission = new Admission({
      clock,
      limits,
      allWaiting: waiting,
      availability: () => this.#availability,
      refusal: () => (this.#breaker.state === 'closed' ? undefined : 'breaker_open'),
      start: (call, connection) => send(this.#attempts, connection, call),
      fail: (...failure) => this.#fail(...failure),
      onCancelled: () => {
        counters.cancelled += 1;
      },
    });
    this.#attempts = {
      ...{ clock, counters, latencies, inFlightCalls, onInternalError, events, server, instance },
      limits: () => this.#limits,
      breaker: () => this.#breaker,
      fail: (...failure) => this.#fail(...failure),
      leave: (call) => this.#admission.leave(call),
      retry: (call, ended) => {
        this.#availability = afterConnectionEnd(this.#availability, ended);
        this.#admission.retry(call);
      },
    };
  }

  get availability(): Availability {
    return this.#availability;
  }

  /** The open connection, also while the liveness probe runs. */
  get connection(): UpstreamConnection | undefined {
    return connectionOf(this.#availability);
  }

  /** Whether the server was ever connected. */
  get hasBeenUp(): boolean {
    return this.#availability.generation !== undefined;
  }

  get breaker(): Pick<CircuitBreaker, 'state' | 'retryAfterMs'> {
    return this.#breaker;
  }

  /** Number of calls that wait for admission. */
  get queued(): number {
    return this.#admission.queued;
  }

  /** Whether a call waits or is in flight. */
  get isBusy(): boolean {
    return this.queued > 0 || this.inFlightCalls.size > 0;
  }

  /** Whether a call waits at any stage, or `untilConnected` waits for a connection. */
  get isAwaited(): boolean {
    return this.#admission.isAwaited;
  }

  /** Whether calls or notifications wait for the next connection. */
  get hasBacklog(): boolean {
    return this.#admission.hasBacklog;
  }

  /** Sends a client's notification over the next connection. Drops it if none comes in time. */
  hold(notification: HeldNotification): void {
    this.#admission.hold(notification);
  }

  /** Timeouts of the gateway's own requests. */
  get listTimeouts(): RequestTimeouts {
    const { listTimeoutMs } = this.#limits;
    return { idleMs: listTimeoutMs, maxMs: listTimeoutMs };
  }

  /** Timeouts of a request that waits for a task result. */
  get taskTimeouts(): RequestTimeouts {
    return taskTimeouts(this.#limits);
  }

  /** From now on, sends interactive calls of one client at a time, because the server sends requests to its callers. */
  serveOneClientAtATime(): void {
    this.#admission.serveOneClientAtATime();
  }

  /** Uses a new connection, and sends the calls that waited for it. The connection gets its own circuit breaker. */
  connect(connection: UpstreamConnection): void {
    this.#breaker.close();
    this.#breaker = this.#newBreaker();
    this.#become(afterConnect(this.#availability, connection));
  }

  /** Takes over a new state from the supervisor. */
  stateChanged(state: ServerState): void {
    this.#become(afterState(this.#availability, state));
  }

  /** Call this before the server is stopped because it is idle. */
  idleStop(): void {
    this.#availability = afterIdleStop(this.#availability);
  }

  /**
   * Resolves with `undefined` once there is a connection. Resolves with a reason if no connection will come, or if none
   * came within `waitMs` milliseconds.
   */
  untilConnected(waitMs: number): Promise<FailureReason | undefined> {
    return this.#admission.untilConnected(waitMs);
  }

  /** Removes the waiting calls and returns those that no process has seen. The caller must answer them. */
  takeUnsent(): Exchange[] {
    return this.#admission.takeUnsent();
  }

  /** Sets other limits. Calls in flight keep their timeouts. */
  configure(limits: CallLimits): void {
    this.#limits = limits;
    this.#admission.configure(limits);
  }

  /** Fails a call without sending it. */
  refuse(exchange: Exchange, reason: FailureReason, detail?: string): void {
    this.counters.calls += 1;
    this.#fail(exchange, reason, false, { detail });
  }

  /** Describes a failure of a request to this server. `sent` is whether a process may have seen the request. */
  failureOf(reason: FailureReason, sent: boolean, { detail, because }: FailureWords = {}): Failure {
    return {
      reason,
      server: this.#options.key,
      generation: this.#availability.generation,
      sent,
      detail,
      because,
      ...(IS_DOWN.includes(reason) && this.#options.whyDown?.()),
      retryAfterMs: reason === 'breaker_open' ? this.#breaker.retryAfterMs : this.#options.retryInMs(),
    };
  }

  /** Serves a client request. */
  serve(exchange: Exchange, handling: Handling): void {
    this.counters.calls += 1;
    if (this.#breaker.state === 'closed') this.#admission.enter(new Call(exchange, handling));
    else this.#fail(exchange, 'breaker_open', false);
  }

  close(): void {
    this.#become(afterClose(this.#availability));
    this.#breaker.close();
    this.#admission.close();
  }

  #become(availability: Availability): void {
    this.#availability = availability;
    this.#admission.availabilityChanged();
  }

  #fail(exchange: Exchange, reason: FailureReason, sent: boolean, words?: FailureWords): void {
    if (exchange.isSettled) return;
    const { key: server, id: instance, events = NO_EVENTS } = this.#options;
    const { method } = exchange.request;
    if (events.wants('call.failed')) events.emit({ kind: 'call.failed', server, instance, method, reason, sent });
    this.counters.failures += 1;
    this.failureReasons.set(reason, (this.failureReasons.get(reason) ?? 0) + 1);
    exchange.fail(this.failureOf(reason, sent, words));
  }

  #newBreaker(): CircuitBreaker {
    const { clock, breakerPolicy } = this.#options;
    return new CircuitBreaker({
      clock,
      ...(breakerPolicy === undefined ? {} : { policy: breakerPolicy }),
      trial: async () => {
        for (const method of PROBES) {
          const outcome = await this.connection?.request(method, undefined, this.listTimeouts);
          if (outcome?.kind === 'answered') return true;
        }
        return false;
      },
    });
  }
}

/** Failures of calls to a server whose process has failed. */
const IS_DOWN: readonly FailureReason[] = ['parked', 'not_installed', 'restarting'];
