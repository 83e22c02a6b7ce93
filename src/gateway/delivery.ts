import { Breaker, type BreakerPolicy } from '../bridge/breaker.js';
import { CallQueue } from '../bridge/call-queue.js';
import type { ChildConnection } from '../bridge/child-connection.js';
import type { Outcome, RequestPatience, SentRequest } from '../bridge/request.js';
import type { Edit } from '../jsonrpc/splice.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import { LISTS } from '../mcp/lists.js';
import type { Clock } from '../timing/clock.js';
import { Deadlines, type Due } from '../timing/deadlines.js';
import { CallsAtWork, isLookout } from './calls-at-work.js';
import type { Exchange, Translation } from './exchange.js';
import { answerFailure, type FailureReason } from './failure.js';
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
  readonly #waits: Deadlines<Wait>;
  /** Calls that wait for their turn or, having it, for a process; in order of arrival. */
  readonly #waiting = new Set<Wait>();
  #lookouts = 0;
  #breaker: Breaker;
  #connection: ChildConnection | undefined;
  /** Of the last process there was. */
  #generation: number | undefined;
  #absence: FailureReason = 'starting';

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#queue = new CallQueue(options.limits);
    this.#waits = new Deadlines(options.clock, (wait) => wait.giveUp(wait.reason()));
    this.#breaker = this.#newBreaker();
  }

  get connection(): ChildConnection | undefined {
    return this.#connection;
  }

  get breaker(): Pick<Breaker, 'state' | 'retryAfterMs'> {
    return this.#breaker;
  }

  get queued(): number {
    return this.#waiting.size;
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

  /** A process is there: calls that waited for one go to it. The breaker starts anew, for it judged the last one. */
  connect(connection: ChildConnection): void {
    this.#connection = connection;
    this.#generation = connection.generation;
    this.#breaker.close();
    this.#breaker = this.#newBreaker();
    for (const wait of [...this.#waiting]) wait.proceed();
  }

  /** There is no process; calls wait a while for the next one, and those that waited in vain are told `absence`. */
  disconnect(absence: FailureReason): void {
    this.#connection = undefined;
    this.#absence = absence;
  }

  /** No process is to be expected: as `disconnect`, and all calls that wait are told at once. */
  giveUp(absence: FailureReason): void {
    this.disconnect(absence);
    for (const wait of [...this.#waiting]) wait.giveUp(absence);
  }

  /** Answers a call without trying, for a reason that the caller knows. */
  refuse(exchange: Exchange, reason: FailureReason): void {
    this.counters.calls += 1;
    this.#fail(exchange, reason, false);
  }

  /** Serves a request of a client; `edits` are what routing changed in it. */
  serve(exchange: Exchange, edits: readonly Edit[], translation?: Translation): void {
    this.counters.calls += 1;
    if (this.#breaker.state !== 'closed') {
      this.#fail(exchange, 'breaker_open', false);
      return;
    }
    if (isLookout(exchange)) {
      this.#lookOut(exchange, edits, translation);
      return;
    }
    let hasTurn = false;
    let wait: Wait | undefined;
    const place = this.#queue.enter((leave) => {
      hasTurn = true;
      if (wait !== undefined) this.#endWait(wait);
      if (exchange.isSettled) {
        leave();
      } else if (this.#breaker.state !== 'closed') {
        // It opened while the call waited.
        this.#fail(exchange, 'breaker_open', false);
        leave();
      } else {
        this.#connectAndSend({ exchange, edits, translation, leave });
      }
    });
    if (place === undefined) this.#fail(exchange, 'queue_full', false);
    if (place === undefined || hasTurn) return;

    wait = this.#beginWait(exchange, this.#options.limits.maxWaitMs, {
      proceed: () => {},
      reason: () => 'queue_timeout',
      end: () => place.withdraw(),
    });
  }

  close(): void {
    this.giveUp('stopped');
    this.#breaker.close();
    this.#waits.close();
  }

  /** It waits for as long as the task takes, and must not keep calls from their turn: one of them may end the task. */
  #lookOut(exchange: Exchange, edits: readonly Edit[], translation: Translation | undefined): void {
    if (this.#lookouts >= MAX_LOOKOUTS) {
      this.#fail(exchange, 'queue_full', false);
      return;
    }
    this.#lookouts += 1;
    const leave = () => {
      this.#lookouts -= 1;
    };
    this.#connectAndSend({ exchange, edits, translation, leave });
  }

  #connectAndSend(call: AdmittedCall): void {
    if (this.#connection === undefined) this.#awaitConnection(call);
    else this.#send(this.#connection, call);
  }

  #awaitConnection(call: AdmittedCall): void {
    const wait = this.#beginWait(call.exchange, RESTART_WAIT_MS, {
      proceed: () => {
        this.#endWait(wait);
        this.#connectAndSend(call);
      },
      reason: () => this.#absence,
      end: call.leave,
    });
  }

  /** The wait ends when it proceeds, when it lasts too long, when there is nothing to wait for, or with the client. */
  #beginWait(exchange: Exchange, forMs: number, { proceed, reason, end }: WaitOptions): Wait {
    const wait: Wait = {
      dueAt: this.#options.clock.now() + forMs,
      proceed,
      reason,
      giveUp: (why) => {
        this.#endWait(wait);
        this.#fail(exchange, why, false);
        end();
      },
    };
    this.#waiting.add(wait);
    this.#waits.watch(wait);
    exchange.onCancel(() => {
      this.#endWait(wait);
      this.counters.cancelled += 1;
      end();
    });
    return wait;
  }

  #endWait(wait: Wait): void {
    this.#waiting.delete(wait);
    this.#waits.unwatch(wait);
  }

  #send(connection: ChildConnection, call: AdmittedCall): void {
    const { exchange, edits, translation, leave } = call;
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
    const all = [...edits, ...(translation?.request?.(connection) ?? [])];
    sent = connection.relay(
      exchange.request,
      all,
      patience,
      exchange.wantsProgress ? { settle, progress } : { settle },
    );
    if (sent !== undefined) {
      const { cancel } = sent;
      exchange.onCancel((notice) => cancel(notice, notice && translation?.cancel(notice)));
    }
  }

  #settled({ exchange, translation }: AdmittedCall, outcome: Outcome, { startedAt, sent }: Sending): void {
    if (outcome.kind === 'answered') {
      const { response } = outcome;
      exchange.relay(
        response,
        translation?.answer(response, () => outlive(exchange, sent)),
      );
      if (!isLookout(exchange)) this.latencies.add(this.#options.clock.now() - startedAt);
      if (response.error !== undefined || isTrue(response.bytes, response.tokens.isError)) this.counters.errors += 1;
      // The answer leaves in a microtask that is queued already; this one comes after it.
      const breaker = this.#breaker;
      queueMicrotask(() => breaker.record(true));
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
  readonly edits: readonly Edit[];
  readonly translation: Translation | undefined;
  readonly leave: () => void;
}

/** How a call was sent; not at all, if it could not be. */
interface Sending {
  readonly startedAt: number;
  readonly sent: SentRequest | undefined;
}

interface WaitOptions {
  /** A process is there. */
  proceed(): void;
  /** What to tell the client when the wait was too long. */
  reason(): FailureReason;
  /** Gives back what the call holds while it waits. */
  end(): void;
}

/** A call that waits for its turn, or for a process. */
interface Wait extends Due {
  proceed(): void;
  reason(): FailureReason;
  giveUp(why: FailureReason): void;
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

function isTrue(bytes: Uint8Array, span: { readonly start: number } | undefined): boolean {
  return span !== undefined && bytes[span.start] === 0x74;
}
