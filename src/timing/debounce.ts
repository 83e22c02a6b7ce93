import type { Cancel, Clock } from './clock.js';

export interface DebounceOptions {
  readonly clock: Clock;
  /** From a request to the run, so that requests close together become one. */
  readonly delayMs: number;
  /** From the start of one run to the start of the next, at least. */
  readonly everyMs: number;
  readonly run: () => Promise<void> | void;
}

/**
 * Runs something on request, however often it is requested: one run at a time, one more if it was requested
 * meanwhile, and never more often than the pace.
 */
export class Debounce {
  readonly #options: DebounceOptions;
  #state: 'idle' | 'planned' | 'running' | 'running-again' | 'closed' = 'idle';
  #lastStart = Number.NEGATIVE_INFINITY;
  #cancel: Cancel | undefined;

  constructor(options: DebounceOptions) {
    this.#options = options;
  }

  request(): void {
    if (this.#state === 'running') this.#state = 'running-again';
    if (this.#state === 'idle') this.#plan();
  }

  close(): void {
    this.#state = 'closed';
    this.#cancel?.();
  }

  #plan(): void {
    const { clock, delayMs, everyMs } = this.#options;
    this.#state = 'planned';
    const waitMs = Math.max(delayMs, this.#lastStart + everyMs - clock.now());
    this.#cancel = clock.schedule(waitMs, () => void this.#run());
  }

  async #run(): Promise<void> {
    this.#state = 'running';
    this.#lastStart = this.#options.clock.now();
    await this.#options.run();
    this.#finished();
  }

  #finished(): void {
    if (this.#state === 'closed') return;
    const isWantedAgain = this.#state === 'running-again';
    this.#state = 'idle';
    if (isWantedAgain) this.#plan();
  }
}
