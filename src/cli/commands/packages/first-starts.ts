import type { ChildSnapshot } from '../../../supervision/child-state.js';

interface FirstStart {
  spawnedAt: number | undefined;
  readyAfterMs: number | undefined;
  isSettled: boolean;
}

export interface FirstStartsOptions {
  readonly keys: readonly string[];
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  /** Called when a first start has ended, with the keys of the pending ones. */
  readonly onSettled: (pending: readonly string[]) => void;
}

/** Watches the first start of each server until it is ready or has failed, and measures the time. */
export class FirstStarts {
  /** Resolves when every server is ready or has failed. */
  readonly settled: Promise<void>;
  readonly #starts: ReadonlyMap<string, FirstStart>;
  readonly #now: () => number;
  readonly #onSettled: FirstStartsOptions['onSettled'];
  #resolve = () => {};

  constructor({ keys, now, onSettled }: FirstStartsOptions) {
    this.#now = now;
    this.#onSettled = onSettled;
    this.#starts = new Map(
      keys.map((key) => [key, { spawnedAt: undefined, readyAfterMs: undefined, isSettled: false }]),
    );
    this.settled = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    if (keys.length === 0) this.#resolve();
  }

  /** From spawn to ready, in milliseconds. */
  readyAfterMs(key: string): number | undefined {
    return this.#starts.get(key)?.readyAfterMs;
  }

  moved(key: string, { state, pid }: ChildSnapshot): void {
    const start = this.#starts.get(key);
    if (start === undefined || start.isSettled) return;
    if (state === 'starting' && pid !== undefined) start.spawnedAt ??= this.#now();
    if (state === 'ready' && start.spawnedAt !== undefined) start.readyAfterMs = this.#now() - start.spawnedAt;
    // While there is a pid, the last output of a failed server may not be read yet.
    const hasFailed = (state === 'parked' || state === 'backoff') && pid === undefined;
    if (state === 'ready' || hasFailed) this.#settle(start);
  }

  #settle(start: FirstStart): void {
    start.isSettled = true;
    const pending = [...this.#starts].flatMap(([key, { isSettled }]) => (isSettled ? [] : [key]));
    this.#onSettled(pending);
    if (pending.length === 0) this.#resolve();
  }
}
