import PQueue from 'p-queue';
import { SharedLimit } from '../../io/shared-limit.js';

export interface ConcurrencyLimitOptions {
  /** Calls that may hold a slot at the same time. */
  readonly concurrency: number;
  /** Calls that may wait for a slot. */
  readonly maxQueued: number;
  /** Counts the waiting calls of all servers together. */
  readonly allWaiting?: SharedLimit | undefined;
}

export type QueueRefusal = 'queue_full' | 'all_queues_full';

/** Withdrawn calls that may stay in p-queue, beyond as many as wait. */
const MAX_WITHDRAWN = 256;

/**
 * Limits the calls that are in flight to one server, and queues a bounded number of others in order of arrival.
 *
 * p-queue does that: each call is a task, which ends when the call releases its slot. p-queue accepts any number of
 * tasks, so this class bounds the queue. As long as no call has to wait, calls are only counted, because a task would
 * cost more than the rest of the way through the gateway. The first call that has to wait makes them tasks.
 */
export class ConcurrencyLimit {
  readonly #queue: PQueue;
  readonly #allWaiting: SharedLimit;
  #maxQueued: number;
  /** Calls in flight that are no tasks of p-queue. */
  #direct = 0;
  /** Each ends the task of a call that began as a direct one. */
  readonly #ends: (() => void)[] = [];
  /** In order of arrival, without the withdrawn ones that p-queue still has. */
  readonly #waiting = new Set<Slot>();

  constructor({ concurrency, maxQueued, allWaiting }: ConcurrencyLimitOptions) {
    this.#queue = new PQueue({ concurrency });
    this.#maxQueued = maxQueued;
    this.#allWaiting = allWaiting ?? new SharedLimit(Number.POSITIVE_INFINITY);
  }

  /** Number of calls that hold a slot. p-queue gives a released slot out in a later microtask; it counts until then. */
  get running(): number {
    return this.#direct + this.#queue.pending;
  }

  get queued(): number {
    return this.#waiting.size;
  }

  /** Sets other limits. Calls that hold a slot or wait beyond the new limits stay. */
  configure({ concurrency, maxQueued }: Pick<ConcurrencyLimitOptions, 'concurrency' | 'maxQueued'>): void {
    this.#maxQueued = maxQueued;
    this.#queue.concurrency = concurrency;
  }

  /** Takes a slot if one is free and p-queue has no tasks. The caller must release it once, with `releaseDirect`. */
  takeDirect(): boolean {
    const { pending, size, concurrency } = this.#queue;
    if (this.#direct >= concurrency || pending + size > 0) return false;
    this.#direct += 1;
    return true;
  }

  /** Releases a slot of `takeDirect`. */
  releaseDirect(): void {
    const end = this.#ends.pop();
    if (end === undefined) this.#direct -= 1;
    else end();
  }

  /**
   * Calls `onSlot` when the call gets a slot, which is before this method returns if one is free. Returns the reason if
   * too many calls wait already.
   */
  enter(onSlot: (slot: Slot) => void): Slot | QueueRefusal {
    for (; this.#direct > 0; this.#direct -= 1) {
      const ended = new Promise<void>((resolve) => this.#ends.push(resolve));
      void this.#queue.add(() => ended);
    }
    const slot = new Slot(onSlot, this.#onLeft);
    const { pending, size, concurrency } = this.#queue;
    if (size > 0 || pending >= concurrency) {
      if (this.#waiting.size >= this.#maxQueued) return 'queue_full';
      if (!this.#allWaiting.tryAcquire(1)) return 'all_queues_full';
      this.#waiting.add(slot);
    }
    void this.#queue.add(slot.task);
    return slot;
  }

  /** A call got its slot or was withdrawn. */
  readonly #onLeft = (slot: Slot): void => {
    if (!this.#waiting.delete(slot)) return;
    this.#allWaiting.release(1);
    if (this.#queue.size <= 2 * this.#waiting.size + MAX_WITHDRAWN) return;
    // A server that hangs frees no slot, so withdrawn calls would pile up.
    this.#queue.clear();
    for (const { task } of this.#waiting) void this.#queue.add(task);
  };
}

/** A slot of the concurrency limit, or a position in the queue for one. */
export class Slot {
  /** Present while the call waits. */
  #onSlot: ((slot: Slot) => void) | undefined;
  readonly #onLeft: (slot: Slot) => void;
  #finish = () => {};

  constructor(onSlot: (slot: Slot) => void, onLeft: (slot: Slot) => void) {
    this.#onSlot = onSlot;
    this.#onLeft = onLeft;
  }

  get isWaiting(): boolean {
    return this.#onSlot !== undefined;
  }

  /** The task for p-queue: ends when the slot is released, and at once if the call was withdrawn. */
  readonly task = (): Promise<void> =>
    new Promise((resolve) => {
      const onSlot = this.#onSlot;
      if (onSlot === undefined) {
        resolve();
        return;
      }
      this.#onSlot = undefined;
      this.#finish = resolve;
      this.#onLeft(this);
      onSlot(this);
    });

  /** Releases the slot, or leaves the queue. Calling it again does nothing. */
  release(): void {
    this.#finish();
    if (this.#onSlot === undefined) return;
    this.#onSlot = undefined;
    this.#onLeft(this);
  }
}
