import type { ListKind } from '../mcp/lists.js';
import type { Cancel, Clock } from '../timing/clock.js';
import type { Exchange } from './exchange.js';

export interface HeldListsOptions {
  readonly clock: Clock;
  /** How long the first list asked for waits, in milliseconds. */
  readonly waitMs: number;
  /** Whether every server's first start has ended, one way or the other. */
  readonly isReady: () => boolean;
  readonly answer: (exchange: Exchange, kind: ListKind) => void;
}

/**
 * Lists asked for while servers start for the first time: they wait for them, all the same while, and no list asked for
 * later ever waits.
 */
export class HeldLists {
  readonly #options: HeldListsOptions;
  #held: { readonly exchange: Exchange; readonly kind: ListKind }[] = [];
  #areGivenOut = false;
  #wait: 'not-begun' | 'running' | 'over' = 'not-begun';
  #cancel: Cancel = () => {};

  constructor(options: HeldListsOptions) {
    this.#options = options;
  }

  /** Whether clients may have seen lists. */
  get areGivenOut(): boolean {
    return this.#areGivenOut;
  }

  serve(exchange: Exchange, kind: ListKind): void {
    if (this.#isOver) {
      this.#areGivenOut = true;
      this.#options.answer(exchange, kind);
      return;
    }
    this.#held.push({ exchange, kind });
    if (this.#wait === 'running') return;
    this.#wait = 'running';
    this.#cancel = this.#options.clock.schedule(this.#options.waitMs, () => this.end());
  }

  /** Some start has ended; if it was the last one, there is nothing left to wait for. */
  startSettled(): void {
    if (this.#isOver) this.#release();
  }

  /** Nothing is waited for any more. */
  end(): void {
    this.#wait = 'over';
    this.#release();
  }

  get #isOver(): boolean {
    return this.#wait === 'over' || this.#options.isReady();
  }

  #release(): void {
    this.#areGivenOut = true;
    this.#cancel();
    for (const { exchange, kind } of this.#held.splice(0)) this.#options.answer(exchange, kind);
  }
}
