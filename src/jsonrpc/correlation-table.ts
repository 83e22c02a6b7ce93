/** How many abandoned ids are remembered, so that a late answer is told from a nonsensical one. */
const LATE_IDS = 1024;
/** And for how long: what comes later than that is as good as never. */
const LATE_MS = 10 * 60_000;

/** More than are under way at once, mostly. */
const RECENT_IDS = 256;

export type StrayKind = 'late' | 'duplicate' | 'unknown';

/**
 * The requests sent to one peer that wait for an answer, by the id we gave them.
 *
 * Ids count up from 1 and are never used again, so an answer that comes too late can meet no other request.
 */
export class CorrelationTable<Request> {
  /**
   * By the last bits of their ids. A map is made anew every few requests as they come and go, and what an old version of
   * it held outlives a collection or two.
   */
  #recent: (Request | undefined)[] = [];
  /** What each place of `#recent` is or was last taken by. It grows with the ids, as most peers are asked little or nothing. */
  readonly #recentIds: number[] = [];
  /** Those whose place a later one took, oldest first. */
  readonly #older = new Map<number, Request>();
  #size = 0;
  /** Given up before the answer came, and when; the oldest is forgotten first. */
  readonly #abandoned = new Map<number, number>();
  #lastId = 0;

  get size(): number {
    return this.#size;
  }

  /** Takes the request in and returns its id. */
  add(request: Request): number {
    this.#lastId += 1;
    const id = this.#lastId;
    const place = id % RECENT_IDS;
    const overtaken = this.#recent[place];
    if (overtaken !== undefined) this.#older.set(this.#recentIds[place] ?? 0, overtaken);
    this.#recent[place] = request;
    this.#recentIds[place] = id;
    this.#size += 1;
    return id;
  }

  get(id: number): Request | undefined {
    const place = id % RECENT_IDS;
    return this.#recentIds[place] === id ? this.#recent[place] : this.#older.get(id);
  }

  /** The request was answered: it leaves, and its id with it. */
  settle(id: number): Request | undefined {
    const request = this.get(id);
    if (request === undefined) return undefined;
    if (this.#recentIds[id % RECENT_IDS] === id) this.#recent[id % RECENT_IDS] = undefined;
    else this.#older.delete(id);
    this.#size -= 1;
    return request;
  }

  /** Nobody waits for the answer any more; when it comes after all, it is late. `now` is in milliseconds; without it, ids age by their number. */
  abandon(id: number, now = 0): Request | undefined {
    const request = this.settle(id);
    if (request === undefined) return undefined;
    this.#abandoned.set(id, now);
    this.#forget(now);
    return request;
  }

  /** What an answer is whose id is not pending; a late one is so only once. */
  stray(id: number | undefined, now = 0): StrayKind {
    if (!Number.isInteger(id) || id === undefined || id < 1 || id > this.#lastId) return 'unknown';
    this.#forget(now);
    return this.#abandoned.delete(id) ? 'late' : 'duplicate';
  }

  /** Lets go of all and returns them, oldest first. */
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

  /** Oldest first. */
  *values(): IterableIterator<Request> {
    yield* this.#older.values();
    for (let id = Math.max(1, this.#lastId - RECENT_IDS + 1); id <= this.#lastId; id += 1) {
      const request = this.#recent[id % RECENT_IDS];
      if (request !== undefined) yield request;
    }
  }
}
