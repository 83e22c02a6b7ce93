import type { IdKey } from '../../jsonrpc/id-key.js';
import type { LegacyExchange } from './legacy-exchange.js';

/**
 * A client's requests that were not answered yet, by their ids. On a pipe there is one of each id, while
 * each POST may bring the same.
 *
 * The map holds places and no exchanges: it is made anew all the time as requests come and go, and what an old version
 * of it holds outlives a collection or two.
 */
export class RequestsInFlight {
  readonly #places = new Map<IdKey, number>();
  readonly #exchanges: (LegacyExchange | undefined)[] = [];
  readonly #free: number[] = [];
  /** Those whose id another one had when they came, in the order in which they did. */
  readonly #namesakes = new Map<IdKey, LegacyExchange[]>();

  get size(): number {
    let size = this.#places.size;
    for (const { length } of this.#namesakes.values()) size += length;
    return size;
  }

  has(id: IdKey): boolean {
    return this.#places.has(id);
  }

  add(id: IdKey, exchange: LegacyExchange): void {
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
    const namesakes = this.#namesakes.size === 0 ? undefined : this.#namesakes.get(id);
    const place = this.#places.get(id);
    if (place === undefined) return;
    if (namesakes === undefined) {
      this.#exchanges[place] = undefined;
      this.#free.push(place);
      this.#places.delete(id);
      return;
    }
    const [first, ...rest] = this.withId(id).filter((each) => each !== exchange);
    this.#exchanges[place] = first;
    if (rest.length === 0) this.#namesakes.delete(id);
    else this.#namesakes.set(id, rest);
  }

  /** All with this id. */
  withId(id: IdKey): readonly LegacyExchange[] {
    const place = this.#places.get(id);
    const first = place === undefined ? undefined : this.#exchanges[place];
    return first === undefined ? [] : [first, ...(this.#namesakes.get(id) ?? [])];
  }

  all(): readonly LegacyExchange[] {
    return [...this.#places.keys()].flatMap((id) => this.withId(id));
  }
}
