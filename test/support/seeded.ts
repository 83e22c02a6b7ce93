// Random numbers from a seed, for test data that is the same in every run.

/** Numbers in [0, 1) that depend on the seed alone, and choices made with them. */
export class Seeded {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** The next number, by mulberry32: small, fast, and good enough for test data. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[this.below(choices.length)];
    if (choice === undefined) throw new Error('Nothing to pick from');
    return choice;
  }

  shuffle<T>(items: readonly T[]): T[] {
    const shuffled: T[] = [];
    for (const item of items) shuffled.splice(this.below(shuffled.length + 1), 0, item);
    return shuffled;
  }
}
