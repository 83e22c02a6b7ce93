import type { Exchange, Handling } from '../../downstream/exchange.js';
import { answerFailure, type FailureReason } from '../../downstream/failure.js';
import type { OnInternalError } from '../../errors/error-boundary.js';
import type { SharedLimit } from '../../io/shared-limit.js';
import { LISTS } from '../../mcp/lists.js';
import type { Clock } from '../../timing/clock.js';
import { type BreakerPolicy, CircuitBreaker } from '../../upstream/health/circuit-breaker.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import type { RequestTimeouts } from '../../upstream/request.js';
import { Admission } from './admission.js';
import { type AttemptContext, send, taskTimeouts } from './attempt.js';
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
import { Call, type CallLimits } from './call.js';
import { Latencies, newCallCounters } from './call-metrics.js';
import { InFlightCalls } from './in-flight-calls.js';

export interface DispatcherOptions {
  /** Counts the waiting calls of all servers together. */
  readonly waiting?: SharedLimit;
  /** Told of internal errors, each of which fails one call. */
  readonly onInternalError?: OnInternalError;
  readonly key: string;
  readonly clock: Clock;
  readonly limits: CallLimits;
  readonly breakerPolicy?: BreakerPolicy;
  /** The configuration of this server is wrong, so it can never run. */
  readonly isMisconfigured?: boolean;
  /** Milliseconds until the supervisor tries the next start, if one is planned. */
  readonly retryInMs: () => number | undefined;
}

/**
 * Brings the calls of clients to one server: circuit breaker, admission, then one attempt for each connection.
 *
 * A call that was sent belongs to the connection it was sent over: when that ends, so does the call, unless the call may
 * be repeated. The dispatcher is the one holder of the server's availability; everybody else reads it.
 */
export class Dispatcher {
  readonly counters = newCallCounters();
  /** How often the gateway failed a call, by reason. */
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
    const { clock, limits, onInternalError, waiting, isMisconfigured = false } = options;
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
      fail: (exchange, reason, sent) => this.#fail(exchange, reason, sent),
      onCancelled: () => {
        counters.cancelled += 1;
      },
    });
    this.#attempts = {
      ...{ clock, counters, latencies, inFlightCalls, onInternalError },
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

  /** Whether there is a connection, or was one. */
  get hasBeenUp(): boolean {
    return this.#availability.generation !== undefined;
  }

  get breaker(): Pick<CircuitBreaker, 'state' | 'retryAfterMs'> {
    return this.#breaker;
  }

  /** Calls that wait for admission. */
  get queued(): number {
    return this.#admission.queued;
  }

  /** Whether anybody waits for a connection. */
  get isAwaited(): boolean {
    return this.#admission.isAwaited;
  }

  /** For requests on the gateway's own behalf. */
  get listTimeouts(): RequestTimeouts {
    const { listTimeoutMs } = this.#limits;
    return { idleMs: listTimeoutMs, maxMs: listTimeoutMs };
  }

  /** For waiting until a task is done, which is silent for as long as that takes. */
  get taskTimeouts(): RequestTimeouts {
    return taskTimeouts(this.#limits);
  }

  /** The server sends requests to its callers: from now on, interactive calls come from one client at a time. */
  serveOneClientAtATime(): void {
    this.#admission.serveOneClientAtATime();
  }

  /** A connection is open: calls that waited for one are sent. The breaker starts anew, for it judged the last one. */
  connect(connection: UpstreamConnection): void {
    this.#breaker.close();
    this.#breaker = this.#newBreaker();
    this.#become(afterConnect(this.#availability, connection));
  }

  /** The supervisor reports a new state of the server. */
  stateChanged(state: ServerState): void {
    this.#become(afterState(this.#availability, state));
  }

  /** The server is about to be stopped because nobody needs it. */
  idleStop(): void {
    this.#availability = afterIdleStop(this.#availability);
  }

  /** Resolves when a connection is there, or with why none will come, or why none came within `waitMs`. */
  untilConnected(waitMs: number): Promise<FailureReason | undefined> {
    return this.#admission.untilConnected(waitMs);
  }

  /** Returns the calls that no process has seen; they are somebody else's from now on. */
  takeUnsent(): Exchange[] {
    return this.#admission.takeUnsent();
  }

  /** Sets other limits. Calls in flight keep theirs. */
  configure(limits: CallLimits): void {
    this.#limits = limits;
    this.#admission.configure(limits);
  }

  /** Answers a call without trying, for a reason that the caller knows. */
  refuse(exchange: Exchange, reason: FailureReason, detail?: string): void {
    this.counters.calls += 1;
    this.#fail(exchange, reason, false, detail);
  }

  /** Serves a request of a client. */
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

  #fail(exchange: Exchange, reason: FailureReason, sent: boolean, detail?: string): void {
    if (exchange.isSettled) return;
    this.counters.failures += 1;
    this.failureReasons.set(reason, (this.failureReasons.get(reason) ?? 0) + 1);
    answerFailure(exchange, {
      reason,
      server: this.#options.key,
      generation: this.#availability.generation,
      sent,
      detail,
      retryAfterMs: reason === 'breaker_open' ? this.#breaker.retryAfterMs : this.#options.retryInMs(),
    });
  }

  #newBreaker(): CircuitBreaker {
    const { clock, breakerPolicy } = this.#options;
    return new CircuitBreaker({
      clock,
      ...(breakerPolicy === undefined ? {} : { policy: breakerPolicy }),
      trial: async () => {
        const outcome = await this.connection?.ask(LISTS.tools.method, undefined, this.listTimeouts);
        return outcome?.kind === 'answered';
      },
    });
  }
}
