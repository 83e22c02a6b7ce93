import { type OnInternalError, reportInternalError, withErrorBoundary } from '../../host/errors/internal-error.js';
import type { BufferPool } from '../../wire/io/buffer-pool.js';
import type { ByteReader } from '../../wire/io/byte-reader.js';
import { type DroppedLineSink, LineDecoder, type LineSink, type OversizedLine } from '../../wire/io/line-decoder.js';
import type { FeedConnection, MessageFeed } from '../../wire/io/message-feed.js';
import type { FairMemory } from '../../wire/io/shared-limit.js';
import { isObject, OPEN_BRACE, OPEN_BRACKET } from '../../wire/json/json-text.js';
import { type Envelope, messagesOf, type Rejection, type ScanEnvelope } from '../../wire/mcp/envelope.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { HealthMonitor } from '../health/health-monitor.js';
import type { DropCounters } from '../upstream-connection.js';
import type { AnswerFault, OutgoingRequests } from './outgoing-requests.js';

/** Reason for which a line of a server cannot be used. */
export type JunkReason =
  | Rejection['reason']
  | AnswerFault
  | 'too-large'
  | 'memory-limit'
  /** The connection has ended before the newline. */
  | 'no-newline'
  | 'carriage-return-instead-of-newline';

/** The parts that all connections share. */
export interface SharedReading {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  /** Memory of the unfinished lines of all servers and clients. */
  readonly unfinishedLines: FairMemory;
  readonly bufferPool: BufferPool;
}

export interface ReadingOptions extends Partial<SharedReading> {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly events: {
    /** The server wrote a line that cannot be used. It belongs in the server's log only. */
    junk(line: Uint8Array, reason: JunkReason): void;
    readonly fault?: OnInternalError;
  };
  readonly maxFrameBytes: number;
  /** Whether Trunkline reads nothing from the server at the moment. */
  readonly isPaused?: () => boolean;
  /** Shows the messages of this connection, in both directions, to recordings. */
  readonly feed?: { readonly messages: MessageFeed; readonly connection: FeedConnection };
}

interface MessageReaderOptions extends ReadingOptions {
  readonly counters: DropCounters;
  readonly outgoing: OutgoingRequests;
  readonly health: HealthMonitor;
  readonly isClosed: () => boolean;
  /** Takes a message. `at` is its arrival, in milliseconds on the clock. Returns whether the message answers a request. */
  readonly take: (message: Envelope, at: number) => boolean;
}

