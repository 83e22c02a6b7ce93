import type { Cancel, Clock } from '../timing/clock.js';

export interface StartSlotsOptions {
  readonly clock: Clock;
  /** How many starts may go on at once. */
  readonly limit: number;
}

/** A start that takes longer is waiting rather than working, and must not hold up the others. */
const LONGEST_HOLD_MS = 500;

/** Spreads out a storm of starts: first come, first served, `limit` at once. */
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

  /** Calls `start` when there is room, perhaps at once. The slot is held until `release`, but for 500 ms at most. */
  request(key: string, start: () => void): void {
    this.#waiting.set(key, start);
    this.#fill();
  }

  /** Somebody waits for this start: it does not wait for others. Does nothing for one that has begun. */
  hurry(key: string): void {
    const start = this.#waiting.get(key);
    if (start !== undefined) this.#begin(key, start);
  }

  /** Gives the slot back, or withdraws a request that has not been served. */
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
