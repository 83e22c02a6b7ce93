import type { OnInternalError } from './error-boundary.js';

/** Errors of our own that were kept from ending more than one request: counted, and told to whoever listens. */
export class InternalErrorLog {
  #count = 0;
  #listener: OnInternalError = () => {};

  get count(): number {
    return this.#count;
  }

  /** One listener. What came before it was counted only. */
  listen(listener: OnInternalError): void {
    this.#listener = listener;
  }

  readonly onInternalError: OnInternalError = (error) => {
    this.#count += 1;
    this.#listener(error);
  };
}
