import type { Exchange } from '../downstream/port.js';
import type { Cancel, Clock } from '../wire/timing/clock.js';
import type { Backend } from './registry/backend.js';

interface QueuedView {
  readonly lists: { readonly isSettled: boolean };
  serve(exchange: Exchange): void;
}

interface StartupQueueOptions {
  readonly clock: Clock;
  /** Longest wait for servers that are still starting, in milliseconds. */
  readonly startupWaitMs: number;
  readonly backends: readonly Backend[];
}

/** Queues requests from the first one on, while first starts may change the answers. Queues none after that. */
export class StartupQueue {
  readonly #view: QueuedView;
  readonly #options: StartupQueueOptions;
  #queued: Exchange[] = [];
  #wait: 'not-begun' | 'running' | 'over' = 'not-begun';
  #cancel: Cancel = () => {};

  constructor(view: QueuedView, options: StartupQueueOptions) {
    this.#view = view;
    this.#options = options;
  }

  /** Queues the request. Returns false, and does nothing, if the request must be served now. */
  add(exchange: Exchange): boolean {
    if (this.#isOver) return false;
    this.#queued.push(exchange);
    if (this.#wait === 'running') return true;
    this.#wait = 'running';
    const { clock, startupWaitMs, backends } = this.#options;
    this.#cancel = clock.schedule(startupWaitMs, () => {
      for (const backend of backends) backend.missedFirstList();
      this.end();
    });
    return true;
  }

  /** Serves every queued request again after a start has ended. A request may be queued again. */
  startSettled(): void {
    if (this.#isOver) this.#cancel();
    this.#serveAll();
  }

  end(): void {
    this.#wait = 'over';
    this.#cancel();
    this.#serveAll();
  }

  /** Ends the wait, and returns the queued requests without serving them. */
  drain(): Exchange[] {
    this.#wait = 'over';
    this.#cancel();
    return this.#queued.splice(0);
  }

  get #isOver(): boolean {
    return this.#wait === 'over' || this.#view.lists.isSettled;
  }

  #serveAll(): void {
    for (const exchange of this.#queued.splice(0)) if (!exchange.isSettled) this.#view.serve(exchange);
  }
}
