// Counts the timers that are pending, for `NothingLeft`.

/**
 * Counts the timers that were made since the construction and have neither fired nor been cleared. Timers of the test
 * runner are not counted, since it holds the original functions.
 */
export class WatchedTimers {
  readonly #pending = new Set<unknown>();
  readonly #setTimeout = globalThis.setTimeout;
  readonly #clearTimeout = globalThis.clearTimeout;

  constructor() {
    const watched = (task: (...args: unknown[]) => void, delayMs?: number, ...args: unknown[]) => {
      const timer = this.#setTimeout(() => {
        this.#pending.delete(timer);
        task(...args);
      }, delayMs);
      this.#pending.add(timer);
      return timer;
    };
    // The copy has the properties of the original, such as its promisified form.
    globalThis.setTimeout = Object.assign(watched, this.#setTimeout) as typeof setTimeout;
    globalThis.clearTimeout = (timer) => {
      this.#pending.delete(timer);
      this.#clearTimeout(timer);
    };
  }

  get pending(): number {
    return this.#pending.size;
  }

  /** Restores the original functions. Timers that were counted may still fire. */
  stop(): void {
    globalThis.setTimeout = this.#setTimeout;
    globalThis.clearTimeout = this.#clearTimeout;
  }
}
