import type PQueue from 'p-queue';
import type { QueueAddOptions } from 'p-queue';
import { SharedLimit } from '../../io/shared-limit.js';

export interface ConcurrencyLimitOptions {
  /** Calls that may hold a slot at the same time. */
  readonly concurrency: number;
  /** Calls that may wait for a slot. */
  readonly maxQueued: number;
  /** Counts the waiting calls of all servers together. */
  readonly allWaiting?: SharedLimit | undefined;
}

/** A slot of the concurrency limit, or a position in the queue for one. */
export interface Slot {
  /** Releases the slot, or leaves the queue. Calling it again does nothing. */
  release(): void;
}

export type QueueRefusal = 'queue_full' | 'all_queues_full';

let pQueue: typeof PQueue | undefined;
let loading: Promise<typeof PQueue> | undefined;

/** Loads p-queue. If nobody calls this, the first call that has to wait loads it. */
export function loadQueue(): Promise<typeof PQueue> {
  loading ??= import('p-queue').then((loaded) => {
    pQueue = loaded.default;
    return pQueue;
  });
  return loading;
}

/**
 * Limits the calls that are in flight to one server, and queues a bounded number of others in order of arrival.
 *
 * A call that finds a free slot takes it directly. Calls that have to wait go through p-queue, whose concurrency is the
 * limit minus the slots of direct calls. While calls wait, no call takes a slot directly, so p-queue soon has the whole
 * limit. This class bounds the length of the queue, because p-queue accepts any number of tasks.
 */
