import type { RequestHandler } from './request.js';

/** A task that never ends, or whose end we are not told of, must not be kept for ever. */
const MAX_LASTING = 256;

/** Requests that were answered and became tasks, of whose progress their clients still want to hear. */
export class LastingRequests<Request extends { readonly id: number; readonly handler: RequestHandler }> {
  readonly #requests = new Map<number, Request>();

  add(request: Request): void {
    this.#requests.set(request.id, request);
    if (this.#requests.size <= MAX_LASTING) return;
    for (const oldest of this.#requests.keys()) {
      this.#requests.delete(oldest);
      break;
    }
  }

  get(id: number): Request | undefined {
    const request = this.#requests.get(id);
    if (request === undefined || request.handler.isLasting?.() === true) return request;
    this.#requests.delete(id);
    return undefined;
  }
}
