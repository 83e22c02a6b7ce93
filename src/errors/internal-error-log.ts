import type { OnInternalError } from './error-boundary.js';

/** Counts internal errors that an error boundary caught, and passes them to a listener. */
export class InternalErrorLog {
  #count = 0;
  #listener: OnInternalError = () => {};

  get count(): number {
    return this.#count;
  }

  /** Sets the one listener. Errors before that were only counted. */
  listen(listener: OnInternalError): void {
    this.#listener = listener;
  }

  readonly onInternalError: OnInternalError = (error) => {
    this.#count += 1;
    this.#listener(error);
  };
}
