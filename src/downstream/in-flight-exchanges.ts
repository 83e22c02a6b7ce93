import type { IdKey } from '../jsonrpc/id-key.js';

/** A power of two, and more than most clients have in flight at once. */
const NEAR_PLACES = 256;

/**
 * A client's unanswered requests by their ids, which the client chose. On a pipe each id is unique; over HTTP several
 * POSTs may bring the same id.
 *
 * Most clients count their requests, so the last bits of an id are a free index of an array. Other ids go
 * into a map, which holds the indexes of a second array instead of exchanges: the engine rebuilds a map as entries come
 * and go, and the old versions would keep the exchanges alive for a garbage collection or two. The ids are not allotted
 * here, so a `CorrelationTable`, which counts them itself, cannot hold them.
 */
export class InFlightExchanges<T extends { readonly key: IdKey }> {
  /** Grows with the ids, since most of many sessions send few requests. */
  readonly #near: (T | undefined)[] = [];
  #nearSize = 0;
  readonly #indexes = new Map<IdKey, number>();
  readonly #exchanges: (T | undefined)[] = [];
  readonly #free: number[] = [];
  /** Requests whose id was in use when they came, in that order. */
  readonly #sameId = new Map<IdKey, T[]>();

  get size(): number {
    let size = this.#nearSize + this.#indexes.size;
    for (const { length } of this.#sameId.values()) size += length;
    return size;
  }

  has(id: IdKey): boolean {
    return this.#nearBy(id)?.key === id || (this.#indexes.size > 0 && this.#indexes.has(id));
  }

  add(id: IdKey, exchange: T): void {
    if (typeof id === 'number' && this.#nearBy(id) === undefined) {
      this.#near[id % NEAR_PLACES] = exchange;
      this.#nearSize += 1;
      return;
    }
    if (this.#indexes.has(id)) {
      this.#sameId.set(id, [...(this.#sameId.get(id) ?? []), exchange]);
      return;
    }
    const index = this.#free.pop() ?? this.#exchanges.length;
    this.#exchanges[index] = exchange;
    this.#indexes.set(id, index);
  }

  /** Removes an exchange that was added under this id. */
  delete(id: IdKey, exchange: T): void {
    if (typeof id === 'number' && this.#nearBy(id) === exchange) {
      this.#near[id % NEAR_PLACES] = undefined;
      this.#nearSize -= 1;
      return;
    }
    const sameId = this.#sameId.size === 0 ? undefined : this.#sameId.get(id);
    const index = this.#indexes.get(id);
    if (index === undefined) return;
    if (sameId === undefined) {
      this.#exchanges[index] = undefined;
      this.#free.push(index);
      this.#indexes.delete(id);
      return;
    }
    const [first, ...rest] = this.#farWithId(id).filter((each) => each !== exchange);
    this.#exchanges[index] = first;
    if (rest.length === 0) this.#sameId.delete(id);
    else this.#sameId.set(id, rest);
  }

  /** All exchanges with this id. */
  withId(id: IdKey): readonly T[] {
    const near = this.#nearBy(id);
    return near?.key === id ? [near, ...this.#farWithId(id)] : this.#farWithId(id);
  }

  all(): readonly T[] {
    const near = this.#near.filter((exchange) => exchange !== undefined);
    return [...near, ...[...this.#indexes.keys()].flatMap((id) => this.#farWithId(id))];
  }

  /** The exchange at the array index of this id, which may have another id. */
  #nearBy(id: IdKey): T | undefined {
    return typeof id === 'number' ? this.#near[id % NEAR_PLACES] : undefined;
  }

  #farWithId(id: IdKey): readonly T[] {
    const index = this.#indexes.get(id);
    const first = index === undefined ? undefined : this.#exchanges[index];
    return first === undefined ? [] : [first, ...(this.#sameId.get(id) ?? [])];
  }
}
