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
