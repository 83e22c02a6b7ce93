import type { UpstreamConnection } from '../../upstream/port.js';

/**
 * The connection of the present process from its handshake on. Requests use a connection only when its lists are read;
 * the server's initialize result and notifications of clients need not wait for that.
 */
export class OpenConnection {
  #connection: UpstreamConnection | undefined;
  readonly #waits = new Set<() => void>();

  /** `undefined` if there is none, or if it is closed. */
  get current(): UpstreamConnection | undefined {
    return this.#connection?.isClosed === false ? this.#connection : undefined;
  }

  /** The handshake with a process has ended. */
  set(connection: UpstreamConnection): void {
    this.#connection = connection;
    for (const settle of this.#waits) settle();
    this.#waits.clear();
  }

  /** Resolves at the next handshake, or like `other` if that is sooner. */
  async untilNext<T>(other: Promise<T>): Promise<T | undefined> {
    let settle = () => {};
    const next = new Promise<undefined>((resolve) => {
      settle = () => resolve(undefined);
    });
    this.#waits.add(settle);
    try {
      return await Promise.race([other, next]);
    } finally {
      this.#waits.delete(settle);
    }
  }
}
