import type { Clock } from '../wire/timing/clock.js';

export class ShortMemory {
  readonly #clock: Clock;
  /** Ends in milliseconds on the clock, by name, in the order in which they were added. */
  readonly #names = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(name: string): boolean {
    return (this.#names.get(name) ?? 0) > this.#clock.now();
  }

  /** Remembers a name for `ms`. Returns whether it was not remembered before. */
  add(name: string, ms: number): boolean {
    const now = this.#clock.now();
    for (const [each, until] of this.#names) {
      if (until > now) break;
      this.#names.delete(each);
    }
    if (this.has(name)) return false;
    this.#names.set(name, now + ms);
    return true;
  }
}
