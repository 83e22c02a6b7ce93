import type { Cancel, Clock } from '../../timing/clock.js';

export interface IdleTimerOptions {
  readonly clock: Clock;
  /** How long nothing may be asked, in milliseconds; 0 for ever. */
  readonly idleMs: number;
  /** Whether there is work, or something that must not be lost, although nothing is asked. */
  readonly isBusy: () => boolean;
  /** Called once; the watch is over then. */
  readonly onIdle: () => void;
}

/** Tells when a process that is there has not been asked anything for a while. It costs a call no timer. */
export class IdleTimer {
  readonly #options: IdleTimerOptions;
  #idleMs: number;
  #isRunning = false;
  #usedAt = 0;
  #cancel: Cancel | undefined;

  constructor(options: IdleTimerOptions) {
    this.#options = options;
    this.#idleMs = options.idleMs;
  }

  start(): void {
    this.stop();
    this.#usedAt = this.#options.clock.now();
    this.#isRunning = true;
    if (this.#idleMs > 0) this.#schedule(this.#idleMs);
  }

  /** Another `idleMs` from now on. */
  configure(idleMs: number): void {
    const isOther = idleMs !== this.#idleMs;
    this.#idleMs = idleMs;
    if (this.#isRunning && isOther) this.start();
  }

  /** Something is asked of it. Where nobody watches, a call need not look at the clock for this. */
  used(): void {
    if (this.#cancel !== undefined) this.#usedAt = this.#options.clock.now();
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
    const { clock, isBusy, onIdle } = this.#options;
    // What it is at work on now counts as used until it is done.
    if (isBusy()) this.used();
    const restMs = this.#usedAt + this.#idleMs - clock.now();
    if (restMs > 0) {
      this.#schedule(restMs);
      return;
    }
    this.stop();
    onIdle();
  }
}
