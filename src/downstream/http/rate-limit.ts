/** Allows a burst, and then so many a second. Times are milliseconds on a monotonic clock. */
export class TokenBucket {
  readonly #capacity: number;
  readonly #perMs: number;
  #tokens: number;
  #filledAt: number;

  constructor({ capacity, perSecond, now }: { capacity: number; perSecond: number; now: number }) {
    this.#capacity = capacity;
    this.#perMs = perSecond / 1_000;
    this.#tokens = capacity;
    this.#filledAt = now;
  }

  /** Takes one and returns 0, or returns how long until there is one to take. */
  take(now: number): number {
    this.#tokens = Math.min(this.#capacity, this.#tokens + (now - this.#filledAt) * this.#perMs);
    this.#filledAt = now;
    if (this.#tokens < 1) return (1 - this.#tokens) / this.#perMs;
    this.#tokens -= 1;
    return 0;
  }
}

/** Somebody with many addresses gets old ones forgotten, not our memory filled. */
const MAX_ADDRESSES = 4_096;

/** Counts what went wrong for each address within a window that begins with the first of it. */
export class FailureWindow {
  readonly #limit: number;
  readonly #windowMs: number;
  /** In the order of `since`, so that the oldest stands first. */
  readonly #failures = new Map<string, { readonly since: number; count: number }>();

  constructor({ limit, windowMs }: { limit: number; windowMs: number }) {
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  /** Counts one failure; returns 0, or how long the address has to wait when this was one too many. */
  count(address: string, now: number): number {
    this.#forget(now);
    const failure = this.#failures.get(address) ?? { since: now, count: 0 };
    failure.count += 1;
    this.#failures.set(address, failure);
    return failure.count > this.#limit ? failure.since + this.#windowMs - now : 0;
  }

  #forget(now: number): void {
    for (const [address, { since }] of this.#failures) {
      if (now - since < this.#windowMs && this.#failures.size < MAX_ADDRESSES) return;
      this.#failures.delete(address);
    }
  }
}
