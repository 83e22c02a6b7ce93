import type PQueue from 'p-queue';
import { SharedLimit } from '../../io/shared-limit.js';

export interface CallQueueOptions {
  /** Calls that a child works on at the same time. */
  readonly concurrency: number;
  /** Calls that may wait for one of those to end. */
  readonly maxQueued: number;
  /** Calls that may wait in all queues together. */
  readonly waiting?: SharedLimit;
}

/** A place in the queue. */
export interface QueuePlace {
  /** Gives the place up; does nothing once the call has started. */
  withdraw(): void;
}

/** Starts a call, which holds its place until it calls `leave`, once. */
export type StartCall = (leave: () => void) => void;

let pQueue: Promise<typeof PQueue> | undefined;

/** Loads what keeps waiting calls in order; else that is done when the first one waits. */
export function loadCallQueue(): Promise<typeof PQueue> {
  pQueue ??= import('p-queue').then((loaded) => loaded.default);
  return pQueue;
}

/**
 * Lets a bounded number of calls through to a child and keeps a bounded number waiting, in order of arrival.
 *
 * A call that finds room takes it at once; p-queue is for those that wait. It orders them and lets one at a time, the
 * first in line, wait for the next place. The bound on what waits is ours: p-queue itself takes any number.
 */
export class CallQueue {
  #concurrency: number;
  #maxQueued: number;
  readonly #allWaiting: SharedLimit;
  /** Formed by the first call that waits. */
  #line: Promise<PQueue> | undefined;
  #running = 0;
  #waiting = 0;
  /** Hands the next place that becomes free to the first in line. */
  #handOver: (() => void) | undefined;

  constructor({ concurrency, maxQueued, waiting = new SharedLimit(Number.POSITIVE_INFINITY) }: CallQueueOptions) {
    this.#concurrency = concurrency;
    this.#maxQueued = maxQueued;
    this.#allWaiting = waiting;
  }

  get running(): number {
    return this.#running;
  }

  get queued(): number {
    return this.#waiting;
  }

  /** Whether as many wait here as may; otherwise it is all queues together that are full when a call is refused. */
  get isFull(): boolean {
    return this.#waiting >= this.#maxQueued;
  }

  /** Other bounds from now on; what runs or waits beyond them already goes on. */
  limit({ concurrency, maxQueued }: Pick<CallQueueOptions, 'concurrency' | 'maxQueued'>): void {
    this.#concurrency = concurrency;
    this.#maxQueued = maxQueued;
    if (this.#running < concurrency) this.#giveNext();
  }

  /** Takes a place if there is room now, to be held until `leave` is called, once. Returns whether there was. */
  enterNow(): boolean {
    if (this.#running >= this.#concurrency || this.#waiting > 0) return false;
    this.#running += 1;
    return true;
  }

  /**
   * Calls `start` as soon as there is room, at once if there is any now. Returns `undefined`, and never calls `start`,
   * when too many wait already.
   */
  enter(start: StartCall): QueuePlace | undefined {
    if (this.enterNow()) {
      start(this.leave);
      return STARTED;
    }
    if (this.isFull || !this.#allWaiting.tryAcquire(1)) return undefined;
    return this.#wait(start);
  }

  #wait(start: StartCall): QueuePlace {
    this.#waiting += 1;
    const withdrawal = new AbortController();
    let handOver: (() => void) | undefined;
    let state: 'waiting' | 'started' | 'withdrawn' = 'waiting';
    const untilPlaced = async () => {
      await new Promise<void>((resolve) => {
        handOver = resolve;
        this.#handOver = resolve;
        if (this.#running < this.#concurrency) this.#giveNext();
      });
      // Withdrawn in the very moment that its turn came.
      if (state === 'withdrawn') {
        this.leave();
        return;
      }
      state = 'started';
      this.#endWait();
      start(this.leave);
    };
    this.#line ??= loadCallQueue().then((Line) => new Line({ concurrency: 1 }));
    // Rejects when withdrawn, which is what was wanted.
    void this.#line.then((line) => line.add(untilPlaced, { signal: withdrawal.signal }).catch(() => {}));
    return {
      withdraw: () => {
        if (state !== 'waiting') return;
        state = 'withdrawn';
        this.#endWait();
        if (handOver !== undefined && this.#handOver === handOver) this.#handOver = undefined;
        withdrawal.abort();
      },
    };
  }

  #endWait(): void {
    this.#waiting -= 1;
    this.#allWaiting.release(1);
  }

  /** A place is free: the first in line gets it, before anybody who comes later. */
  #giveNext(): void {
    const handOver = this.#handOver;
    if (handOver === undefined) return;
    this.#handOver = undefined;
    this.#running += 1;
    handOver();
  }

  /** Gives the place of a call back. */
  readonly leave = (): void => {
    this.#running -= 1;
    if (this.#running < this.#concurrency) this.#giveNext();
  };
}

const STARTED: QueuePlace = { withdraw: () => {} };
