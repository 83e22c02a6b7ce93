import Opossum from 'opossum';
import type { Clock } from '../../timing/clock.js';

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
 * Successes that count in a tenth of the window. Without a bound, a server that answered a million calls and then hangs would
 * need a million failures to open its breaker, and opossum would take a microsecond and a kilobyte of each call.
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
 * Stops calls to a server whose process runs but does not serve: timeouts, broken frames.
 *
 * opossum counts the outcomes of the window, opens when too many of them are failures, and half-opens after the open
 * time. A call is fired when it ends: opossum counts a call when it is fired, and a call that times out began before the
 * window. The half-open breaker fires one trial, a request of the gateway's own and never a client's tool call.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #policy: BreakerPolicy;
  readonly #trial: CircuitBreakerOptions['trial'];
  #circuit: Circuit;
  #openUntil = 0;
  /** Successes that were fired since the last tenth of the window began, and when it ends. */
  #fired = 0;
  #firedUntil = 0;

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

  /**
   * A call was answered; `now` is the time on the clock. Once the breaker has opened, answers to earlier calls say nothing
   * about the server anymore.
   */
  succeeded(now: number): void {
    if (!this.#circuit.closed) return;
    if (now >= this.#firedUntil) {
      this.#firedUntil = now + this.#policy.windowMs / 10;
      this.#fired = 0;
    }
    this.#fired += 1;
    if (this.#fired <= MAX_SUCCESSES) void this.#circuit.fire(succeed);
  }

  /** A call failed in a way that speaks against the server. The breaker may open before this method returns. */
  failed(): void {
    if (this.#circuit.closed) this.#circuit.fire(fail).catch(() => {});
  }

  /** Cancels the timers. The breaker ignores everything from now on. */
  close(): void {
    this.#circuit.shutdown();
  }

  /** opossum has one open time. After a trial, another circuit takes over: open for longer, or closed and empty. */
  #newCircuit(openMs: number): Circuit {
    const { minSamples, failurePercentage, windowMs, maxOpenMs } = this.#policy;
    const circuit: Circuit = new Opossum((action) => action(), {
      resetTimeout: openMs,
      volumeThreshold: minSamples,
      // opossum opens above its threshold, and the policy at its own.
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

  /** Returns `undefined` if the breaker was closed down meanwhile. */
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

/** Its action is the outcome of a call, or the trial. */
type Circuit = Opossum<[() => Promise<void>], void>;

const SUCCEEDED = Promise.resolve();
const FAILED = new Error('the call failed');

function succeed(): Promise<void> {
  return SUCCEEDED;
}

/** Throws at once, because opossum then decides before the call that failed releases its slot. */
function fail(): never {
  throw FAILED;
}
