import type { Exchange } from '../downstream/port.js';
import type { Cancel, Clock } from '../timing/clock.js';

export interface StartupQueueOptions {
  readonly clock: Clock;
  /** How long the first request that waits does so, in milliseconds. */
  readonly waitMs: number;
  /** Whether every server's first start has ended, one way or the other. */
  readonly isReady: () => boolean;
  /** Whether nothing is waited for from the beginning. */
  readonly isOver?: boolean;
  /** Serves a request that has waited. */
  readonly serve: (exchange: Exchange) => void;
}

/**
 * Requests that came while servers started for the first time, and that a server which is not there yet may change the
 * answer of: they wait for them, all the same while, and no request that comes later ever waits.
 */
export class StartupQueue {
  readonly #options: StartupQueueOptions;
  #held: Exchange[] = [];
  #wait: 'not-begun' | 'running' | 'over' = 'not-begun';
  #cancel: Cancel = () => {};

  constructor(options: StartupQueueOptions) {
    this.#options = options;
    if (options.isOver === true) this.#wait = 'over';
  }

  /** Holds the request if there is anything to wait for; returns whether. */
  hold(exchange: Exchange): boolean {
    if (this.#isOver) return false;
    this.#held.push(exchange);
    if (this.#wait === 'running') return true;
    this.#wait = 'running';
    this.#cancel = this.#options.clock.schedule(this.#options.waitMs, () => this.end());
    return true;
  }

  /** Some start has ended: a request may have what it waited for, or it is held again. */
  startSettled(): void {
    if (this.#isOver) this.#cancel();
    this.#serveAll();
  }

  /** Nothing is waited for any more. */
  end(): void {
    this.#wait = 'over';
    this.#cancel();
    this.#serveAll();
  }

  /** What is held is another's from now on. */
  handOver(): Exchange[] {
    this.#wait = 'over';
    this.#cancel();
    return this.#held.splice(0);
  }

  get #isOver(): boolean {
    return this.#wait === 'over' || this.#options.isReady();
  }

  #serveAll(): void {
    for (const exchange of this.#held.splice(0)) if (!exchange.isSettled) this.#options.serve(exchange);
  }
}
