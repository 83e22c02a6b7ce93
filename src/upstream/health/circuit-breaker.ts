import type Opossum from 'opossum';
import type { Clock } from '../../timing/clock.js';

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

export interface CircuitBreakerOptions {
  readonly clock: Clock;
  readonly policy?: BreakerPolicy;
  /** Asks the child something harmless; resolves with whether it answered. */
  readonly trial: () => Promise<boolean>;
}

let opossum: Promise<typeof Opossum> | undefined;

/** Loads what judges outcomes; else that is done for the first one. */
export function loadBreaker(): Promise<typeof Opossum> {
  opossum ??= import('opossum').then((loaded) => loaded.default);
  return opossum;
}

/**
 * Stops calls to a child that lives but does not serve: timeouts, broken frames, refused writes.
 *
 * Outcomes are recorded after the answer has gone out, so a healthy call waits for nothing here. The one attempt
 * that decides whether an open breaker closes is a request of our own, never somebody's tool call.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #policy: BreakerPolicy;
  readonly #trial: () => Promise<boolean>;
  #circuit: Circuit | undefined;
  /** Begun by the first outcome: resolves when there is a circuit, or none is needed any more. */
  #ready: Promise<void> | undefined;
  #isOver = false;
  #openUntil = 0;
  /** Successes that opossum is still to be told of. */
  #untold = 0;
  #bucketEndsAt = 0;
  #bucketSuccesses = 0;

  constructor({ clock, policy = DEFAULT_BREAKER_POLICY, trial }: CircuitBreakerOptions) {
    this.#clock = clock;
    this.#policy = policy;
    this.#trial = trial;
  }

  get state(): BreakerState {
    if (this.#isClosed) return 'closed';
    return this.#circuit?.opened ? 'open' : 'half-open';
  }

  /** Milliseconds until the next trial, 0 while one runs or none is needed. */
  get retryAfterMs(): number {
    return this.#circuit?.opened ? Math.max(0, this.#openUntil - this.#clock.now()) : 0;
  }

  /**
   * A call was answered; `now` is the time on the clock. What was still under way when the breaker opened says nothing
   * about the child now. It is recorded in a microtask, with all others of the same chunk.
   */
  succeeded(now: number): void {
    if (!this.#isClosed || !this.#isWorthCounting(now)) return;
    this.#untold += 1;
    if (this.#untold === 1) void SETTLED.then(this.#tell);
  }

  /** A call failed in a way that speaks against the server. Resolves once the failure is counted; never rejects. */
  failed(): Promise<void> {
    this.#tell();
    return this.#isClosed ? this.#fire(FAIL) : SETTLED;
  }

  /** Lets go of the timers; the breaker is of no use afterwards. */
  close(): void {
    this.#isOver = true;
    this.#circuit?.shutdown();
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
    for (let told = 0; told < count && this.#isClosed; told += 1) void this.#fire(SUCCEED);
  };

  get #isClosed(): boolean {
    return this.#circuit === undefined || this.#circuit.closed;
  }

  async #fire(attempt: Attempt): Promise<void> {
    if (this.#isOver) return;
    if (this.#circuit === undefined) {
      this.#ready ??= this.#prepare();
      await this.#ready;
    }
    // The rejection is the attempt's own failure, which is now recorded.
    await this.#circuit?.fire(attempt).catch(() => {});
  }

  async #prepare(): Promise<void> {
    const Breaker = await loadBreaker();
    if (!this.#isOver) this.#circuit = this.#newCircuit(Breaker);
  }

  #newCircuit(Breaker: typeof Opossum): Circuit {
    const { minSamples, failurePercentage, windowMs, openMs, maxOpenMs } = this.#policy;
    const circuit: Circuit = new Breaker((attempt) => attempt(), {
      // Deadlines are the bridge's: opossum's own would leave the work running.
      timeout: false,
      volumeThreshold: minSamples,
      // opossum opens above its threshold; ours is part of it.
      errorThresholdPercentage: failurePercentage - A_LITTLE,
      rollingCountTimeout: windowMs,
      rollingCountBuckets: BUCKETS,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      resetTimeout: openMs,
    });
    const own = options(circuit);
    circuit.on('open', () => {
      this.#openUntil = this.#clock.now() + own.resetTimeout;
    });
    circuit.on('halfOpen', () => {
      // The next opening, should the trial fail, is to last longer; opossum reads this option at each opening.
      own.resetTimeout = Math.min(own.resetTimeout * 2, maxOpenMs);
      void this.#fire(async () => {
        if (!(await this.#trial())) throw new Error('trial failed');
      });
    });
    circuit.on('close', () => {
      own.resetTimeout = openMs;
    });
    return circuit;
  }
}

type Circuit = Opossum<[Attempt], void>;

const SETTLED = Promise.resolve();

type Attempt = () => Promise<void>;

const BUCKETS = 10;
const A_LITTLE = 1e-6;
const MAX_BUCKET_SUCCESSES = 1000;
const SUCCEED: Attempt = () => Promise.resolve();
const FAIL: Attempt = () => Promise.reject(new Error('call failed'));

/** The options object that opossum keeps; its typings leave it out. */
function options(circuit: Circuit): { resetTimeout: number } {
  return (circuit as unknown as { options: { resetTimeout: number } }).options;
}
