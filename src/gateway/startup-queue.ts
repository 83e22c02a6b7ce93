import type { Exchange } from '../downstream/port.js';
import type { Cancel, Clock } from '../timing/clock.js';

export interface StartupQueueOptions {
  readonly clock: Clock;
  /** How long the first queued request waits, in milliseconds. */
  readonly waitMs: number;
  /** Whether the first start of every server has ended, successfully or not. */
  readonly isReady: () => boolean;
  /** Whether no request is queued at all. */
  readonly isOver?: boolean;
  /** Serves a queued request. */
  readonly serve: (exchange: Exchange) => void;
  /** Called when the wait was too long for a server. */
  readonly onTimeout?: () => void;
}

/**
 * Queues requests while servers start for the first time and may change the answers. The wait begins with the first
 * queued request. When it is over, no request is ever queued again.
 */
export class StartupQueue {
  readonly #options: StartupQueueOptions;
  #queued: Exchange[] = [];
  #wait: 'not-begun' | 'running' | 'over' = 'not-begun';
  #cancel: Cancel = () => {};

  constructor(options: StartupQueueOptions) {
    this.#options = options;
    if (options.isOver === true) this.#wait = 'over';
  }

  /** Queues the request if a server is still starting. Returns whether it was queued. */
  add(exchange: Exchange): boolean {
    if (this.#isOver) return false;
    this.#queued.push(exchange);
    if (this.#wait === 'running') return true;
    this.#wait = 'running';
    this.#cancel = this.#options.clock.schedule(this.#options.waitMs, () => {
      this.#options.onTimeout?.();
      this.end();
    });
    return true;
  }

  /** A start has ended. Every queued request is served again, and may be queued again. */
  startSettled(): void {
    if (this.#isOver) this.#cancel();
    this.#serveAll();
  }

  /** Ends the wait and serves every queued request. */
  end(): void {
    this.#wait = 'over';
    this.#cancel();
    this.#serveAll();
  }

  /** Ends the wait and returns the queued requests. */
  drain(): Exchange[] {
    this.#wait = 'over';
    this.#cancel();
    return this.#queued.splice(0);
  }

  get #isOver(): boolean {
    return this.#wait === 'over' || this.#options.isReady();
  }

  #serveAll(): void {
    for (const exchange of this.#queued.splice(0)) if (!exchange.isSettled) this.#options.serve(exchange);
  }
}
