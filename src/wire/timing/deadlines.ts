import type { Cancel, Clock } from './clock.js';

/** Something with a deadline, which may move to a later time. */
export interface Due {
  /** Milliseconds on the clock. */
  dueAt: number;
  /** Index among the watched items. Only `Deadlines` changes it. */
  index?: number | undefined;
}

/**
 * Watches many deadlines with one timer.
 *
 * A call that is answered in time costs no timer: the one timer stays armed for the earliest deadline known when it was
 * set, and is armed again when it fires. It ends when it fires and nothing is watched, or at `close`.
 */
export class Deadlines<Item extends Due> {
  readonly #clock: Clock;
  readonly #onDue: (item: Item) => void;
  /** Watched items in no order. A set reallocates its table as calls come and go, and each old table keeps its calls alive for a while. */
  #items: Item[] = [];
  #cancel: Cancel | undefined;
  #armedFor = 0;

  /** `onDue` is called for each item whose deadline has passed, after the watch of the item has ended. */
  constructor(clock: Clock, onDue: (item: Item) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  watch(item: Item): void {
    if (item.index === undefined) item.index = this.#items.push(item) - 1;
    if (this.#cancel === undefined || item.dueAt < this.#armedFor) this.#arm(item.dueAt);
  }

  unwatch(item: Item): void {
    const { index } = item;
    const last = this.#items.at(-1);
    if (index === undefined || last === undefined) return;
    this.#items[index] = last;
    last.index = index;
    this.#items.pop();
    item.index = undefined;
  }

  close(): void {
    for (const item of this.#items) item.index = undefined;
    this.#items = [];
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
    // In the order of their deadlines.
    due.sort((a, b) => a.dueAt - b.dueAt);
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next);
    for (const item of due) this.#expire(item, now);
  }

  /** The items before this one may have unwatched it, or given it more time. */
  #expire(item: Item, now: number): void {
    if (item.index === undefined) return;
    if (item.dueAt > now) {
      this.watch(item);
      return;
    }
    this.unwatch(item);
    this.#onDue(item);
  }
}
