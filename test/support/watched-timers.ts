/**
 * The timers that are made while it watches and have neither fired nor been cleared. Those of the test runner are not
 * among them: it keeps the functions that it makes its own with.
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

  /** Watches no longer. What was seen may still fire. */
  stop(): void {
    globalThis.setTimeout = this.#setTimeout;
    globalThis.clearTimeout = this.#clearTimeout;
  }
}