export class ConcurrencyLimit {
  #concurrency: number;
  #maxQueued: number;
  readonly #allWaiting: SharedLimit;
  #queue: PQueue<EntryQueue, EntryOptions> | undefined;
  #waiting = 0;
  /** Slots in use. `#direct` counts those that were taken without waiting. */
  #running = 0;
  #direct = 0;
  #isResizeDue = false;
  readonly #events: EntryEvents = {
    started: () => {
      this.#leftQueue();
      this.#running += 1;
    },
    finished: () => {
      this.#running -= 1;
    },
    withdrawn: () => this.#leftQueue(),
  };

  constructor({ concurrency, maxQueued, allWaiting }: ConcurrencyLimitOptions) {
    this.#concurrency = concurrency;
    this.#maxQueued = maxQueued;
    this.#allWaiting = allWaiting ?? new SharedLimit(Number.POSITIVE_INFINITY);
  }

  get running(): number {
    return this.#running;
  }

  get queued(): number {
    return this.#waiting;
  }

  /** Sets other limits. Calls that hold a slot or wait beyond the new limits stay. */
  configure({ concurrency, maxQueued }: Pick<ConcurrencyLimitOptions, 'concurrency' | 'maxQueued'>): void {
    this.#concurrency = concurrency;
    this.#maxQueued = maxQueued;
    this.#resizeQueue();
  }

  /** Takes a slot if one is free and no call waits. The caller must release it once, with `releaseDirect`. */
  takeDirect(): boolean {
    if (this.#running >= this.#concurrency || this.#waiting > 0) return false;
    this.#running += 1;
    this.#direct += 1;
    return true;
  }

  /**
   * Releases a slot of `takeDirect`. A waiting call gets the slot in a later microtask, as p-queue does it: a client
   * that disconnects cancels its calls one after the other, and its waiting calls must not be sent in between.
   */
  releaseDirect(): void {
    this.#running -= 1;
    this.#direct -= 1;
    if (this.#waiting > 0) this.#resizeSoon();
  }

  /**
   * Queues a call and calls `onSlot` when it gets a slot, which is never before this method has returned. Returns the
   * reason if too many calls wait already.
   */
  wait(onSlot: () => void): Slot | QueueRefusal {
    if (this.#waiting >= this.#maxQueued) return 'queue_full';
    if (!this.#allWaiting.tryAcquire(1)) return 'all_queues_full';
    this.#waiting += 1;
    const entry = new QueueEntry(onSlot, this.#events);
    if (pQueue === undefined) void loadQueue().then(() => this.#enqueue(entry));
    else this.#enqueue(entry);
    return entry;
  }

  #enqueue(entry: QueueEntry): void {
    if (pQueue === undefined || entry.isWithdrawn) return;
    this.#queue ??= new pQueue<EntryQueue, EntryOptions>({ queueClass: EntryQueue, autoStart: false });
    // p-queue starts a task within `add` if its concurrency allows, and that does not count the latest direct calls yet.
    this.#queue.pause();
    void this.#queue.add(entry.run, { entry });
    this.#resizeSoon();
  }

  #leftQueue(): void {
    this.#waiting -= 1;
    this.#allWaiting.release(1);
  }

  #resizeSoon(): void {
    if (this.#isResizeDue) return;
    this.#isResizeDue = true;
    void SETTLED.then(this.#resizeQueueWhenDue);
  }

  readonly #resizeQueueWhenDue = (): void => {
    this.#isResizeDue = false;
    this.#resizeQueue();
  };

  /** Sets p-queue's concurrency to what direct calls leave of the limit. p-queue rejects 0, so it is paused instead. */
  #resizeQueue(): void {
    const queue = this.#queue;
    if (queue === undefined) return;
    const share = this.#concurrency - this.#direct;
    if (share < 1) {
      queue.pause();
      return;
    }
    if (queue.concurrency !== share) queue.concurrency = share;
    queue.start();
  }
}

const SETTLED = Promise.resolve();

interface EntryEvents {
  readonly started: () => void;
  readonly finished: () => void;
  readonly withdrawn: () => void;
}

/** One call in p-queue. It waits for a slot, then holds it until `release`. */
class QueueEntry implements Slot {
  next: QueueEntry | undefined;
  previous: QueueEntry | undefined;
  queue: EntryQueue | undefined;
  job: (() => Promise<unknown>) | undefined;
  #state: 'waiting' | 'running' | 'withdrawn' | 'finished' = 'waiting';
  #finish = () => {};
  readonly #onSlot: () => void;
  readonly #events: EntryEvents;

  constructor(onSlot: () => void, events: EntryEvents) {
    this.#onSlot = onSlot;
    this.#events = events;
  }

  get isWithdrawn(): boolean {
    return this.#state === 'withdrawn';
  }

  /** The task for p-queue: resolves when the slot is released. */
  readonly run = (): Promise<void> =>
    new Promise((resolve) => {
      this.#finish = resolve;
      this.#state = 'running';
      this.#events.started();
      this.#onSlot();
    });

  release(): void {
    if (this.#state === 'waiting') {
      this.#state = 'withdrawn';
      this.queue?.remove(this);
      this.#events.withdrawn();
    } else if (this.#state === 'running') {
      this.#state = 'finished';
      this.#events.finished();
      this.#finish();
    }
  }
}

interface EntryOptions extends QueueAddOptions {
  readonly entry?: QueueEntry;
}

/**
 * First-in, first-out queue for p-queue, as a linked list. A withdrawn entry leaves at once. p-queue's own way to
 * withdraw a task is an `AbortSignal`, which costs several times more per call than the queue itself.
 */
class EntryQueue {
  size = 0;
  #first: QueueEntry | undefined;
  #last: QueueEntry | undefined;

  enqueue(job: () => Promise<unknown>, { entry }: Partial<EntryOptions> = {}): void {
    if (entry === undefined) throw new TypeError('Every task of this queue is a call');
    entry.job = job;
    entry.queue = this;
    entry.previous = this.#last;
    if (this.#last === undefined) this.#first = entry;
    else this.#last.next = entry;
    this.#last = entry;
    this.size += 1;
  }

  dequeue(): (() => Promise<unknown>) | undefined {
    const entry = this.#first;
    if (entry === undefined) return undefined;
    this.remove(entry);
    return entry.job;
  }

  remove(entry: string | QueueEntry): void {
    if (typeof entry === 'string') throw new TypeError('Calls are removed by their entries');
    if (entry.queue !== this) return;
    if (entry.previous === undefined) this.#first = entry.next;
    else entry.previous.next = entry.next;
    if (entry.next === undefined) this.#last = entry.previous;
    else entry.next.previous = entry.previous;
    entry.queue = undefined;
    entry.next = undefined;
    entry.previous = undefined;
    this.size -= 1;
  }

  filter(): (() => Promise<unknown>)[] {
    const jobs: (() => Promise<unknown>)[] = [];
    for (let entry = this.#first; entry !== undefined; entry = entry.next) if (entry.job) jobs.push(entry.job);
    return jobs;
  }

  setPriority(): void {
    throw new TypeError('Calls have no priorities');
  }
}
