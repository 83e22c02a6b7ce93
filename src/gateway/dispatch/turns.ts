import type { FailureReason } from '../../downstream/failure.js';
import type { Exchange } from '../../downstream/port.js';
import type { SharedLimit } from '../../io/shared-limit.js';
import type { AdmittedCall } from './attempt.js';
import type { CallLimits } from './call-limits.js';
import { CallQueue } from './call-queue.js';
import type { CallWaits } from './call-waits.js';
import { Floor } from './floor.js';
import type { Handling } from './handling.js';
import { isInteractive } from './in-flight-calls.js';

export interface TurnsOptions {
  readonly limits: CallLimits;
  /** Counts the calls that wait, of all servers together. */
  readonly waiting?: SharedLimit | undefined;
  readonly waits: CallWaits;
  /** Why no call may pass now, if so. It may come to that while one waits. */
  readonly refusal: () => FailureReason | undefined;
  /** Answers a call that has no turn. */
  readonly fail: (exchange: Exchange, reason: FailureReason) => void;
  /** It is the call's turn, which it keeps until it leaves. */
  readonly admit: (call: AdmittedCall) => void;
}

/** Whose turn it is at one server: as many calls as it may work on at once, and of one client where it has to be. */
export class Turns {
  readonly #options: TurnsOptions;
  readonly #queue: CallQueue;
  #limits: CallLimits;
  /** Absent as long as calls of several clients may be under way at once. */
  #floor: Floor | undefined;

  constructor(options: TurnsOptions) {
    const { limits, waiting } = options;
    this.#options = options;
    this.#limits = limits;
    this.#queue = new CallQueue({ ...limits, ...(waiting === undefined ? {} : { waiting }) });
  }

  /** From now on, calls that may make the process ask something come from one client at a time. */
  serveOneClientAtATime(): void {
    this.#floor ??= new Floor();
  }

  /** Other limits from now on. */
  limit(limits: CallLimits): void {
    this.#limits = limits;
    this.#queue.limit(limits);
  }

  /** Lets the call pass, at once if it can. */
  take(exchange: Exchange, handling: Handling): void {
    if (this.#queue.enterNow()) this.#begin({ exchange, handling, leave: this.#queue.leave });
    else this.#queueUp(exchange, handling);
  }

  #queueUp(exchange: Exchange, handling: Handling): void {
    let hasTurn = false;
    let endWait = () => {};
    const place = this.#queue.enter((leave) => {
      hasTurn = true;
      endWait();
      this.#begin({ exchange, handling, leave });
    });
    if (place === undefined) this.#options.fail(exchange, this.#queue.isFull ? 'queue_full' : 'all_queues_full');
    if (place !== undefined && !hasTurn) endWait = this.#await(exchange, () => place.withdraw());
  }

  #begin(call: AdmittedCall): void {
    const { exchange, leave } = call;
    const refusal = exchange.isSettled ? undefined : this.#options.refusal();
    if (refusal !== undefined) this.#options.fail(exchange, refusal);
    if (refusal !== undefined || exchange.isSettled) leave();
    else this.#takeFloor(call);
  }

  #takeFloor(call: AdmittedCall): void {
    const { exchange } = call;
    const floor = this.#floor;
    if (floor === undefined || !isInteractive(exchange)) {
      this.#options.admit(call);
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
      else this.#options.admit({ ...call, leave });
    });
    if (hasFloor) return;
    endWait = this.#await(exchange, () => {
      leaveLine();
      call.leave();
    });
  }

  /** Waits until the function that is returned is called, or too long. */
  #await(exchange: Exchange, release: () => void): () => void {
    return this.#options.waits.begin({
      exchange,
      forMs: this.#limits.maxWaitMs,
      proceed: () => {},
      fail: (absence) => this.#options.fail(exchange, absence ?? 'queue_timeout'),
      release,
    });
  }
}
