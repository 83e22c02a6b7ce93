import type { EventId, Frame } from './event-frame.js';

interface Caches {
  readonly id: EventId;
  readonly frame: Frame;
  readonly bytes: number;
}

/** The last events of a session, over all its streams, for a client that lost some with a connection. */
export class ReplayRing {
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  readonly #events: Caches[] = [];
  #bytes = 0;

  constructor({ maxEvents, maxBytes }: { maxEvents: number; maxBytes: number }) {
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  keep(id: EventId, frame: Frame): void {
    let bytes = 0;
    for (const piece of frame) bytes += piece.length;
    this.#events.push({ id, frame, bytes });
    this.#bytes += bytes;
    while (this.#events.length > this.#maxEvents || this.#bytes > this.#maxBytes) {
      this.#bytes -= this.#events.shift()?.bytes ?? 0;
    }
  }

  /** Whether anything of the stream is still there. */
  has(stream: number): boolean {
    return this.#events.some(({ id }) => id.stream === stream);
  }

  /** What came after the event on its own stream, as far as it is still there. */
  after({ stream, seq }: EventId): readonly Frame[] {
    return this.#events.filter(({ id }) => id.stream === stream && id.seq > seq).map(({ frame }) => frame);
  }

  clear(): void {
    this.#events.length = 0;
    this.#bytes = 0;
  }
}
