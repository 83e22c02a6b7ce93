/** How many abandoned ids are remembered, to tell a late answer from one to an unknown id. */
const LATE_IDS = 1024;
/** How long they are remembered. */
const LATE_MS = 10 * 60_000;

/** More than are usually in flight at once. */
const RECENT_IDS = 256;

type StrayKind = 'late' | 'duplicate' | 'unknown';

/**
 * The requests sent to one peer that wait for an answer, by the id that the gateway gave them.
 *
 * Ids count up from 1, or from another first id, and are never reused, so a late answer cannot match another request.
 */
export class CorrelationTable<Request> {
  /**
   * The latest requests, by their ids modulo 256. A map reallocates its table every few requests as entries come and
   * go, and an old table keeps its requests alive for a collection or two.
   */
  #recent: (Request | undefined)[] = [];
  /**
   * The id of the last request at each index of `#recent`. It grows with the ids, because most peers get few requests.
   */
  readonly #recentIds: number[] = [];
  /** The requests whose index in `#recent` a later request took, oldest first. */
  readonly #older = new Map<number, Request>();
  #size = 0;
  /** The ids abandoned before their answer came, and when; the oldest is forgotten first. */
  readonly #abandoned = new Map<number, number>();
  readonly #firstId: number;
  #lastId: number;

  constructor(firstId = 1) {
    this.#firstId = firstId;
    this.#lastId = firstId - 1;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a request and returns its id. */
  add(request: Request): number {
    this.#lastId += 1;
    const id = this.#lastId;
    const index = id % RECENT_IDS;
    const overtaken = this.#recent[index];
    if (overtaken !== undefined) this.#older.set(this.#recentIds[index] ?? 0, overtaken);
    this.#recent[index] = request;
    this.#recentIds[index] = id;
    this.#size += 1;
    return id;
  }

  get(id: number): Request | undefined {
    const index = id % RECENT_IDS;
    return this.#recentIds[index] === id ? this.#recent[index] : this.#older.get(id);
  }

  /** Removes a request that was answered. */
  settle(id: number): Request | undefined {
    const request = this.get(id);
    if (request === undefined) return undefined;
    if (this.#recentIds[id % RECENT_IDS] === id) this.#recent[id % RECENT_IDS] = undefined;
    else this.#older.delete(id);
    this.#size -= 1;
    return request;
  }

  /**
   * Removes a request whose answer nobody waits for any more, and remembers its id. `now` is in milliseconds; without
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
    const requests = [...this.values()];
    this.#recent = [];
    this.#older.clear();
    this.#abandoned.clear();
    this.#size = 0;
    return requests;
  }

  #forget(now: number): void {
    for (const [id, at] of this.#abandoned) {
      if (this.#abandoned.size <= LATE_IDS && now - at < LATE_MS) return;
      this.#abandoned.delete(id);
    }
  }

  /** All requests, oldest first. */
  *values(): IterableIterator<Request> {
    yield* this.#older.values();
    for (let id = Math.max(this.#firstId, this.#lastId - RECENT_IDS + 1); id <= this.#lastId; id += 1) {
      const request = this.#recent[id % RECENT_IDS];
      if (request !== undefined) yield request;
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
