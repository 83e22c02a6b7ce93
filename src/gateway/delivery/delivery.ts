import { Breaker, type BreakerPolicy } from '../../bridge/breaker.js';
import { CallQueue } from '../../bridge/call-queue.js';
import type { ChildConnection } from '../../bridge/child-connection.js';
import type { Outcome, RequestPatience, SentRequest } from '../../bridge/request.js';
import type { Edit } from '../../jsonrpc/splice.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import { LISTS } from '../../mcp/lists.js';
import type { Clock } from '../../timing/clock.js';
import type { Exchange, Handling } from '../exchange.js';
import { CallWaits } from './call-waits.js';
import { CallsAtWork, isInteractive, isLookout } from './calls-at-work.js';
import { answerFailure, type FailureReason } from './failure.js';
import { Floor } from './floor.js';
import { Latencies } from './latencies.js';

/** Milliseconds and counts that bound the calls to one server. */
export interface CallLimits {
  /** Without an answer or progress. */
  readonly idleTimeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly listTimeoutMs: number;
  readonly concurrency: number;
  readonly maxQueued: number;
  /** How long a call may wait for its turn. */
  readonly maxWaitMs: number;
}

export interface DeliveryOptions {
  readonly key: string;
  readonly clock: Clock;
  readonly limits: CallLimits;
  readonly breakerPolicy?: BreakerPolicy;
  /** Milliseconds until the next start of the child is tried, if one is planned. */
  readonly retryInMs: () => number | undefined;
}

/** What is counted about calls to one server; only ever up. */
export interface CallCounters {
  calls: number;
  /** Answered by the server with a JSON-RPC error or a tool result that says so. */
  errors: number;
  /** Answered by the gateway because the server could not. */
  failures: number;
  cancelled: number;
}

/** How long a call waits for a child that is on its way back. */
const RESTART_WAIT_MS = 5_000;

/** Of requests that wait for the end of a task, which the server need do nothing for. */
const MAX_LOOKOUTS = 256;

/**
 * Brings calls to one server: breaker, turn, process, in this order, and each with an end.
 *
 * A call waits for its turn in the queue, then, if there is no process at the moment, for the next one. Once it has
 * been sent it belongs to that process: when the process ends so does the call, and it is never sent again.
 */
