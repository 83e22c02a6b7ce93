import type { DownstreamClient } from '../../downstream/port.js';

/** A call that may wait until the calls of another client are done. */
export interface ExclusiveCall {
  readonly client: DownstreamClient;
}

/**
 * Admits the calls of one client at a time, for a server that sends requests to its callers. With calls of two clients
 * in flight, the gateway could not tell which client a server request is for.
 *
 * The admitted client keeps the server until its last call is done. While any call waits, new calls queue behind it.
 */
export class ExclusiveClient<WaitingCall extends ExclusiveCall> {
  readonly #waiting = new Set<WaitingCall>();
  readonly #onAdmitted: (call: WaitingCall) => void;
  #client: DownstreamClient | undefined;
  #calls = 0;

  /** `onAdmitted` is called for a call that had to wait. */
  constructor(onAdmitted: (call: WaitingCall) => void) {
    this.#onAdmitted = onAdmitted;
  }

  /** Admits the call now if possible, and queues it otherwise. Returns whether it was admitted. */
  enter(call: WaitingCall): boolean {
    const isFree = this.#calls === 0 || (this.#client === call.client && this.#waiting.size === 0);
    if (isFree) this.#admit(call);
    else this.#waiting.add(call);
    return isFree;
  }

  /** Removes a waiting call. This may admit the calls behind it, if they belong to the admitted client. */
  withdraw(call: WaitingCall): void {
    if (this.#waiting.delete(call)) this.#admitNext();
  }

  /** Ends an admitted call. */
  leave(): void {
    this.#calls -= 1;
    this.#admitNext();
  }

  #admitNext(): void {
    for (const call of this.#waiting) {
      if (this.#calls > 0 && call.client !== this.#client) return;
      this.#waiting.delete(call);
      this.#admit(call);
      this.#onAdmitted(call);
    }
  }

  #admit({ client }: WaitingCall): void {
    this.#client = client;
    this.#calls += 1;
  }
}
