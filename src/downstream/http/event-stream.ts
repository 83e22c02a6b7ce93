import type { SplicedMessage } from '../../json/splice.js';
import type { MessageSink } from '../../jsonrpc/message.js';
import type { EventConnection } from './event-connection.js';
import { type EventId, type Frame, messageFrame, primingFrame } from './event-frame.js';

/**
 * One event stream of a session. The stream outlives its connections: events that are sent while there is no connection
 * can be replayed on the next one.
 */
export class EventStream implements MessageSink {
  readonly number: number;
  readonly #ring: ReplayRing;
  readonly #onDisconnected: () => void;
  #seq = 0;
  #connection: EventConnection | undefined;

  constructor(number: number, ring: ReplayRing, onDisconnected: () => void = () => {}) {
    this.number = number;
    this.#ring = ring;
    this.#onDisconnected = onDisconnected;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  get unwrittenBytes(): number {
    return this.#connection?.unwrittenBytes ?? 0;
  }

  send(message: SplicedMessage): void {
    const id = this.#nextId();
    const frame = messageFrame(id, message);
    message.lease?.release();
    this.#ring.add(id, frame);
    this.#connection?.write(frame);
  }

  /** Starts on a connection. `isPrimed` sends an event id at once, so that the client can resume from it. */
  begin(connection: EventConnection, isPrimed: boolean): void {
    this.#connectTo(connection);
    if (isPrimed) connection.write(primingFrame(this.#nextId()));
    else connection.flush();
  }

  /** Continues after the event that the client saw last. The client has given up a connection that is still open. */
  resume(connection: EventConnection, lastSeq: number): void {
    this.#connectTo(connection);
    connection.flush();
    for (const frame of this.#ring.after({ stream: this.number, seq: lastSeq })) connection.write(frame);
  }

  end(): void {
    this.#connection?.end();
  }

  #connectTo(connection: EventConnection): void {
    const previous = this.#connection;
    this.#connection = connection;
    previous?.end();
    connection.onClosed = () => {
      if (this.#connection !== connection) return;
      this.#connection = undefined;
      this.#onDisconnected();
    };
  }

  /** The priming event uses up an id, too. */
  #nextId(): { stream: number; seq: number } {
    const id = { stream: this.number, seq: this.#seq };
    this.#seq += 1;
    return id;
  }
}

/** The event stream of one response that nothing can resume. */
export class ResponseEvents implements MessageSink {
  readonly #connection: EventConnection;

  constructor(connection: EventConnection) {
    this.#connection = connection;
    connection.flush();
  }

  get unwrittenBytes(): number {
    return this.#connection.unwrittenBytes;
  }

  send(message: SplicedMessage): void {
    const frame = messageFrame(undefined, message);
    message.lease?.release();
    this.#connection.write(frame);
  }

  end(): void {
    this.#connection.end();
  }
}

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
