import Opossum from 'opossum';
import type { Clock } from '../../wire/timing/clock.js';

/** Calls that must have ended within the window before the breaker can open. */
const MIN_CALLS = 5;
const WINDOW_MS = 30_000;
/** Time for which the breaker is open before a trial. By then no failure is left in the window. */
const OPEN_MS = WINDOW_MS;

/**
 * Limit of the successes that count in a tenth of the window. Without it, a server that answered a million calls and then
 * hangs would need a million failures to open its breaker, and opossum would cost a microsecond and a kilobyte for each call.
 */
const MAX_SUCCESSES = 1_000;

export type BreakerState = 'closed' | 'open' | 'half-open';

/**
 * Stops calls to a server that runs but does not answer well, for example if calls time out.
 *
 * opossum counts the calls of the window, opens when half of them are failures, and is half-open after the open time. A call
 * is passed to opossum (`fire`) when it ends and not when it begins, because a call that times out may have begun before the
 * window. The half-open breaker runs one trial, which is a request of the gateway's own and never a client's call.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #circuit: Opossum<[() => Promise<void>], void>;
  #openUntil = 0;
  /** Number of successes in the present tenth of the window, and the end of this tenth on the clock. */
  #successes = 0;
  #tenthEndsAt = 0;

  /** `trial` sends the server a harmless request, and resolves with whether the server answered. */
  constructor(clock: Clock, trial: () => Promise<boolean>) {
    this.#clock = clock;
    this.#circuit = new Opossum((action: () => Promise<void>) => action(), {
      resetTimeout: OPEN_MS,
      volumeThreshold: MIN_CALLS,
      // opossum opens above this percentage.
      errorThresholdPercentage: 49,
      rollingCountTimeout: WINDOW_MS,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      // A call has timeouts of its own, which its progress extends.
      timeout: false,
    });
    const tryOnce = async () => {
      if (!(await trial())) throw FAILED;
    };
    this.#circuit.on('open', () => {
      this.#openUntil = clock.now() + OPEN_MS;
    });
    this.#circuit.on('halfOpen', () => void this.#circuit.fire(tryOnce).catch(() => {}));
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
      this.#tenthEndsAt = now + WINDOW_MS / 10;
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
}

const FAILED = new Error('the call failed');

async function succeed(): Promise<void> {}

/** Throws synchronously, because the breaker then opens before the failed call releases its slot. */
function fail(): never {
  throw FAILED;
}
