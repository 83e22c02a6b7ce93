import Opossum from 'opossum';
import type { Clock } from '../../wire/timing/clock.js';

export interface BreakerPolicy {
  /** Outcomes that the window must hold before the breaker can open. */
  readonly minSamples: number;
  /** The share of failures at which the breaker opens. */
  readonly failurePercentage: number;
  /** The length of the window, in milliseconds. */
  readonly windowMs: number;
  /** Time for which the breaker stays open, in milliseconds. Doubles with each failed trial up to `maxOpenMs`. */
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

/**
 * Limit of the successes that count in a tenth of the window. Without it, a server that answered a million calls and then
 * hangs would need a million failures to open its breaker, and opossum would cost a microsecond and a kilobyte for each call.
 */
const MAX_SUCCESSES = 1_000;

export type BreakerState = 'closed' | 'open' | 'half-open';

interface CircuitBreakerOptions {
  readonly clock: Clock;
  readonly policy?: BreakerPolicy;
  /** Sends the server a harmless request. Resolves with whether the server answered. */
  readonly trial: () => Promise<boolean>;
}

/**
 * Stops calls to a server that runs but does not answer well, for example if calls time out.
 *
 * opossum counts the outcomes of the window, opens when too many of them are failures, and half-opens after the open time.
 * Each call is passed to opossum (`fire`) when it ends and not when it begins, because a call that times out may have begun
 * before the window. The half-open breaker runs one trial, which is a request of the gateway's own and never a client's call.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #policy: BreakerPolicy;
  readonly #trial: CircuitBreakerOptions['trial'];
  #circuit: Circuit;
  #openUntil = 0;
  /** Number of successes in the present tenth of the window, and the end of this tenth on the clock. */
  #successes = 0;
  #tenthEndsAt = 0;

  constructor({ clock, policy = DEFAULT_BREAKER_POLICY, trial }: CircuitBreakerOptions) {
    this.#clock = clock;
    this.#policy = policy;
    this.#trial = trial;
    this.#circuit = this.#newCircuit(policy.openMs);
  }

  get state(): BreakerState {
    if (this.#circuit.opened) return 'open';
    return this.#circuit.halfOpen ? 'half-open' : 'closed';
  }

  /** Milliseconds until the next trial. 0 while a trial runs, and while the breaker is closed. */
  get retryAfterMs(): number {
    return this.#circuit.opened ? Math.max(0, this.#openUntil - this.#clock.now()) : 0;
  }

  /** Counts an answered call, at `now` on the clock. An open breaker counts none, because they belong to earlier calls. */
  succeeded(now: number): void {
    if (!this.#circuit.closed) return;
    if (now >= this.#tenthEndsAt) {
      this.#tenthEndsAt = now + this.#policy.windowMs / 10;
      this.#successes = 0;
    }
    this.#successes += 1;
    if (this.#successes <= MAX_SUCCESSES) void this.#circuit.fire(succeed);
  }

  /** Counts a call that failed through a fault of the server. The breaker may open before this method returns. */
  failed(): void {
    if (this.#circuit.closed) this.#circuit.fire(fail).catch(() => {});
  }

  /** Cancels the timers. The breaker ignores everything from now on. */
  close(): void {
    this.#circuit.shutdown();
  }

  /** Makes a circuit, whose open time is fixed. After a trial, a new one replaces it, open for longer or closed. */
  #newCircuit(openMs: number): Circuit {
    const { minSamples, failurePercentage, windowMs, maxOpenMs } = this.#policy;
    const circuit: Circuit = new Opossum((action) => action(), {
      resetTimeout: openMs,
      volumeThreshold: minSamples,
      // opossum opens above its threshold, but the breaker opens at exactly the share of the policy.
      errorThresholdPercentage: failurePercentage - 0.01,
      rollingCountTimeout: windowMs,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      // The bridge has deadlines of its own; opossum's would not stop the request.
      timeout: false,
    });
    circuit.on('open', () => {
      this.#openUntil = this.#clock.now() + openMs;
    });
    circuit.once('halfOpen', () => {
      void circuit.fire(this.#trialOrFail).then(
        () => this.#replace(circuit, this.#policy.openMs),
        () => this.#replace(circuit, Math.min(openMs * 2, maxOpenMs))?.open(),
      );
    });
    return circuit;
  }

  /** Returns `undefined` after `close`. */
  #replace(circuit: Circuit, openMs: number): Circuit | undefined {
    if (circuit.isShutdown) return undefined;
    circuit.shutdown();
    this.#circuit = this.#newCircuit(openMs);
    return this.#circuit;
  }

  readonly #trialOrFail = async (): Promise<void> => {
    if (!(await this.#trial())) throw FAILED;
  };
}

/** Circuit whose actions return the outcome of a call, or run the trial. */
type Circuit = Opossum<[() => Promise<void>], void>;

const SUCCEEDED = Promise.resolve();
const FAILED = new Error('the call failed');

function succeed(): Promise<void> {
  return SUCCEEDED;
}

/** Throws synchronously, because the breaker then opens before the failed call releases its slot. */
function fail(): never {
  throw FAILED;
}