export class Delivery {
  readonly counters: CallCounters = { calls: 0, errors: 0, failures: 0, cancelled: 0 };
  readonly latencies = new Latencies();
  /** What the process is at work on. */
  readonly atWork = new CallsAtWork();
  readonly #options: DeliveryOptions;
  readonly #queue: CallQueue;
  readonly #waits: CallWaits;
  /** Absent as long as calls of several clients may be under way at once. */
  #floor: Floor | undefined;
  #lookouts = 0;
  #breaker: Breaker;
  #connection: ChildConnection | undefined;
  /** Of the last process there was. */
  #generation: number | undefined;
  #absence: FailureReason = 'starting';

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#queue = new CallQueue(options.limits);
    this.#waits = new CallWaits({
      clock: options.clock,
      fail: (exchange, reason) => this.#fail(exchange, reason, false),
      onCancelled: () => {
        this.counters.cancelled += 1;
      },
    });
    this.#breaker = this.#newBreaker();
  }

  get connection(): ChildConnection | undefined {
    return this.#connection;
  }

  /** Whether there is a process, or was one. */
  get hasBeenUp(): boolean {
    return this.#generation !== undefined;
  }

  get breaker(): Pick<Breaker, 'state' | 'retryAfterMs'> {
    return this.#breaker;
  }

  get queued(): number {
    return this.#waits.size;
  }

  /** For what the gateway asks on its own behalf. */
  get listPatience(): RequestPatience {
    const { listTimeoutMs } = this.#options.limits;
    return { idleMs: listTimeoutMs, maxMs: listTimeoutMs };
  }

  /** For a wait until a task is done, which is silent for as long as that takes. */
  get taskPatience(): RequestPatience {
    const { maxTimeoutMs } = this.#options.limits;
    return { idleMs: maxTimeoutMs, maxMs: maxTimeoutMs };
  }

  /**
   * The process asks its callers something, and with calls of several under way nobody could tell whom: from now on
   * those that may make it ask come from one client at a time.
   */
  serveOneClientAtATime(): void {
    this.#floor ??= new Floor();
  }

  /** A process is there: calls that waited for one go to it. The breaker starts anew, for it judged the last one. */
  connect(connection: ChildConnection): void {
    this.#connection = connection;
    this.#generation = connection.generation;
    this.#breaker.close();
    this.#breaker = this.#newBreaker();
    this.#waits.proceed();
  }

  /** There is no process; calls wait a while for the next one, and those that waited in vain are told `absence`. */
  disconnect(absence: FailureReason): void {
    this.#connection = undefined;
    this.#absence = absence;
  }

  /** No process is to be expected: as `disconnect`, and all calls that wait are told at once. */
  giveUp(absence: FailureReason): void {
    this.disconnect(absence);
    this.#waits.giveUp(absence);
  }

  /** Answers a call without trying, for a reason that the caller knows. */
  refuse(exchange: Exchange, reason: FailureReason): void {
    this.counters.calls += 1;
    this.#fail(exchange, reason, false);
  }

  /** Serves a request of a client. */
  serve(exchange: Exchange, handling: Handling): void {
    this.counters.calls += 1;
    if (this.#breaker.state !== 'closed') {
      this.#fail(exchange, 'breaker_open', false);
      return;
    }
    if (isLookout(exchange)) {
      this.#lookOut(exchange, handling);
      return;
    }
    let hasTurn = false;
    let endWait = () => {};
    const place = this.#queue.enter((leave) => {
      hasTurn = true;
      endWait();
      if (exchange.isSettled) {
        leave();
      } else if (this.#breaker.state !== 'closed') {
        // It opened while the call waited.
        this.#fail(exchange, 'breaker_open', false);
        leave();
      } else {
        this.#takeFloor({ exchange, handling, leave });
      }
    });
    if (place === undefined) this.#fail(exchange, 'queue_full', false);
    if (place !== undefined && !hasTurn) endWait = this.#awaitTurn(exchange, () => place.withdraw());
  }

  close(): void {
    this.giveUp('stopped');
    this.#breaker.close();
    this.#waits.close();
  }

  /** It waits for as long as the task takes, and must not keep calls from their turn: one of them may end the task. */
  #lookOut(exchange: Exchange, handling: Handling): void {
    if (this.#lookouts >= MAX_LOOKOUTS) {
      this.#fail(exchange, 'queue_full', false);
      return;
    }
    this.#lookouts += 1;
    const leave = () => {
      this.#lookouts -= 1;
    };
    this.#connectAndSend({ exchange, handling, leave });
  }

  #takeFloor(call: AdmittedCall): void {
    const { exchange } = call;
    const floor = this.#floor;
    if (floor === undefined || !isInteractive(exchange)) {
      this.#connectAndSend(call);
      return;
    }
    let hasFloor = false;
    let endWait = () => {};
    const leaveLine = floor.enter(exchange.client, () => {
      hasFloor = true;
      endWait();
      const leave = () => {
        floor.leave();
        call.leave();
      };
      if (exchange.isSettled) leave();
      else this.#connectAndSend({ ...call, leave });
    });
    if (hasFloor) return;
    endWait = this.#awaitTurn(exchange, () => {
      leaveLine();
      call.leave();
    });
  }

  #awaitTurn(exchange: Exchange, release: () => void): () => void {
    return this.#waits.begin({
      exchange,
      forMs: this.#options.limits.maxWaitMs,
      proceed: () => {},
      reason: () => 'queue_timeout',
      release,
    });
  }

  #connectAndSend(call: AdmittedCall): void {
    if (this.#connection === undefined) this.#awaitConnection(call);
    else this.#send(this.#connection, call);
  }

  #awaitConnection(call: AdmittedCall): void {
    const endWait = this.#waits.begin({
      exchange: call.exchange,
      forMs: RESTART_WAIT_MS,
      proceed: () => {
        endWait();
        this.#connectAndSend(call);
      },
      reason: () => this.#absence,
      release: call.leave,
    });
  }

  #send(connection: ChildConnection, call: AdmittedCall): void {
    const { exchange, handling, leave } = call;
    const { translation } = handling;
    const { clock, limits } = this.#options;
    const startedAt = clock.now();
    let sent: SentRequest | undefined;
    this.atWork.add(exchange);
    const end = (outcome: Outcome) => {
      this.atWork.delete(exchange);
      leave();
      this.#settled(call, outcome, { startedAt, sent });
    };
    const settle = (outcome: Outcome) => {
      if (outcome.kind === 'failed' && outcome.reason === 'exited' && !outcome.sent) {
        // The process ended in this very moment and has seen nothing of the call: the next one may have it.
        this.atWork.delete(exchange);
        if (this.#connection === connection) this.#connection = undefined;
        this.#connectAndSend(call);
        return;
      }
      const response = outcome.kind === 'answered' ? outcome.response : undefined;
      const rest = response && translation?.goOn?.(response, connection, () => outlive(exchange, sent));
      if (rest === undefined) end(outcome);
      else void rest.then(end);
    };
    const progress = (notification: NotificationEnvelope) => {
      const via = exchange.isSettled ? this.atWork.lookoutOf(exchange.client) : undefined;
      exchange.progress(notification, translation?.progress(notification), via);
    };
    const { idleTimeoutMs: idleMs, maxTimeoutMs: maxMs } = limits;
    const patience = isLookout(exchange) ? this.taskPatience : { idleMs, maxMs };
    const edits = joined(handling.edits, translation?.request?.(connection));
    const handler = exchange.wantsProgress ? { settle, progress } : { settle };
    sent = connection.relay(exchange.request, edits, patience, handler);
    if (sent === undefined) return;
    const { cancel } = sent;
    exchange.onCancel((notice) => cancel(notice, notice && translation?.cancel(notice)));
  }

  #settled({ exchange, handling }: AdmittedCall, outcome: Outcome, { startedAt, sent }: Sending): void {
    if (outcome.kind === 'answered') {
      const { response } = outcome;
      const { editAnswer, translation, onAnswered } = handling;
      const ofTask = translation?.answer(response, () => outlive(exchange, sent));
      exchange.relay(response, joined(editAnswer?.(response), ofTask));
      if (!isLookout(exchange)) this.latencies.add(this.#options.clock.now() - startedAt);
      if (response.error !== undefined || isTrue(response.bytes, response.tokens.isError)) this.counters.errors += 1;
      // The answer leaves in a microtask that is queued already; this one comes after it.
      const breaker = this.#breaker;
      queueMicrotask(() => {
        breaker.record(true);
        onAnswered?.(response);
      });
      return;
    }
    if (outcome.reason === 'cancelled') {
      this.counters.cancelled += 1;
      return;
    }
    this.#fail(exchange, FAILURE_REASONS[outcome.reason], outcome.sent);
    // How a process ends is the supervisor's to judge; the breaker is for one that lives and does not serve. A task
    // that takes longer than we wait for its result says nothing of that either.
    const isToBeExpected = outcome.reason === 'timeout' && isLookout(exchange);
    if (outcome.reason !== 'exited' && outcome.reason !== 'stopped' && !isToBeExpected) this.#breaker.record(false);
  }

  #fail(exchange: Exchange, reason: FailureReason, sent: boolean): void {
    if (exchange.isSettled) return;
    this.counters.failures += 1;
    answerFailure(exchange, {
      reason,
      server: this.#options.key,
      generation: this.#generation,
      sent,
      retryAfterMs: reason === 'breaker_open' ? this.#breaker.retryAfterMs : this.#options.retryInMs(),
    });
  }

  #newBreaker(): Breaker {
    const { clock, breakerPolicy } = this.#options;
    return new Breaker({
      clock,
      ...(breakerPolicy === undefined ? {} : { policy: breakerPolicy }),
      trial: async () => {
        const outcome = await this.#connection?.ask(LISTS.tools.method, undefined, this.listPatience);
        return outcome?.kind === 'answered';
      },
    });
  }
}

