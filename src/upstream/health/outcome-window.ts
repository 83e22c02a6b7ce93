/** The window consists of this many buckets, and the oldest bucket leaves it at once. */
const BUCKETS = 10;
/**
 * Successes that count in one bucket. Without a bound, a server that answered a million calls and then hangs would need
 * a million failures to open its breaker.
 */
const MAX_BUCKET_SUCCESSES = 1000;

interface Bucket {
  /** Counts up with the time. */
  readonly index: number;
  successes: number;
  failures: number;
}

/**
 * Counts the successes and failures of the last `windowMs` milliseconds. Old buckets leave when an outcome comes, so the
 * window needs no timer. Times are milliseconds on the clock.
 */
export class OutcomeWindow {
  readonly #bucketMs: number;
  #current: Bucket = emptyBucket(Number.NEGATIVE_INFINITY);
  /** All buckets of the window, the newest last. */
  #buckets: Bucket[] = [this.#current];

  constructor(windowMs: number) {
    this.#bucketMs = windowMs / BUCKETS;
  }

  addSuccess(now: number): void {
    const bucket = this.#bucketAt(now);
    if (bucket.successes < MAX_BUCKET_SUCCESSES) bucket.successes += 1;
  }

  /** Returns how many outcomes the window holds now, and how many of them are failures. */
  addFailure(now: number): { readonly total: number; readonly failures: number } {
    this.#bucketAt(now).failures += 1;
    let total = 0;
    let failures = 0;
    for (const bucket of this.#buckets) {
      total += bucket.successes + bucket.failures;
      failures += bucket.failures;
    }
    return { total, failures };
  }

  clear(): void {
    this.#current = emptyBucket(Number.NEGATIVE_INFINITY);
    this.#buckets = [this.#current];
  }

  #bucketAt(now: number): Bucket {
    const index = Math.floor(now / this.#bucketMs);
    if (index !== this.#current.index) {
      this.#current = emptyBucket(index);
      this.#buckets = [...this.#buckets.filter((bucket) => index - bucket.index < BUCKETS), this.#current];
    }
    return this.#current;
  }
}

function emptyBucket(index: number): Bucket {
  return { index, successes: 0, failures: 0 };
}
