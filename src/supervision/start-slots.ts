import type { Cancel, Clock } from '../timing/clock.js';

export interface StartSlotsOptions {
  readonly clock: Clock;
  /** How many starts may run at once. */
  readonly limit: number;
}

/** A start that takes longer than this mostly waits, so it must not delay the others. In milliseconds. */
const LONGEST_HOLD_MS = 200;

/** Limits how many starts run at once, first come, first served. */
export class StartSlots {
  readonly #clock: Clock;
  #limit: number;
  /** In order of arrival. */
  readonly #waiting = new Map<string, () => void>();
  readonly #held = new Map<string, Cancel>();

  constructor({ clock, limit }: StartSlotsOptions) {
    this.#clock = clock;
    this.#limit = limit;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#fill();
  }

  /** Calls `start` when a slot is free, which may be at once. The slot is held until `release`, for at most 200 ms. */
  request(key: string, start: () => void): void {
    this.#waiting.set(key, start);
    this.#fill();
  }

  /** Runs a waiting start now, because a caller waits for it. Does nothing if the start has begun. */
  hurry(key: string): void {
    const start = this.#waiting.get(key);
    if (start !== undefined) this.#begin(key, start);
  }

  /** Releases the slot, or withdraws a request that still waits for one. */
  release(key: string): void {
    this.#waiting.delete(key);
    this.#held.get(key)?.();
    if (this.#held.delete(key)) this.#fill();
  }

  #fill(): void {
    for (const [key, start] of this.#waiting) {
      if (this.#held.size >= this.#limit) return;
      this.#begin(key, start);
    }
  }

  #begin(key: string, start: () => void): void {
    this.#waiting.delete(key);
    this.#held.set(
      key,
      this.#clock.schedule(LONGEST_HOLD_MS, () => this.release(key)),
    );
    start();
  }
}
