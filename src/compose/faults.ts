import type { OnFault } from '../bridge/contain.js';

/** Errors of our own that were kept from ending more than one request: counted, and told to whoever listens. */
export class Faults {
  #count = 0;
  #listener: OnFault = () => {};

  get count(): number {
    return this.#count;
  }

  /** One listener. What came before it was counted only. */
  listen(listener: OnFault): void {
    this.#listener = listener;
  }

  readonly onFault: OnFault = (error) => {
    this.#count += 1;
    this.#listener(error);
  };
}
