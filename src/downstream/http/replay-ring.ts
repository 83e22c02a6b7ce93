import type { EventId, Frame } from './event-frame.js';

interface StoredEvent {
  readonly id: EventId;
  readonly frame: Frame;
  readonly bytes: number;
}

/** The last events of a session over all its streams, for a client that lost its connection. */
export class ReplayRing {
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  readonly #events: StoredEvent[] = [];
  #bytes = 0;

  constructor({ maxEvents, maxBytes }: { maxEvents: number; maxBytes: number }) {
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  add(id: EventId, frame: Frame): void {
    let bytes = 0;
    for (const piece of frame) bytes += piece.length;
    this.#events.push({ id, frame, bytes });
    this.#bytes += bytes;
    while (this.#events.length > this.#maxEvents || this.#bytes > this.#maxBytes) {
      this.#bytes -= this.#events.shift()?.bytes ?? 0;
    }
  }

  /** Whether the ring holds an event of the stream. */
  has(stream: number): boolean {
    return this.#events.some(({ id }) => id.stream === stream);
  }

  /** The events of the same stream after the given one, as far as the ring still holds them. */
  after({ stream, seq }: EventId): readonly Frame[] {
    return this.#events.filter(({ id }) => id.stream === stream && id.seq > seq).map(({ frame }) => frame);
  }

  clear(): void {
    this.#events.length = 0;
    this.#bytes = 0;
  }
}
