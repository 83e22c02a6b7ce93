import type { IdKey } from './envelope.js';

/** A power of two, and more requests than are usually in flight at once. */
const RECENT = 256;

/**
 * Requests that wait for an answer, by their ids. Over HTTP, several requests of one client may have the same id.
 *
 * Most peers count their requests, so the last bits of an id are a free index of an array, which holds the latest requests.
 * Earlier requests and requests with other ids are in a map. A map of all requests would reallocate its table every few
 * requests, and an old table keeps its requests alive for a garbage collection or two.
 */
export class RequestsById<Request> {
  /** Grows with the ids, because most peers send few requests. */
  readonly #recent: (Request | undefined)[] = [];
  /** The id of the last request at each index of `#recent`. */
  readonly #recentIds: number[] = [];
  readonly #others = new Map<IdKey, Request[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(id: IdKey): boolean {
    return this.#recentWith(id) !== undefined || this.#others.has(id);
  }

  add(id: IdKey, request: Request): void {
    this.#size += 1;
    if (typeof id !== 'number') {
      this.#addOther(id, request);
      return;
    }
    const index = id % RECENT;
    const earlier = this.#recent[index];
    if (earlier !== undefined) this.#addOther(this.#recentIds[index] ?? 0, earlier);
    this.#recent[index] = request;
    this.#recentIds[index] = id;
  }

  /** The latest request with this id. */
  get(id: IdKey): Request | undefined {
    return this.#recentWith(id) ?? this.#others.get(id)?.at(-1);
  }

  /** All requests with this id, oldest first. */
  withId(id: IdKey): readonly Request[] {
    const recent = this.#recentWith(id);
    const others = this.#others.get(id) ?? [];
    return recent === undefined ? others : [...others, recent];
  }

  /** Removes a request that was added under this id. */
  delete(id: IdKey, request: Request): void {
    if (typeof id === 'number' && this.#recentWith(id) === request) {
      this.#recent[id % RECENT] = undefined;
      this.#size -= 1;
      return;
    }
    const others = this.#others.get(id);
    if (others?.includes(request) !== true) return;
    this.#size -= 1;
    if (others.length === 1) this.#others.delete(id);
    else others.splice(others.indexOf(request), 1);
  }

  /** All requests: oldest first, if the peer counts its ids up. */
  all(): Request[] {
    const recent = this.#recent.flatMap((request, index) => (request === undefined ? [] : [{ request, index }]));
    recent.sort((one, other) => (this.#recentIds[one.index] ?? 0) - (this.#recentIds[other.index] ?? 0));
    return [...[...this.#others.values()].flat(), ...recent.map(({ request }) => request)];
  }

  clear(): void {
    this.#recent.length = 0;
    this.#others.clear();
    this.#size = 0;
  }

  #recentWith(id: IdKey): Request | undefined {
    if (typeof id !== 'number') return undefined;
    const index = id % RECENT;
    return this.#recentIds[index] === id ? this.#recent[index] : undefined;
  }

  #addOther(id: IdKey, request: Request): void {
    const others = this.#others.get(id);
    if (others === undefined) this.#others.set(id, [request]);
    else others.push(request);
  }
}
