import type { IdKey } from '../../jsonrpc/id-key.js';
import type { LegacyExchange } from './legacy-exchange.js';

/** A power of two, and more than are in flight at once, mostly. */
const NEAR_PLACES = 256;

/**
 * A client's requests that were not answered yet, by their ids. On a pipe there is one of each id, while
 * each POST may bring the same.
 *
 * Most clients count, so the last bits of an id are a place that is free; only what finds none goes into a map. That
 * holds places and no exchanges: it is made anew all the time as requests come and go, and what an old version of it
 * holds outlives a collection or two.
 */
export class InFlightExchanges {
  /** Grows with the ids: of many sessions, most send little. */
  readonly #near: (LegacyExchange | undefined)[] = [];
  #nearSize = 0;
  readonly #places = new Map<IdKey, number>();
  readonly #exchanges: (LegacyExchange | undefined)[] = [];
  readonly #free: number[] = [];
  /** Those whose id another one had when they came, in the order in which they did. */
  readonly #namesakes = new Map<IdKey, LegacyExchange[]>();

  get size(): number {
    let size = this.#nearSize + this.#places.size;
    for (const { length } of this.#namesakes.values()) size += length;
    return size;
  }

  has(id: IdKey): boolean {
    return this.#nearBy(id)?.key === id || (this.#places.size > 0 && this.#places.has(id));
  }

  add(id: IdKey, exchange: LegacyExchange): void {
    if (typeof id === 'number' && this.#nearBy(id) === undefined) {
      this.#near[id % NEAR_PLACES] = exchange;
      this.#nearSize += 1;
      return;
    }
    if (this.#places.has(id)) {
      this.#namesakes.set(id, [...(this.#namesakes.get(id) ?? []), exchange]);
      return;
    }
    const place = this.#free.pop() ?? this.#exchanges.length;
    this.#exchanges[place] = exchange;
    this.#places.set(id, place);
  }

  /** `exchange` is one that was added under this id. */
  delete(id: IdKey, exchange: LegacyExchange): void {
    if (typeof id === 'number' && this.#nearBy(id) === exchange) {
      this.#near[id % NEAR_PLACES] = undefined;
      this.#nearSize -= 1;
      return;
    }
    const namesakes = this.#namesakes.size === 0 ? undefined : this.#namesakes.get(id);
    const place = this.#places.get(id);
    if (place === undefined) return;
    if (namesakes === undefined) {
      this.#exchanges[place] = undefined;
      this.#free.push(place);
      this.#places.delete(id);
      return;
    }
    const [first, ...rest] = this.#farWithId(id).filter((each) => each !== exchange);
    this.#exchanges[place] = first;
    if (rest.length === 0) this.#namesakes.delete(id);
    else this.#namesakes.set(id, rest);
  }

  /** All with this id. */
  withId(id: IdKey): readonly LegacyExchange[] {
    const near = this.#nearBy(id);
    return near?.key === id ? [near, ...this.#farWithId(id)] : this.#farWithId(id);
  }

  all(): readonly LegacyExchange[] {
    const near = this.#near.filter((exchange) => exchange !== undefined);
    return [...near, ...[...this.#places.keys()].flatMap((id) => this.#farWithId(id))];
  }

  /** What stands where this id would. */
  #nearBy(id: IdKey): LegacyExchange | undefined {
    return typeof id === 'number' ? this.#near[id % NEAR_PLACES] : undefined;
  }

  #farWithId(id: IdKey): readonly LegacyExchange[] {
    const place = this.#places.get(id);
    const first = place === undefined ? undefined : this.#exchanges[place];
    return first === undefined ? [] : [first, ...(this.#namesakes.get(id) ?? [])];
  }
}
