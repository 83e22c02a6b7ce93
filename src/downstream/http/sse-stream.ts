import type { ServerResponse } from 'node:http';
import { type SplicedMessage, visitPieces } from '../../wire/json/splice.js';
import type { MessageSink } from '../../wire/jsonrpc/message.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { Deadlines, Due } from '../../wire/timing/deadlines.js';

/** With a ring, the stream outlives its connections: the next connection can replay events that were sent while there was no connection. */
export class EventStream implements MessageSink {
  readonly number: number;
  readonly #ring: ReplayRing | undefined;
  /** End of the ids of all events of this stream. */
  readonly #idEnd: string;
  readonly #onDisconnected: () => void;
  #seq = 0;
  #connection: EventConnection | undefined;

  constructor(number = 0, ring?: ReplayRing, idEnd = '', onDisconnected: () => void = () => {}) {
    this.number = number;
    this.#ring = ring;
    this.#idEnd = idEnd;
    this.#onDisconnected = onDisconnected;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  get unwrittenBytes(): number {
    return this.#connection?.unwrittenBytes ?? 0;
  }

  send(message: SplicedMessage): void {
    const position = this.#ring && this.#nextPosition();
    const frame = messageFrame(position && this.#idOf(position), message);
    message.lease?.release();
    if (position !== undefined) this.#ring?.add(position, frame);
    this.#connection?.write(frame);
  }

  /** Starts on a connection. `isPrimed` sends an event id at once, so that the client can resume from it. */
  begin(connection: EventConnection, isPrimed: boolean): void {
    this.#connectTo(connection);
    if (isPrimed) connection.write(primingFrame(this.#idOf(this.#nextPosition())));
    else connection.flush();
  }

  /** Continues after the event that the client saw last. Ends the older connection, which the client gave up. */
  resume(connection: EventConnection, lastSeq: number): void {
    this.#connectTo(connection);
    connection.flush();
    const missed = this.#ring?.after({ stream: this.number, seq: lastSeq }) ?? [];
    for (const frame of missed) connection.write(frame);
  }

  end(): void {
    this.#connection?.end();
  }

  /** Ends the connection of a stream that goes on, and asks the client to open the next one soon. */
  endConnection(): void {
    this.#connection?.write(RECONNECT);
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

  /** Returns the next position. The priming event also uses a position. */
  #nextPosition(): EventPosition {
    const position = { stream: this.number, seq: this.#seq };
    this.#seq += 1;
    return position;
  }

  #idOf({ stream, seq }: EventPosition): string {
    return `${stream}.${seq}.${this.#idEnd}`;
  }
}

/**
 * Makes an event from a copy of the message, because frames stay in the replay ring and must not hold the message's buffer. A
 * client cannot resume from an event without an id.
 */
export function messageFrame(id: string | undefined, message: SplicedMessage): Uint8Array {
  const pieces: Uint8Array[] = [Buffer.from(id === undefined ? 'data: ' : `id: ${id}\ndata: `)];
  visitPieces(message, (piece) => pieces.push(onOneLine(piece)));
  pieces.push(END);
  return Buffer.concat(pieces);
}

/** Event without a message. It has an id to resume from before the first message, and the retry delay. */
function primingFrame(id: string): Uint8Array {
  return Buffer.from(`id: ${id}\nretry: ${RETRY_MS}\ndata: \n\n`);
}

/** Time after which a client should reconnect if its connection broke, in milliseconds. */
const RETRY_MS = 1_000;

/** Event that only shortens the retry delay. */
const RECONNECT = Buffer.from('retry: 500\n\n');

const END = Buffer.from('\n\n');

/** Comment that keeps an idle connection open. Clients ignore it. */
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');

/** The stream of a session and the number of the event in the stream. */
interface EventPosition {
  readonly stream: number;
  readonly seq: number;
}

/** The last events of a session over all its streams, for a client that lost its connection. */
export class ReplayRing {
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  readonly #events: { readonly id: EventPosition; readonly frame: Uint8Array }[] = [];
  #bytes = 0;

  constructor({ maxEvents, maxBytes }: { maxEvents: number; maxBytes: number }) {
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  add(id: EventPosition, frame: Uint8Array): void {
    this.#events.push({ id, frame });
    this.#bytes += frame.length;
    while (this.#events.length > this.#maxEvents || this.#bytes > this.#maxBytes) {
      this.#bytes -= this.#events.shift()?.frame.length ?? 0;
    }
  }

  has(stream: number): boolean {
    return this.#events.some(({ id }) => id.stream === stream);
  }

  /** Returns the later events of the same stream, if the ring still holds them. */
  after({ stream, seq }: EventPosition): readonly Uint8Array[] {
    return this.#events.filter(({ id }) => id.stream === stream && id.seq > seq).map(({ frame }) => frame);
  }

  clear(): void {
    this.#events.length = 0;
    this.#bytes = 0;
  }
}

export interface Timed extends Due {
  onDue(): void;
}

interface EventConnectionOptions {
  readonly clock: Clock;
  readonly timers: Deadlines<Timed>;
  readonly keepAliveMs: number;
  readonly open: OpenConnections;
  readonly headers: Readonly<Record<string, string>>;
}

export class EventConnection implements Timed {
  dueAt: number;
  readonly #response: ServerResponse;
  readonly #options: EventConnectionOptions;
  #isOpen = true;

  constructor(response: ServerResponse, options: EventConnectionOptions) {
    this.#response = response;
    this.#options = options;
    this.dueAt = options.clock.now() + options.keepAliveMs;
    response.writeHead(200, {
      ...options.headers,
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      // Without this header, nginx would buffer events.
      'x-accel-buffering': 'no',
    });
    options.open.add(this);
    options.timers.watch(this);
    response.once('close', () => this.#closed());
  }

  /** Called once when nothing more can be written. */
  onClosed: () => void = () => {};

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get unwrittenBytes(): number {
    return this.#isOpen ? this.#response.writableLength : 0;
  }

  /** Sends the head of the response, unless something was written already. */
  flush(): void {
    this.#response.flushHeaders();
  }

  write(frame: Uint8Array): void {
    this.#options.open.makeRoom();
    if (!this.#isOpen) return;
    this.dueAt = this.#options.clock.now() + this.#options.keepAliveMs;
    // Without `cork`, Node corks the socket itself until the next tick, and the bytes count as unread.
    this.#response.cork();
    this.#response.write(frame);
    this.#response.uncork();
  }

  onDue(): void {
    this.write(KEEP_ALIVE);
    if (this.#isOpen) this.#options.timers.watch(this);
  }

  /** Ends the response after everything that was written. */
  end(): void {
    if (!this.#isOpen) return;
    this.#response.end();
    this.#closed();
  }

  /** Destroys the connection, and frees the bytes that the client has not read. */
  cut(): void {
    this.#response.destroy();
    this.#closed();
  }

  #closed(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#options.open.delete(this);
    this.#options.timers.unwatch(this);
    this.onClosed();
  }
}

/**
 * The open streams of one client, with a limit for the bytes that the client has not read.
 *
 * The limit is checked before each write, so only bytes count that wait behind an earlier message. A single message may be as large as the
 * frame limit allows. A stream that has its last message is not tracked, because it does not grow any more.
 */
export class OpenConnections {
  readonly #connections = new Set<EventConnection>();
  readonly #maxUnwrittenBytes: number;
  readonly #onCut: (unwrittenBytes: number) => void;

  constructor(maxUnwrittenBytes: number, onCut: (unwrittenBytes: number) => void) {
    this.#maxUnwrittenBytes = maxUnwrittenBytes;
    this.#onCut = onCut;
  }

  add(connection: EventConnection): void {
    this.#connections.add(connection);
  }

  delete(connection: EventConnection): void {
    this.#connections.delete(connection);
  }

  /** Cuts the stream with the most unread bytes if all streams together exceed the limit. */
  makeRoom(): void {
    let sum = 0;
    let most: EventConnection | undefined;
    for (const connection of this.#connections) {
      sum += connection.unwrittenBytes;
      if (most === undefined || connection.unwrittenBytes > most.unwrittenBytes) most = connection;
    }
    if (sum <= this.#maxUnwrittenBytes) return;
    most?.cut();
    this.#onCut(sum);
  }
}

const LF = 0x0a;

const CR = 0x0d;

const SPACE = 0x20;

/**
 * Replaces line breaks in JSON by spaces, for transports on which a line break ends the message. Returns the same array if there are no
 * line breaks.
 *
 * The bytes must be valid JSON or a part of it. In JSON, raw line breaks occur only between tokens, where a space means the same.
 */
export function onOneLine(json: Uint8Array): Uint8Array {
  if (!json.includes(LF) && !json.includes(CR)) return json;
  return json.map((byte) => (byte === CR || byte === LF ? SPACE : byte));
}
