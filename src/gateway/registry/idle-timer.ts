import type { Cancel, Clock } from '../../timing/clock.js';

export interface IdleTimerOptions {
  readonly clock: Clock;
  /** Milliseconds without use after which `onIdle` is called. 0 means never. */
  readonly idleMs: number;
  /** Whether the process has work in progress or state that must not be lost. */
  readonly isBusy: () => boolean;
  /** Called once per start; the timer is stopped then. */
  readonly onIdle: () => void;
}

/** Detects that a process was unused for some time. A call only stores a time stamp and sets no timer. */
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

  /** Starts the timer, or starts it again from zero. */
  start(): void {
    this.stop();
    this.#usedAt = this.#options.clock.now();
    this.#isRunning = true;
    if (this.#idleMs > 0) this.#schedule(this.#idleMs);
  }

  /** Sets another `idleMs`. If it differs and the timer runs, the time starts from zero. */
  configure(idleMs: number): void {
    const isChanged = idleMs !== this.#idleMs;
    this.#idleMs = idleMs;
    if (this.#isRunning && isChanged) this.start();
  }

  /** Records a use. Without a pending timer this does not read the clock. */
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
    // Work in progress counts as use until it is done.
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
