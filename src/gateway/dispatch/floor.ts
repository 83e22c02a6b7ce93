import type { DownstreamClient } from '../../downstream/port.js';

interface Waiting {
  readonly client: DownstreamClient;
  readonly start: () => void;
}

/**
 * Lets the calls of one client at a time through, for a server that asks its callers something: with the calls of two
 * under way nobody could tell whom it asks.
 *
 * Whoever has the floor keeps it until its last call is done; calls that come while others wait stand in line.
 */
export class Floor {
  readonly #line = new Set<Waiting>();
  #holder: DownstreamClient | undefined;
  #calls = 0;

  /** Calls `start` when the client has the floor, at once if it can have it now. Returns how to leave the line. */
  enter(client: DownstreamClient, start: () => void): () => void {
    const isFree = this.#calls === 0 || (this.#holder === client && this.#line.size === 0);
    if (isFree) {
      this.#take(client);
      start();
      return () => {};
    }
    const waiting = { client, start };
    this.#line.add(waiting);
    return () => {
      // Whoever stands behind may belong to the one who has the floor.
      if (this.#line.delete(waiting)) this.#callNext();
    };
  }

  /** A call that was started is done. */
  leave(): void {
    this.#calls -= 1;
    this.#callNext();
  }

  #callNext(): void {
    for (const waiting of this.#line) {
      if (this.#calls > 0 && waiting.client !== this.#holder) return;
      this.#line.delete(waiting);
      this.#take(waiting.client);
      waiting.start();
    }
  }

  #take(client: DownstreamClient): void {
    this.#holder = client;
    this.#calls += 1;
  }
}
