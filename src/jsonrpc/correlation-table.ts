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
  readonly #pending = new Map<number, Request>();
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
    this.#pending.set(this.#lastId, request);
    return this.#lastId;
  }

  get(id: number): Request | undefined {
    return this.#pending.get(id);
  }

  /** Removes a request that was answered. */
  settle(id: number): Request | undefined {
    const request = this.#pending.get(id);
    this.#pending.delete(id);
    return request;
  }

  /** All requests, oldest first. */
  all(): Iterable<Request> {
    return this.#pending.values();
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
}

/** A bound, because a task may never end, or end without telling the gateway. */
const MAX_LASTING = 256;

/** Requests that were answered with a task and whose senders still want its progress, by their ids. */
export class AnsweredRequests<Request> {
  readonly #requests = new Map<number, Request>();

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

/** Requests that wait for an answer, by the raw texts of their ids. Over HTTP, several requests of one client may have the same id. */
export class RequestsById<Request> {
  readonly #requests = new Map<string, Request[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(id: string): boolean {
    return this.#requests.has(id);
  }

  add(id: string, request: Request): void {
    this.#size += 1;
    const others = this.#requests.get(id);
    if (others === undefined) this.#requests.set(id, [request]);
    else others.push(request);
  }

  /** All requests with this id, oldest first. */
  withId(id: string): readonly Request[] {
    return this.#requests.get(id) ?? [];
  }

  /** Removes a request that was added under this id. */
  delete(id: string, request: Request): void {
    const requests = this.#requests.get(id);
    if (requests?.includes(request) !== true) return;
    this.#size -= 1;
    if (requests.length === 1) this.#requests.delete(id);
    else requests.splice(requests.indexOf(request), 1);
  }

  all(): Request[] {
    return [...this.#requests.values()].flat();
  }
}
