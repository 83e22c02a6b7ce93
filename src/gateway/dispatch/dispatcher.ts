import type { FailureReason } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import type { OnInternalError } from '../../errors/error-boundary.js';
import type { SharedLimit } from '../../io/shared-limit.js';
import { LISTS } from '../../mcp/lists.js';
import type { Clock } from '../../timing/clock.js';
import { type BreakerPolicy, CircuitBreaker } from '../../upstream/health/circuit-breaker.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import type { RequestTimeouts } from '../../upstream/request.js';
import { type AdmittedCall, type AttemptContext, send, taskTimeouts } from './attempt.js';
import { newCallCounters } from './call-counters.js';
import type { CallLimits } from './call-limits.js';
import { CallWaits } from './call-waits.js';
import type { Handling } from './handling.js';
import { InFlightCalls, isTaskResultWait } from './in-flight-calls.js';
import { Latencies } from './latencies.js';
import { Turns } from './turns.js';

export interface DispatcherOptions {
  /** Counts the calls that wait, of all servers together. */
  readonly waiting?: SharedLimit;
  /** Told of our own errors, each of which fails one call. */
  readonly onFault?: OnInternalError;
  readonly key: string;
  readonly clock: Clock;
  readonly limits: CallLimits;
  readonly breakerPolicy?: BreakerPolicy;
  /** Milliseconds until the next start of the child is tried, if one is planned. */
  readonly retryInMs: () => number | undefined;
}

/** How long a call waits for a child that is on its way back; for one that was never there, as long as for an answer. */
const RESTART_WAIT_MS = 5_000;

/** Of requests that wait for the end of a task, which the server need do nothing for. */
const MAX_TASK_RESULT_WAITS = 256;

/**
 * Brings calls to one server: breaker, turn, process, in this order, and each with an end.
 *
 * A call waits for its turn in the queue, then, if there is no process at the moment, for the next one. Once it has
 * been sent it belongs to that process: when the process ends so does the call, unless it may be repeated.
 */
