/** A limit on how much of something several holders may use together. Counts how often it refused, for the status. */
export class SharedLimit {
  #max: number;
  #used = 0;
  #refusals = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get max(): number {
    return this.#max;
  }

  /** Amount in use; more than `max` after the limit became smaller. */
  get used(): number {
    return this.#used;
  }

  /** Number of calls of `tryAcquire` that returned `false`. */
  get refusals(): number {
    return this.#refusals;
  }

  /** Changes the limit. The amount in use stays, even if it exceeds the new limit. */
  limitTo(max: number): void {
    this.#max = max;
  }

  /** Acquires `amount` if that stays within the limit; otherwise acquires nothing and returns `false`. */
  tryAcquire(amount: number): boolean {
    const isWithinLimit = this.#used + amount <= this.#max;
    if (isWithinLimit) this.#used += amount;
    else this.#refusals += 1;
    return isWithinLimit;
  }

  release(amount: number): void {
    this.#used -= amount;
  }
}
