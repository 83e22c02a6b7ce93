export interface InstallSlotsOptions {
  /** How many installations may run at once. */
  readonly limit: number;
  /** Takes the store lock; resolves with the function that releases it. */
  readonly acquire: (signal: AbortSignal) => Promise<() => Promise<void>>;
}

/** The store lock, while at least one installation of this process runs or waits for the lock. */
interface Lease {
  readonly held: Promise<() => Promise<void>>;
  /** Nobody waits for the lock any more. */
  readonly abort: AbortController;
}

/**
 * Limits how many installations of this process run at once, first come, first served, all under one lease of the store
 * lock. Two installations of the same package never run at once: the second one finds what the first one has installed.
 */
export class InstallSlots {
  readonly #options: InstallSlotsOptions;
  /** Names of packages. */
  readonly #running = new Set<string>();
  /** In order of arrival. */
  readonly #waiting = new Set<{ readonly name: string; readonly begin: () => void }>();
  #lease: Lease | undefined;

  constructor(options: InstallSlotsOptions) {
    this.#options = options;
  }

  /** Waits for a slot and for the store lock; resolves with the function that returns the slot. Rejects when `signal` is aborted. */
  async enter(name: string, signal: AbortSignal): Promise<() => Promise<void>> {
    await this.#slot(name, signal);
    const lease = this.#lease ?? this.#newLease();
    try {
      await untilAborted(lease.held, signal);
    } catch (error) {
      await this.#leave(name);
      throw error;
    }
    return () => this.#leave(name);
  }

  async #slot(name: string, signal: AbortSignal): Promise<void> {
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const waiting = { name, begin };
    this.#waiting.add(waiting);
    this.#fill();
    try {
      await untilAborted(begun, signal);
    } catch (error) {
      // The slot may have come in the same turn as the end of the wait.
      if (!this.#waiting.delete(waiting)) await this.#leave(name);
      throw error;
    }
  }

  #fill(): void {
    for (const waiting of this.#waiting) {
      if (this.#running.size >= this.#options.limit) return;
      if (this.#running.has(waiting.name)) continue;
      this.#waiting.delete(waiting);
      this.#running.add(waiting.name);
      waiting.begin();
    }
  }

  #newLease(): Lease {
    const abort = new AbortController();
    this.#lease = { held: this.#options.acquire(abort.signal), abort };
    return this.#lease;
  }

  async #leave(name: string): Promise<void> {
    this.#running.delete(name);
    this.#fill();
    if (this.#running.size > 0) return;
    const lease = this.#lease;
    this.#lease = undefined;
    lease?.abort.abort();
    const release = await lease?.held.catch(() => undefined);
    await release?.();
  }
}

/** The value of `promise`, unless `signal` is aborted before. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
  });
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