export class Dispatcher {
  readonly counters = newCallCounters();
  /** How often a call failed within the gateway, by the reason. */
  readonly failureReasons = new Map<FailureReason, number>();
  readonly latencies = new Latencies();
  /** What the process is at work on. */
  readonly inFlightCalls = new InFlightCalls();
  readonly #options: DispatcherOptions;
  readonly #turns: Turns;
  #limits: CallLimits;
  readonly #waits: CallWaits;
  readonly #attempts: AttemptContext;
  #taskResultWaits = 0;
  #breaker: CircuitBreaker;
  #connection: UpstreamConnection | undefined;
  /** Of the last process there was. */
  #generation: number | undefined;
  #absence: FailureReason = 'starting';
  /** No process is to be expected. */
  #isGivenUp = false;
  /** There is a process, of which nobody knows at the moment whether it serves. */
  #isHeld = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { limits, waiting } = options;
    this.#limits = limits;
    this.#waits = new CallWaits({
      clock: options.clock,
      onCancelled: () => {
        this.counters.cancelled += 1;
      },
    });
    this.#turns = new Turns({
      ...{ limits, waiting, waits: this.#waits },
      refusal: () => (this.#breaker.state === 'closed' ? undefined : 'breaker_open'),
      fail: (exchange, reason) => this.#fail(exchange, reason, false),
      admit: (call) => this.#connectAndSend(call),
    });
    this.#breaker = this.#newBreaker();
    const { clock, onFault } = options;
    const { counters, latencies, inFlightCalls } = this;
    this.#attempts = {
      ...{ clock, counters, latencies, inFlightCalls, onFault },
      limits: () => this.#limits,
      breaker: () => this.#breaker,
      fail: (...failure) => this.#fail(...failure),
      sendElsewhere: (call, ended) => {
        if (this.#connection === ended) this.#connection = undefined;
        this.#connectAndSend(call);
      },
    };
  }

  get connection(): UpstreamConnection | undefined {
    return this.#connection;
  }

  /** Whether there is a process, or was one. */
  get hasBeenUp(): boolean {
    return this.#generation !== undefined;
  }

  get breaker(): Pick<CircuitBreaker, 'state' | 'retryAfterMs'> {
    return this.#breaker;
  }

  get queued(): number {
    return this.#waits.size;
  }

  /** For what the gateway asks on its own behalf. */
  get listTimeouts(): RequestTimeouts {
    const { listTimeoutMs } = this.#limits;
    return { idleMs: listTimeoutMs, maxMs: listTimeoutMs };
  }

  /** For a wait until a task is done, which is silent for as long as that takes. */
  get taskTimeouts(): RequestTimeouts {
    return taskTimeouts(this.#limits);
  }

  /**
   * The process asks its callers something, and with calls of several under way nobody could tell whom: from now on
   * those that may make it ask come from one client at a time.
   */
  serveOneClientAtATime(): void {
    this.#turns.serveOneClientAtATime();
  }

  /** A process is there: calls that waited for one go to it. The breaker starts anew, for it judged the last one. */
  connect(connection: UpstreamConnection): void {
    this.#connection = connection;
    this.#generation = connection.generation;
    this.#isGivenUp = false;
    this.#isHeld = false;
    this.#breaker.close();
    this.#breaker = this.#newBreaker();
    this.#waits.proceed();
  }

  /** There is no process; calls wait a while for the next one, and those that waited in vain are told `absence`. */
  disconnect(absence: FailureReason): void {
    this.#connection = undefined;
    this.#absence = absence;
    this.#isGivenUp = false;
    this.#isHeld = false;
  }

  /** The process has stopped answering: what is under way there goes on, and what is not sent yet waits for `resume`. */
  hold(): void {
    this.#absence = 'unresponsive';
    this.#isHeld = true;
  }

  /** The process answers again. */
  resume(): void {
    this.#isHeld = false;
    this.#waits.proceed();
  }

  /** No process is to be expected: as `disconnect`, and all calls that wait are told at once. */
  giveUp(absence: FailureReason): void {
    this.disconnect(absence);
    this.#isGivenUp = true;
    this.#waits.giveUp(absence);
  }

  /** The calls that were not sent yet, which are somebody else's from now on. */
  handOver(): Exchange[] {
    return this.#waits.handOver();
  }

  /** Other limits from now on; calls that were sent keep theirs. */
  limit(limits: CallLimits): void {
    this.#limits = limits;
    this.#turns.limit(limits);
  }

  /** Answers a call without trying, for a reason that the caller knows. */
  refuse(exchange: Exchange, reason: FailureReason, detail?: string): void {
    this.counters.calls += 1;
    this.#fail(exchange, reason, false, detail);
  }

  /** Serves a request of a client. */
  serve(exchange: Exchange, handling: Handling): void {
    this.counters.calls += 1;
    if (this.#breaker.state !== 'closed') {
      this.#fail(exchange, 'breaker_open', false);
      return;
    }
    if (isTaskResultWait(exchange)) {
      this.#waitForTaskResult(exchange, handling);
      return;
    }
    this.#turns.take(exchange, handling);
  }

  close(): void {
    this.giveUp('stopped');
    this.#breaker.close();
    this.#waits.close();
  }

  /** It waits for as long as the task takes, and must not keep calls from their turn: one of them may end the task. */
  #waitForTaskResult(exchange: Exchange, handling: Handling): void {
    if (this.#taskResultWaits >= MAX_TASK_RESULT_WAITS) {
      this.#fail(exchange, 'queue_full', false);
      return;
    }
    this.#taskResultWaits += 1;
    const leave = () => {
      this.#taskResultWaits -= 1;
    };
    this.#connectAndSend({ exchange, handling, leave });
  }

  #connectAndSend(call: AdmittedCall): void {
    if (this.#connection === undefined || this.#isHeld) this.#awaitConnection(call);
    else send(this.#attempts, this.#connection, call);
  }

  #awaitConnection(call: AdmittedCall): void {
    const { exchange, earlier, leave } = call;
    const fail = (absence = this.#absence) => {
      if (earlier === undefined) this.#fail(exchange, absence, false);
      else this.#fail(exchange, 'child_exited', true);
    };
    if (this.#isGivenUp) {
      fail();
      leave();
      return;
    }
    const proceed = () => {
      endWait();
      this.#connectAndSend(call);
    };
    const wasSent = earlier !== undefined;
    const isFirst = this.#absence === 'starting' && !wasSent;
    const forMs = isFirst ? this.#options.limits.idleTimeoutMs : RESTART_WAIT_MS;
    const endWait = this.#waits.begin({ exchange, forMs, proceed, fail, release: leave, wasSent });
  }

  #fail(exchange: Exchange, reason: FailureReason, sent: boolean, detail?: string): void {
    if (exchange.isSettled) return;
    this.counters.failures += 1;
    this.failureReasons.set(reason, (this.failureReasons.get(reason) ?? 0) + 1);
    exchange.fail({
      reason,
      server: this.#options.key,
      generation: this.#generation,
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
        const outcome = await this.#connection?.ask(LISTS.tools.method, undefined, this.listTimeouts);
        return outcome?.kind === 'answered';
      },
    });
  }
}
