import CircuitBreaker from 'opossum';
import type { Clock } from '../timing/clock.js';

export interface BreakerPolicy {
  /** Calls within the window before which nothing is concluded. */
  readonly minSamples: number;
  readonly failurePercentage: number;
  readonly windowMs: number;
  /** How long the breaker stays open the first time; doubles with each failed trial up to `maxOpenMs`. */
  readonly openMs: number;
  readonly maxOpenMs: number;
}

const DEFAULT_BREAKER_POLICY: BreakerPolicy = {
  minSamples: 5,
  failurePercentage: 50,
  windowMs: 30_000,
  openMs: 30_000,
  maxOpenMs: 300_000,
};

export type BreakerState = 'closed' | 'open' | 'half-open';

export interface BreakerOptions {
  readonly clock: Clock;
  readonly policy?: BreakerPolicy;
  /** Asks the child something harmless; resolves with whether it answered. */
  readonly trial: () => Promise<boolean>;
}

/**
 * Stops calls to a child that lives but does not serve: timeouts, broken frames, refused writes.
 *
 * Outcomes are recorded after the answer has gone out, so a healthy call waits for nothing here. The one attempt
 * that decides whether an open breaker closes is a request of our own, never somebody's tool call.
 */
export class Breaker {
  readonly #clock: Clock;
  readonly #policy: BreakerPolicy;
  readonly #circuit: CircuitBreaker<[Attempt], void>;
  #openUntil = 0;
  /** Successes that opossum is still to be told of. */
  #untold = 0;
  #bucketEndsAt = 0;
  #bucketSuccesses = 0;

  constructor({ clock, policy = DEFAULT_BREAKER_POLICY, trial }: BreakerOptions) {
    this.#clock = clock;
    this.#policy = policy;
    this.#circuit = new CircuitBreaker<[Attempt], void>((attempt) => attempt(), {
      // Deadlines are the bridge's: opossum's own would leave the work running.
      timeout: false,
      volumeThreshold: policy.minSamples,
      // opossum opens above its threshold; ours is part of it.
      errorThresholdPercentage: policy.failurePercentage - A_LITTLE,
      rollingCountTimeout: policy.windowMs,
      rollingCountBuckets: BUCKETS,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      resetTimeout: policy.openMs,
    });
    this.#circuit.on('open', () => {
      this.#openUntil = clock.now() + this.#resetTimeoutMs;
    });
    this.#circuit.on('halfOpen', () => {
      // The next opening, should the trial fail, is to last longer; opossum reads this option at each opening.
      this.#resetTimeoutMs = Math.min(this.#resetTimeoutMs * 2, policy.maxOpenMs);
      this.#fire(async () => {
        if (!(await trial())) throw new Error('trial failed');
      });
    });
    this.#circuit.on('close', () => {
      this.#resetTimeoutMs = policy.openMs;
    });
  }

  get state(): BreakerState {
    if (this.#circuit.opened) return 'open';
    return this.#circuit.halfOpen ? 'half-open' : 'closed';
  }

  /** Milliseconds until the next trial, 0 while one runs or none is needed. */
  get retryAfterMs(): number {
    return this.#circuit.opened ? Math.max(0, this.#openUntil - this.#clock.now()) : 0;
  }

  /**
   * A call was answered; `now` is the time on the clock. What was still under way when the breaker opened says nothing
   * about the child now. It is recorded in a microtask, with all others of the same chunk.
   */
  succeeded(now: number): void {
    if (!this.#circuit.closed || !this.#isWorthCounting(now)) return;
    this.#untold += 1;
    if (this.#untold === 1) void SETTLED.then(this.#tell);
  }

  /** A call failed in a way that speaks against the child. */
  failed(): void {
    this.#tell();
    if (this.#circuit.closed) this.#fire(FAIL);
  }

  /** Lets go of the timers; the breaker is of no use afterwards. */
  close(): void {
    this.#circuit.shutdown();
  }

  /** opossum keeps a number for each success: beyond some in a stretch of time more of them change no percentage. */
  #isWorthCounting(now: number): boolean {
    if (now >= this.#bucketEndsAt) {
      this.#bucketEndsAt = now + this.#policy.windowMs / BUCKETS;
      this.#bucketSuccesses = 0;
    }
    this.#bucketSuccesses += 1;
    return this.#bucketSuccesses <= MAX_BUCKET_SUCCESSES;
  }

  readonly #tell = (): void => {
    const count = this.#untold;
    this.#untold = 0;
    for (let told = 0; told < count && this.#circuit.closed; told += 1) this.#fire(SUCCEED);
  };

  #fire(attempt: Attempt): void {
    // The rejection is the attempt's own failure, which is now recorded.
    this.#circuit.fire(attempt).catch(() => {});
  }

  get #resetTimeoutMs(): number {
    return options(this.#circuit).resetTimeout;
  }

  set #resetTimeoutMs(value: number) {
    options(this.#circuit).resetTimeout = value;
  }
}

const SETTLED = Promise.resolve();

type Attempt = () => Promise<void>;

const BUCKETS = 10;
const A_LITTLE = 1e-6;
const MAX_BUCKET_SUCCESSES = 1000;
const SUCCEED: Attempt = () => Promise.resolve();
const FAIL: Attempt = () => Promise.reject(new Error('call failed'));

/** The options object that opossum keeps; its typings leave it out. */
function options(circuit: CircuitBreaker<[Attempt], void>): { resetTimeout: number } {
  return (circuit as unknown as { options: { resetTimeout: number } }).options;
}
