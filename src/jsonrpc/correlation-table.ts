import type { IdKey } from './envelope-scanner.js';

/** Number of abandoned ids to remember, because a late answer differs from one to an unknown id. */
const LATE_IDS = 1024;
/** Time for which they are remembered. */
const LATE_MS = 10 * 60_000;

type StrayKind = 'late' | 'duplicate' | 'unknown';

/**
 * The requests sent to one peer that wait for an answer, by the id that the gateway gave them.
 *
 * Ids count up from 1, or from another first id, and are never reused, so a late answer cannot match another request.
 */
export class CorrelationTable<Request> {
  readonly #pending = new RequestsById<Request>();
  /** The ids abandoned before their answer came, and when; the oldest is forgotten first. */
  readonly #abandoned = new Map<number, number>();
  readonly #firstId: number;
  #lastId: number;

  constructor(firstId = 1) {
    this.#firstId = firstId;
    this.#lastId = firstId - 1;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Adds a request and returns its id. */
  add(request: Request): number {
    this.#lastId += 1;
    this.#pending.add(this.#lastId, request);
    return this.#lastId;
  }

  get(id: number): Request | undefined {
    return this.#pending.get(id);
  }

  /** Removes a request that was answered. */
  settle(id: number): Request | undefined {
    const request = this.#pending.get(id);
    if (request !== undefined) this.#pending.delete(id, request);
    return request;
  }

  /** All requests, oldest first. */
  all(): readonly Request[] {
    return this.#pending.all();
  }

  /**
   * Removes a request whose sender has given up, and remembers its id. `now` is in milliseconds; without
   * it, ids are only bounded in number.
   */
  abandon(id: number, now = 0): Request | undefined {
    const request = this.settle(id);
    if (request === undefined) return undefined;
    this.#abandoned.set(id, now);
    this.#forget(now);
    return request;
  }

  /** Classifies an answer whose id is not pending. Only the first answer to an abandoned id is late. */
  stray(id: number | undefined, now = 0): StrayKind {
    if (!Number.isInteger(id) || id === undefined || id < this.#firstId || id > this.#lastId) return 'unknown';
    this.#forget(now);
    return this.#abandoned.delete(id) ? 'late' : 'duplicate';
  }

  /** Removes all requests and returns them, oldest first. */
  drain(): Request[] {
    const requests = this.#pending.all();
    this.#pending.clear();
    this.#abandoned.clear();
    return requests;
  }

  #forget(now: number): void {
    for (const [id, at] of this.#abandoned) {
      if (this.#abandoned.size <= LATE_IDS && now - at < LATE_MS) return;
      this.#abandoned.delete(id);
    }
  }
}

/** A bound, because a task may never end, or end without telling the gateway. */
const MAX_LASTING = 256;

/** Requests that were answered with a task and whose senders still want its progress, by their ids. */
export class AnsweredRequests<Request> {
  readonly #requests = new Map<number, Request>();

  get size(): number {
    return this.#requests.size;
  }

  /** Adds a request. It stays until the returned function is called, or until 256 others were added after it. */
  add(id: number, request: Request): () => void {
    this.#requests.set(id, request);
    for (const oldest of this.#requests.keys()) {
      if (this.#requests.size <= MAX_LASTING) break;
      this.#requests.delete(oldest);
    }
    return () => this.#requests.delete(id);
  }

  get(id: number): Request | undefined {
    return this.#requests.get(id);
  }
}

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
