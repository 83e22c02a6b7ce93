import type Opossum from 'opossum';
import type { Clock } from '../../timing/clock.js';

export interface BreakerPolicy {
  /** Outcomes that the window must hold before the breaker can open. */
  readonly minSamples: number;
  /** The share of failures at which the breaker opens. */
  readonly failurePercentage: number;
  /** The length of the window, in milliseconds. */
  readonly windowMs: number;
  /** How long the breaker stays open, in milliseconds. Doubles with each failed trial up to `maxOpenMs`. */
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

interface CircuitBreakerOptions {
  readonly clock: Clock;
  readonly policy?: BreakerPolicy;
  /** Sends the server a harmless request. Resolves with whether the server answered. */
  readonly trial: () => Promise<boolean>;
}

let opossum: Promise<typeof Opossum> | undefined;

/** Loads opossum. Call this early: a host that runs out of file descriptors later could not load it anymore. */
export function loadBreaker(): Promise<typeof Opossum> {
  opossum ??= import('opossum').then((loaded) => loaded.default);
  return opossum;
}

/**
 * Stops calls to a server whose process runs but does not serve: timeouts, broken frames.
 *
 * While the breaker is closed, it only counts outcomes: a call waits for nothing, and no timer runs. When too many calls
 * fail, an opossum breaker takes over. It keeps the time, and runs the one trial that decides whether the breaker closes.
 * The trial is a request of the gateway's own, never a client's tool call.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #policy: BreakerPolicy;
  readonly #trial: () => Promise<boolean>;
  readonly #outcomes: OutcomeWindow;
  /** Present unless the breaker is closed. */
  #circuit: Opossum<[], void> | undefined;
  #openUntil = 0;
  /** Whether the decision to open is made, and opossum is being loaded. */
  #isOpening = false;
  #hasEnded = false;

  constructor({ clock, policy = DEFAULT_BREAKER_POLICY, trial }: CircuitBreakerOptions) {
    this.#clock = clock;
    this.#policy = policy;
    this.#trial = trial;
    this.#outcomes = new OutcomeWindow(policy.windowMs);
  }

  get state(): BreakerState {
    if (this.#isOpening) return 'open';
    if (this.#circuit === undefined) return 'closed';
    return this.#circuit.opened ? 'open' : 'half-open';
  }

  /** Milliseconds until the next trial. 0 while a trial runs, and while the breaker is closed. */
  get retryAfterMs(): number {
    return this.state === 'open' ? Math.max(0, this.#openUntil - this.#clock.now()) : 0;
  }

  /**
   * A call was answered; `now` is the time on the clock. Once the breaker has opened, the answers to earlier calls say
   * nothing about the server anymore.
   */
  succeeded(now: number): void {
    if (this.state === 'closed') this.#outcomes.addSuccess(now);
  }

  /** A call failed in a way that speaks against the server. */
  failed(): void {
    if (this.state !== 'closed' || this.#hasEnded) return;
    const { minSamples, failurePercentage, openMs } = this.#policy;
    const { total, failures } = this.#outcomes.addFailure(this.#clock.now());
    if (total < minSamples || failures * 100 < total * failurePercentage) return;
    this.#isOpening = true;
    this.#openUntil = this.#clock.now() + openMs;
    void loadBreaker().then((Breaker) => {
      this.#isOpening = false;
      if (!this.#hasEnded) this.#open(Breaker, openMs);
    });
  }

  /** Cancels the timers. The breaker ignores everything from now on. */
  close(): void {
    this.#hasEnded = true;
    this.#discardCircuit();
  }

  #open(Breaker: typeof Opossum, openMs: number): void {
    const circuit: Opossum<[], void> = new Breaker(
      async () => {
        if (!(await this.#trial())) throw new Error('the trial failed');
      },
      {
        resetTimeout: openMs,
        // The bridge has deadlines of its own; opossum's would not stop the request.
        timeout: false,
        // Outcomes are counted above. One bucket for all of the open time keeps opossum's own counting quiet.
        rollingCountTimeout: openMs,
        rollingCountBuckets: 1,
        rollingPercentilesEnabled: false,
        enableSnapshots: false,
      },
    );
    circuit.once('halfOpen', () => {
      circuit.fire().then(
        () => this.#trialEnded(() => this.#outcomes.clear()),
        () => this.#trialEnded(() => this.#open(Breaker, Math.min(openMs * 2, this.#policy.maxOpenMs))),
      );
    });
    circuit.open();
    this.#circuit = circuit;
    this.#openUntil = this.#clock.now() + openMs;
  }

  #trialEnded(proceed: () => void): void {
    if (this.#hasEnded) return;
    this.#discardCircuit();
    proceed();
  }

  #discardCircuit(): void {
    this.#circuit?.shutdown();
    this.#circuit = undefined;
  }
}

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
