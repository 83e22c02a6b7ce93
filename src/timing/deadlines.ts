import type { Cancel, Clock } from './clock.js';

/** Something that must end by a time of its own, which may move later while it runs. */
export interface Due {
  /** Milliseconds on the clock. */
  dueAt: number;
}

/**
 * Watches many deadlines with one timer.
 *
 * A call that is answered in time costs no timer at all: the one timer stays armed for the earliest deadline known
 * when it was set, and looks again when it fires. It is gone one period after the last watched thing, or at `close`.
 */
export class Deadlines<Item extends Due> {
  readonly #clock: Clock;
  readonly #onDue: (item: Item) => void;
  readonly #items = new Set<Item>();
  #cancel: Cancel | undefined;
  #armedFor = 0;

  /** `onDue` is called for each item past its time, after the item has left. */
  constructor(clock: Clock, onDue: (item: Item) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  watch(item: Item): void {
    this.#items.add(item);
    if (this.#cancel === undefined || item.dueAt < this.#armedFor) this.#arm(item.dueAt);
  }

  unwatch(item: Item): void {
    this.#items.delete(item);
  }

  close(): void {
    this.#items.clear();
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(at: number): void {
    this.#cancel?.();
    this.#armedFor = at;
    this.#cancel = this.#clock.schedule(Math.max(0, at - this.#clock.now()), () => this.#look());
  }

  #look(): void {
    this.#cancel = undefined;
    const now = this.#clock.now();
    let next = Number.POSITIVE_INFINITY;
    const due: Item[] = [];
    for (const item of this.#items) {
      if (item.dueAt <= now) due.push(item);
      else next = Math.min(next, item.dueAt);
    }
    for (const item of due) this.#items.delete(item);
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next);
    for (const item of due) this.#onDue(item);
  }
}