/** A call that has its turn; it keeps it until `leave`. */
interface AdmittedCall {
  readonly exchange: Exchange;
  readonly handling: Handling;
  readonly leave: () => void;
}

/** How a call was sent; not at all, if it could not be. */
interface Sending {
  readonly startedAt: number;
  readonly sent: SentRequest | undefined;
}

type SendFailure = Exclude<Extract<Outcome, { kind: 'failed' }>['reason'], 'cancelled'>;

const FAILURE_REASONS: Readonly<Record<SendFailure, FailureReason>> = {
  timeout: 'timeout',
  exited: 'child_exited',
  stopped: 'stopped',
  overloaded: 'overloaded',
  response_too_large: 'response_too_large',
  response_malformed: 'response_malformed',
};

/** Lets the exchange hear of progress after its answer. */
function outlive(exchange: Exchange, sent: SentRequest | undefined): () => void {
  const ends = [exchange.outlive(), sent?.outlive()];
  return () => {
    for (const end of ends) end?.();
  };
}

/** Most calls have neither, and need no list for it. */
function joined(some: readonly Edit[] = NOTHING, others: readonly Edit[] = NOTHING): readonly Edit[] {
  if (others.length === 0) return some;
  return some.length === 0 ? others : [...some, ...others];
}

const NOTHING: readonly Edit[] = [];

function isTrue(bytes: Uint8Array, span: { readonly start: number } | undefined): boolean {
  return span !== undefined && bytes[span.start] === 0x74;
}
