/** How many abandoned ids are remembered, so that a late answer is told from a nonsensical one. */
const LATE_IDS = 1024;
/** And for how long: what comes later than that is as good as never. */
const LATE_MS = 10 * 60_000;

export type StrayKind = 'late' | 'duplicate' | 'unknown';

/**
 * The requests sent to one peer that wait for an answer, by the id we gave them.
 *
 * Ids count up from 1 and are never used again, so an answer that comes too late can meet no other request.
 */
export class PendingRequests<Request> {
  readonly #pending = new Map<number, Request>();
  /** Given up before the answer came, and when; the oldest is forgotten first. */
  readonly #abandoned = new Map<number, number>();
  #lastId = 0;

  get size(): number {
    return this.#pending.size;
  }

  /** Takes the request in and returns its id. */
  add(request: Request): number {
    this.#lastId += 1;
    this.#pending.set(this.#lastId, request);
    return this.#lastId;
  }

  get(id: number): Request | undefined {
    return this.#pending.get(id);
  }

  /** The request was answered: it leaves, and its id with it. */
  settle(id: number): Request | undefined {
    const request = this.#pending.get(id);
    if (request !== undefined) this.#pending.delete(id);
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

  /** Empties the map and returns what was in it, oldest first. */
  drain(): Request[] {
    const requests = [...this.#pending.values()];
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

  values(): IterableIterator<Request> {
    return this.#pending.values();
  }
}
