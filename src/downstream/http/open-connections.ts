/** A stream that a client may read slowly. */
export interface Readable {
  readonly unwrittenBytes: number;
  cut(): void;
}

/**
 * The open streams of one client, with a limit for the bytes that the client has not read.
 *
 * The limit is checked before each write, so a single message may be as large as the frame limit allows; only what piles
 * up behind it counts. A stream that has its last message does not grow any more and is not tracked.
 */
export class OpenConnections {
  readonly #connections = new Set<Readable>();
  readonly #maxUnwrittenBytes: number;
  readonly #onCut: (unwrittenBytes: number) => void;

  constructor(maxUnwrittenBytes: number, onCut: (unwrittenBytes: number) => void) {
    this.#maxUnwrittenBytes = maxUnwrittenBytes;
    this.#onCut = onCut;
  }

  add(connection: Readable): void {
    this.#connections.add(connection);
  }

  delete(connection: Readable): void {
    this.#connections.delete(connection);
  }

  /** Cuts the stream with the most unread bytes when all streams together exceed the limit. */
  makeRoom(): void {
    let sum = 0;
    let most: Readable | undefined;
    for (const connection of this.#connections) {
      sum += connection.unwrittenBytes;
      if (most === undefined || connection.unwrittenBytes > most.unwrittenBytes) most = connection;
    }
    if (sum <= this.#maxUnwrittenBytes) return;
    most?.cut();
    this.#onCut(sum);
  }
}
