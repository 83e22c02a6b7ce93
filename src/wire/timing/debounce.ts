import type { Cancel, Clock } from './clock.js';

export interface DebounceOptions {
  readonly clock: Clock;
  /** Milliseconds from the first request to its run; 0 if absent. */
  readonly delayMs?: number;
  /** The least milliseconds from the start of one run to the start of the next. A function is asked before each run. */
  readonly everyMs: number | (() => number);
  readonly run: () => Promise<void> | void;
}

/**
 * Debounces and rate-limits a task: runs after the first request, at once or after `delayMs`, runs one at a time, runs once more if a
 * request came during a run, and starts no more often than `everyMs`. Requests of one turn of the event loop, and
 * requests until the next start, share one run.
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
    const { clock, delayMs = 0, everyMs } = this.#options;
    this.#state = 'planned';
    const leastMs = typeof everyMs === 'number' ? everyMs : everyMs();
    const waitMs = Math.max(delayMs, this.#lastStart + leastMs - clock.now());
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
