import type { Cancel, Clock } from '../../wire/timing/clock.js';

interface IdleTimerOptions {
  readonly clock: Clock;
  /** Milliseconds without use after which `onIdle` is called. 0 means never. */
  readonly idleMs: number;
  /** Time of the latest use, in milliseconds on the clock. */
  readonly usedAt: () => number;
  /** Whether the process has work in progress or state that must not be lost. */
  readonly isBusy: () => boolean;
  /** Called once per start; the timer is stopped then. */
  readonly onIdle: () => void;
}

/** Detects that a process was unused for some time. A use sets no timer, because every call is a use. */
export class IdleTimer {
  readonly #options: IdleTimerOptions;
  #idleMs: number;
  #isRunning = false;
  /** Time of the start, or of the latest check at which the process was busy. */
  #since = 0;
  #cancel: Cancel | undefined;

  constructor(options: IdleTimerOptions) {
    this.#options = options;
    this.#idleMs = options.idleMs;
  }

  start(): void {
    this.stop();
    this.#since = this.#options.clock.now();
    this.#isRunning = true;
    if (this.#idleMs > 0) this.#schedule(this.#idleMs);
  }

  /** Sets another `idleMs`. If it differs and the timer runs, the time starts from zero. */
  configure(idleMs: number): void {
    const isChanged = idleMs !== this.#idleMs;
    this.#idleMs = idleMs;
    if (this.#isRunning && isChanged) this.start();
  }

  stop(): void {
    this.#isRunning = false;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #schedule(delayMs: number): void {
    this.#cancel = this.#options.clock.schedule(delayMs, () => this.#check());
  }

  #check(): void {
    const { clock, usedAt, isBusy, onIdle } = this.#options;
    // Work in progress counts as use until it is done.
    if (isBusy()) this.#since = clock.now();
    const restMs = Math.max(this.#since, usedAt()) + this.#idleMs - clock.now();
    if (restMs > 0) {
      this.#schedule(restMs);
      return;
    }
    this.stop();
    onIdle();
  }
}
