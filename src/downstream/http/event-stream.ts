import type { SplicedMessage } from '../../json/splice.js';
import type { MessageSink } from '../../jsonrpc/message.js';
import type { EventConnection } from './event-connection.js';
import { messageFrame, primingFrame } from './event-frame.js';
import type { ReplayRing } from './replay-ring.js';

/**
 * One stream of a session. It outlives the connections that carry it: what is sent while there is none can be
 * replayed on the next.
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
    this.#ring.keep(id, frame);
    this.#connection?.write(frame);
  }

  /** Begins on a connection; `isPrimed` gives the client something to resume from at once. */
  begin(connection: EventConnection, isPrimed: boolean): void {
    this.#carriedBy(connection);
    if (isPrimed) connection.write(primingFrame(this.#nextId()));
    else connection.flush();
  }

  /** Goes on after the event that the client saw last. A connection that it holds still is one it has given up. */
  resume(connection: EventConnection, lastSeq: number): void {
    this.#carriedBy(connection);
    connection.flush();
    for (const frame of this.#ring.after({ stream: this.number, seq: lastSeq })) connection.write(frame);
  }

  end(): void {
    this.#connection?.end();
  }

  #carriedBy(connection: EventConnection): void {
    const previous = this.#connection;
    this.#connection = connection;
    previous?.end();
    connection.onClosed = () => {
      if (this.#connection !== connection) return;
      this.#connection = undefined;
      this.#onDisconnected();
    };
  }

  /** Priming counts as an event: its id must not be any other's. */
  #nextId(): { stream: number; seq: number } {
    const id = { stream: this.number, seq: this.#seq };
    this.#seq += 1;
    return id;
  }
}