/** Reads a stream with one message a line: stdout, or an answer over HTTP. Ignores input after the connection is closed. */
export class MessageReader implements ByteReader, LineSink, DroppedLineSink {
  readonly #options: MessageReaderOptions;
  readonly #decoder: LineDecoder;
  /** Arrival of the bytes that are being scanned, in milliseconds. The clock is read once for all of them. */
  #readAt = 0;
  #wasUseful = false;
  #hasLines = false;
  /** Number of these bytes that belong to no message, because the server logs to stdout. */
  #strayBytes = 0;
  /** Blank lines and excess bytes of the decoder that were already counted. */
  #blankLines = 0;
  #excessBytes = 0;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
    this.#decoder = new LineDecoder({
      ...options,
      sink: this,
      dropped: this,
      maxLineBytes: options.maxFrameBytes,
      canBegin: (byte) => byte === OPEN_BRACE || byte === OPEN_BRACKET || byte === BYTE_ORDER_MARK,
    });
  }

  get freeSpace(): Uint8Array {
    return this.#decoder.freeSpace;
  }

  whenMoved(listener: () => void): void {
    this.#decoder.whenMoved(listener);
  }

  /** Whether the latest bytes answered a request, or may be part of an answer. */
  get wasUseful(): boolean {
    return this.#wasUseful;
  }

  filled(byteLength: number): void {
    const { clock, counters, health, outgoing, isClosed } = this.#options;
    this.#wasUseful = false;
    if (isClosed()) return;
    this.#readAt = clock.now();
    this.#strayBytes = 0;
    this.#decoder.filled(byteLength);
    const { blankLines, excessBytes } = this.#decoder;
    counters.blank += blankLines - this.#blankLines;
    this.#blankLines = blankLines;
    // The excess of oversized lines counts as stray output, so that a line without an end is not read forever.
    const stray = this.#strayBytes + excessBytes - this.#excessBytes;
    this.#excessBytes = excessBytes;
    if (stray > 0) health.strayOutput(stray);
    if (outgoing.size > 0 && this.#decoder.unfinishedBytes >= byteLength) this.#wasUseful = true;
  }

  /** Ends the stream. Logs an unfinished line, because it may show the fault, such as carriage returns instead of newlines, or a crash. */
  end(): void {
    const { unfinished, returns } = this.#decoder;
    const isWithReturns = returns > 0 && !this.#hasLines;
    if (unfinished.length > 0) this.#logDropped(unfinished, isWithReturns ? RETURNS_ONLY : 'no-newline');
    this.#decoder.end();
  }

  line(bytes: Uint8Array, start: number, end: number): void {
    const { feed, scan, counters, events, isClosed } = this.#options;
    // An earlier line of the same chunk may have closed the connection.
    if (isClosed()) return;
    this.#hasLines = true;
    // Not `withErrorBoundary`, because it would need a closure for each message.
    try {
      if (feed?.messages.isObserved === true)
        feed.messages.passed('s>g', { bytes, span: { start, end }, edits: [] }, feed.connection);
      const message = scan(bytes, start, end);
      if (message.bytes.buffer !== bytes.buffer) counters.repaired += 1;
      if (this.#take(message)) this.#wasUseful = true;
    } catch (error) {
      reportInternalError(error, events.fault);
    }
  }

  evicted(head: Uint8Array): void {
    const { counters, outgoing, health, isPaused = () => false } = this.#options;
    counters.evicted += 1;
    this.#logDropped(head, 'memory-limit');
    outgoing.dropped({ head, tail: NOTHING }, 'response_dropped');
    // A server that Trunkline does not read cannot finish its line.
    if (!isPaused()) health.excessiveMessage();
  }

  text(head: Uint8Array): void {
    this.#options.counters.junk += 1;
    this.#logDropped(head, 'not-json');
  }

  /** Fails the request that a dropped line answers, and counts it as an excessive message. */
  oversized(line: OversizedLine): void {
    const { counters, outgoing, health } = this.#options;
    if (line.isText) return;
    if (line.isEvicted) {
      // `evicted` has counted the line, but the id may stand at the end of the line.
      outgoing.dropped(line, 'response_dropped');
      return;
    }
    counters.oversized += 1;
    this.#logDropped(line.head, 'too-large');
    outgoing.dropped(line, 'response_too_large');
    health.excessiveMessage();
  }

  #logDropped(head: Uint8Array, reason: JunkReason): void {
    const { events } = this.#options;
    withErrorBoundary(() => events.junk(head, reason), events.fault);
  }

  #take(message: Envelope | Rejection): boolean {
    return message.kind === 'rejected' ? this.#reject(message) : this.#options.take(message, this.#readAt);
  }

  #reject(rejection: Rejection): boolean {
    const { scan, counters, outgoing, events } = this.#options;
    const { reason, bytes, elements = [] } = rejection;
    if (reason === 'blank') return false;
    // An array with objects is a batch. Its messages are taken one by one, so that an error affects only one of them. Any
    // other array is stray output.
    if (elements.some((element) => isObject(bytes, element))) {
      let isUseful = false;
      for (const message of messagesOf(rejection, scan))
        withErrorBoundary(() => {
          isUseful = this.#take(message) || isUseful;
        }, events.fault);
      return isUseful;
    }
    counters.junk += 1;
    events.junk(bytes, reason);
    if (rejection.id !== undefined && rejection.isAnswer) outgoing.answerMalformed(bytes, rejection.id);
    this.#strayBytes += bytes.length;
    return false;
  }
}

const RETURNS_ONLY = 'carriage-return-instead-of-newline';
const NOTHING = new Uint8Array(0);
/** The first byte of a byte order mark, which may be before a message. */
const BYTE_ORDER_MARK = 0xef;
