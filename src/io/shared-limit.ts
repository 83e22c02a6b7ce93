/**
 * How much of something many holders may have together: calls that wait, or bytes of messages that are not complete.
 *
 * Each holder takes what it needs and gives it back; what was refused is counted, so that it can be told.
 */
export class SharedLimit {
  #max: number;
  #taken = 0;
  #refusals = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get max(): number {
    return this.#max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** How often there was no room. */
  get refusals(): number {
    return this.#refusals;
  }

  /** What is taken stays so, even if it is more than the new limit. */
  limitTo(max: number): void {
    this.#max = max;
  }

  /** Takes `amount`, or nothing and returns `false` when that would be too much. */
  take(amount: number): boolean {
    const hasRoom = this.#taken + amount <= this.#max;
    if (hasRoom) this.#taken += amount;
    else this.#refusals += 1;
    return hasRoom;
  }

  /** Takes `amount` in any case. */
  takeAnyway(amount: number): void {
    this.#taken += amount;
  }

  give(amount: number): void {
    this.#taken -= amount;
  }
}
