/** How many abandoned ids are remembered, so that a late answer is told from a nonsensical one. */
const LATE_IDS = 1024;

export type StrayKind = 'late' | 'duplicate' | 'unknown';

/**
 * The requests sent to one peer that wait for an answer, by the id we gave them.
 *
 * Ids count up from 1 and are never used again, so an answer that comes too late can meet no other request.
 */
export class PendingRequests<Request> {
  readonly #pending = new Map<number, Request>();
  /** Given up before the answer came; the oldest is forgotten first. */
  readonly #abandoned = new Set<number>();
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

  /** Nobody waits for the answer any more; when it comes after all, it is late. */
  abandon(id: number): Request | undefined {
    const request = this.settle(id);
    if (request === undefined) return undefined;
    this.#abandoned.add(id);
    if (this.#abandoned.size > LATE_IDS) {
      for (const oldest of this.#abandoned) {
        this.#abandoned.delete(oldest);
        break;
      }
    }
    return request;
  }

  /** What an answer is whose id is not pending; a late one is so only once. */
  stray(id: number | undefined): StrayKind {
    if (!Number.isInteger(id) || id === undefined || id < 1 || id > this.#lastId) return 'unknown';
    return this.#abandoned.delete(id) ? 'late' : 'duplicate';
  }

  /** Empties the map and returns what was in it, oldest first. */
  drain(): Request[] {
    const requests = [...this.#pending.values()];
    this.#pending.clear();
    this.#abandoned.clear();
    return requests;
  }

  values(): IterableIterator<Request> {
    return this.#pending.values();
  }
}
