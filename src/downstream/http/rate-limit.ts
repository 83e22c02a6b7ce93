/** Allows a burst, then a number of requests per second. Times are milliseconds on a monotonic clock. */
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

  /** Takes one token and returns 0, or returns the milliseconds until a token is available. */
  take(now: number): number {
    this.#tokens = Math.min(this.#capacity, this.#tokens + (now - this.#filledAt) * this.#perMs);
    this.#filledAt = now;
    if (this.#tokens < 1) return (1 - this.#tokens) / this.#perMs;
    this.#tokens -= 1;
    return 0;
  }
}

/** Limits the memory for an attacker with many addresses: the oldest address is forgotten. */
const MAX_ADDRESSES = 4_096;

/** Counts the failures of each address within a window that begins with the first failure. */
export class FailureWindow {
  readonly #limit: number;
  readonly #windowMs: number;
  /** In the order of `since`, oldest first. */
  readonly #failures = new Map<string, { readonly since: number; count: number }>();

  constructor({ limit, windowMs }: { limit: number; windowMs: number }) {
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  /** Counts one failure. Returns 0, or the milliseconds that the address has to wait after one failure too many. */
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
