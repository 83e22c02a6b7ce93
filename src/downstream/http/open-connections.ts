/** A stream that the client may be slow to read. */
export interface Readable {
  readonly unwrittenBytes: number;
  cut(): void;
}

/**
 * What one client holds open, and how much of it it has not read.
 *
 * Asked before more is written, so that one message may be as large as messages may be; only what piles up behind it
 * counts. What has its last message already grows no more and is not in here.
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

  /** Cuts the connection that lags most when all together hold too much. */
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
