import PQueue from 'p-queue';

export interface CallQueueOptions {
  /** Calls that a child works on at the same time. */
  readonly concurrency: number;
  /** Calls that may wait for one of those to end. */
  readonly maxQueued: number;
}

/** A place in the queue. */
export interface QueuePlace {
  /** Gives the place up; does nothing once the call has started. */
  withdraw(): void;
}

/**
 * Lets a bounded number of calls through to a child and keeps a bounded number waiting, in order of arrival.
 *
 * The bound on what waits is ours: p-queue itself takes any number.
 */
export class CallQueue {
  readonly #queue: PQueue;
  readonly #maxQueued: number;

  constructor({ concurrency, maxQueued }: CallQueueOptions) {
    this.#queue = new PQueue({ concurrency });
    this.#maxQueued = maxQueued;
  }

  get running(): number {
    return this.#queue.pending;
  }

  get queued(): number {
    return this.#queue.size;
  }

  /**
   * Calls `start` as soon as there is room, at once if there is any now; the call holds its place until it calls
   * `leave`. Returns `undefined`, and never calls `start`, when too many wait already.
   */
  enter(start: (leave: () => void) => void): QueuePlace | undefined {
    const task = () => new Promise<void>((leave) => start(leave));
    if (this.#queue.pending < this.#queue.concurrency) {
      void this.#queue.add(task);
      return STARTED;
    }
    if (this.#queue.size >= this.#maxQueued) return undefined;
    const withdrawal = new AbortController();
    let isWaiting = true;
    const waitingTask = () => {
      isWaiting = false;
      return task();
    };
    // Rejects when withdrawn, which is what was wanted.
    this.#queue.add(waitingTask, { signal: withdrawal.signal }).catch(() => {});
    return {
      withdraw: () => {
        // p-queue takes the signal for running tasks too, and would free a place whose work goes on.
        if (isWaiting) withdrawal.abort();
      },
    };
  }
}

const STARTED: QueuePlace = { withdraw: () => {} };
