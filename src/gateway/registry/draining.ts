import type { Exchange } from '../../downstream/port.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import type { Backend, RunningBackend } from './backend.js';

/** Time for the calls in flight on a retired process to finish, in milliseconds. Then the process is stopped. */
const DRAIN_MS = 5_000;

/** Stops the processes of retired backends, whose calls in flight get 5 s to finish. */
export class Draining {
  readonly #clock: Clock;
  /** `end` stops the process now, and `gone` resolves when it is gone. */
  readonly #drains = new Map<Backend, { readonly gone: Promise<void>; readonly end: () => void }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts to drain a backend. Calls that were not sent yet go to `redirect`. */
  begin({ backend, end }: RunningBackend, redirect: (exchange: Exchange) => void): void {
    const { dispatcher } = backend;
    let cancel: Cancel = () => {};
    let settle = () => {};
    const gone = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const redirectUnsent = () => {
      for (const exchange of dispatcher.admission.takeUnsent()) redirect(exchange);
    };
    let isEnding = false;
    const finish = () => {
      if (isEnding) return;
      isEnding = true;
      cancel();
      redirectUnsent();
      backend.close();
      void end().then(() => {
        this.#drains.delete(backend);
        settle();
      });
    };
    this.#drains.set(backend, { gone, end: finish });
    redirectUnsent();
    cancel = this.#clock.schedule(DRAIN_MS, finish);
    // The last call leaves the table before its answer is passed on, so a later microtask stops the process.
    dispatcher.inFlightCalls.whenIdle(() => queueMicrotask(() => dispatcher.inFlightCalls.size === 0 && finish()));
  }

  /** Ends the drain of a backend, because its process has ended and no other process may start. */
  detached(backend: Backend): void {
    this.#drains.get(backend)?.end();
  }

  get backends(): Iterable<Backend> {
    return this.#drains.keys();
  }

  /** Resolves when every retired process of this server is gone. */
  async untilGone(key: string): Promise<void> {
    const all = [...this.#drains].filter(([backend]) => backend.key === key);
    await Promise.all(all.map(([, { gone }]) => gone));
  }

  /** Closes the backends that are being drained, and stops their processes now. */
  close(): void {
    for (const { end } of this.#drains.values()) end();
  }
}
