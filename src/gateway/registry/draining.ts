import type { Exchange } from '../../downstream/port.js';
import type { Cancel, Clock } from '../../timing/clock.js';
import type { Backend } from './backend.js';
import type { RunningBackend } from './backend-pool.js';

/** How long what a process is at work on may take until the process is ended all the same. */
const DRAIN_MS = 5_000;

interface Drain {
  readonly gone: Promise<void>;
  /** Ends the process now. */
  end(): void;
}

/**
 * Backends that no client is given any more: what their processes are at work on may come to its end, for a while, and
 * then the processes are ended.
 */
export class Draining {
  readonly #clock: Clock;
  readonly #drains = new Map<Backend, Drain>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Gives `elsewhere` what was not sent yet. */
  begin({ backend, end }: RunningBackend, elsewhere: (exchange: Exchange) => void): void {
    const { dispatcher } = backend;
    let cancel: Cancel = () => {};
    let settle = () => {};
    const gone = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const handOver = () => {
      for (const exchange of dispatcher.handOver()) elsewhere(exchange);
    };
    let isEnding = false;
    const finish = () => {
      if (isEnding) return;
      isEnding = true;
      cancel();
      handOver();
      backend.close();
      void end().then(() => {
        this.#drains.delete(backend);
        settle();
      });
    };
    this.#drains.set(backend, { gone, end: finish });
    handOver();
    cancel = this.#clock.schedule(DRAIN_MS, finish);
    // The last answer is still being handed on when it is known to be the last one.
    dispatcher.inFlightCalls.whenIdle(() => queueMicrotask(() => dispatcher.inFlightCalls.size === 0 && finish()));
  }

  /** Its process is gone, and there shall be no other. */
  detached(backend: Backend): void {
    this.#drains.get(backend)?.end();
  }

  /** Those that this has to do with and that are not gone yet. */
  get backends(): Iterable<Backend> {
    return this.#drains.keys();
  }

  /** Resolves when no process of this server is left that is being drained or ended. */
  async gone(key: string): Promise<void> {
    const all = [...this.#drains].filter(([backend]) => backend.key === key);
    await Promise.all(all.map(([, { gone }]) => gone));
  }

  /** Whoever calls this ends the processes. */
  close(): void {
    for (const { end } of this.#drains.values()) end();
  }
}
