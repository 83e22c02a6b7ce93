import { isNumber, readText, type Span, stringAt } from '../json/json-text.js';

/** Number of abandoned ids to remember, because a late answer differs from one to an unknown id. */
const LATE_IDS = 1024;
/** Time for which they are remembered. */
const LATE_MS = 10 * 60_000;

/** Buckets of a table of requests. A power of two, and more than are usually in flight at once. */
const BUCKETS = 256;

/**
 * Requests by their ids. Several may have the same id.
 *
 * A `Map` reallocates its table as requests come and go, and an old table keeps its requests alive for several collections: with
 * 64 calls in flight, that takes a quarter of the time of each call. The arrays of these buckets stay.
 */
class RequestTable<Id extends number | string, Request> {
  readonly #buckets: { readonly id: Id; readonly request: Request; readonly order: number }[][] = [];
  #size = 0;
  #added = 0;

  get size(): number {
    return this.#size;
  }

  add(id: Id, request: Request): void {
    const bucket = bucketOf(id);
    this.#added += 1;
    this.#size += 1;
    const entry = { id, request, order: this.#added };
    const entries = this.#buckets[bucket];
    if (entries === undefined) this.#buckets[bucket] = [entry];
    else entries.push(entry);
  }

  /** The oldest request with this id. */
  get(id: Id): Request | undefined {
    for (const entry of this.#buckets[bucketOf(id)] ?? NONE) if (entry.id === id) return entry.request as Request;
    return undefined;
  }

  /** Removes a request that was added under this id. Returns whether it was there. */
  delete(id: Id, request: Request): boolean {
    const entries = this.#buckets[bucketOf(id)] ?? [];
    for (let index = 0; index < entries.length; index += 1) {
      if (entries[index]?.id !== id || entries[index]?.request !== request) continue;
      if (entries.length === 1) entries.pop();
      else entries.splice(index, 1);
      this.#size -= 1;
      return true;
    }
    return false;
  }

  /** All requests, or those with one id, oldest first. */
  all(id?: Id): Request[] {
    const entries = id === undefined ? this.#buckets.flat() : (this.#buckets[bucketOf(id)] ?? []);
    const wanted = entries.filter((entry) => id === undefined || entry?.id === id);
    return wanted.sort((one, other) => one.order - other.order).map(({ request }) => request);
  }

  clear(): void {
    this.#buckets.length = 0;
    this.#size = 0;
  }
}

const NONE: readonly { readonly id: unknown; readonly request: unknown }[] = [];

/** Ids are numbers that count up, or texts that mostly end in such a number. */
function bucketOf(id: number | string): number {
  if (typeof id === 'number') return id % BUCKETS;
  const { length } = id;
  return (
    ((id.charCodeAt(length - 1) | 0) + (id.charCodeAt(length - 2) | 0) * 10 + (id.charCodeAt(length - 3) | 0) * 100) %
    BUCKETS
  );
}

/**
 * Reads an id, or a progress token, that the gateway has given. Accepts it in another JSON form (`1.0`, `"1"`), because the gateway gives
 * whole numbers only, each once, so that it can mean no other request. Returns `undefined` for a token that names no number.
 */
export function readId(bytes: Uint8Array, token: Span): number | undefined {
  let id = 0;
  for (let position = token.start; position < token.end; position += 1) {
    const digit = (bytes[position] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return readOddId(bytes, token);
    id = id * 10 + digit;
  }
  return id;
}

function readOddId(bytes: Uint8Array, token: Span): number | undefined {
  if (isNumber(bytes, token)) return Number(readText(bytes, token));
  const text = stringAt(bytes, token) ?? '';
  return /^\d{1,16}(?:\.0+)?$/.test(text) ? Number(text) : undefined;
}

type StrayKind = 'late' | 'duplicate' | 'unknown';

/**
 * The requests sent to one peer that wait for an answer, by the id that the gateway gave them.
 *
 * Ids count up from 1, or from another first id, and are never reused, so a late answer cannot match another request.
 */
export class CorrelationTable<Request> {
  readonly #pending = new RequestTable<number, Request>();
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

  add(request: Request): number {
    this.#lastId += 1;
    this.#pending.add(this.#lastId, request);
    return this.#lastId;
  }

  get(id: number): Request | undefined {
    return this.#pending.get(id);
  }

  settle(id: number): Request | undefined {
    const request = this.#pending.get(id);
    if (request !== undefined) this.#pending.delete(id, request);
    return request;
  }

  /** All requests, oldest first. */
  all(): Request[] {
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

/** Limit of the answered requests, because a task may never end, or end without a message to the gateway. */
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
export class RequestsById<Request> extends RequestTable<string, Request> {
  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  /** All requests with this id, oldest first. */
  withId(id: string): Request[] {
    return this.all(id);
  }
}
