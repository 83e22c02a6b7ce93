/** A task that never ends, or whose end we are not told of, must not be kept for ever. */
const MAX_LASTING = 256;

/** Requests that were answered and became tasks, of whose progress whoever asked still wants to hear; by their ids. */
export class AnsweredRequests<Request> {
  readonly #requests = new Map<number, Request>();

  get size(): number {
    return this.#requests.size;
  }

  /** Keeps the request until the function that is returned is called, or until too many have come after it. */
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
