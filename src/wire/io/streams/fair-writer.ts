import type { Writable } from 'node:stream';
import { type SplicedMessage, splice, splicedLength } from '../../json/splice.js';
import { type MessageSink, unedited } from '../../jsonrpc/message.js';
import type { ClientBackpressure } from './backpressure.js';
import { inMicrotask, LARGE_BYTES, LineWriter } from './line-writer.js';

const MIB = 1024 * 1024;
/** Pauses all sources while more bytes than this are unwritten. */
const HIGH_WATER_BYTES = 4 * MIB;
/** Pauses a source while more bytes than this of it are unwritten. */
const SOURCE_HIGH_WATER_BYTES = 2 * MIB;
/**
 * Lower limit while several sources send. Reading ahead would keep the gateway and the client busy, and delay the small
 * messages of the other sources. For a source that sends alone, reading ahead saves time.
 */
const SHARED_HIGH_WATER_BYTES = 128 * 1024;
/** Default limit of the unwritten bytes. As large as the largest message, because a client on a pipe cannot fetch a lost one. */
const MAX_UNWRITTEN_BYTES = 64 * MIB;

interface FairWriterOptions {
  /**
   * The writer closes when one more message is sent while more bytes than this are unwritten. At least 4 MiB, the limit above
   * which all sources are paused; 64 MiB by default.
   */
  readonly maxUnwrittenBytes?: number;
  /** Called once when the writer closes because the client does not read. */
  readonly onUnread?: ((unwrittenBytes: number) => void) | undefined;
  /**
   * The stream of the client's messages, paused while more than `maxUnwrittenBytes` are unwritten. Otherwise a client
   * that sends requests and reads nothing would fill the memory with answers that come from no server.
   */
  readonly input?: { pause(): void; resume(): void } | undefined;
}

/**
 * Writes the messages of many sources to one client, so that no source has to wait long for another.
 *
 * A large message is passed to the stream once the client has read the large message before it. Meanwhile the other
 * messages wait in a fair queue: a small message of one source overtakes large messages of another that have not begun.
 *
 * A client that reads slowly pauses the sources and, above `maxUnwrittenBytes`, its own input. If other clients of the same
 * servers read on, pausing has no effect (see `Backpressure`). Then the writer of a client that does not read closes above
 * `maxUnwrittenBytes`. It drops all messages, and calls `onUnread`, for the owner to end the session.
 *
 * Errors of the stream are left to its owner.
 */
export class FairWriter implements MessageSink {
  readonly #stream: Writable;
  readonly #backpressure: ClientBackpressure;
  readonly #maxUnwrittenBytes: number;
  readonly #onUnread: (unwrittenBytes: number) => void;
  readonly #input: FairWriterOptions['input'];
  readonly #writer: LineWriter;
  readonly #waiting = new FairQueue<SplicedMessage>();
  /** Whether messages have to wait, because a large message is being written or is about to be. */
  #isBusy = false;
  /** The large message that was passed to the stream and not read yet. */
  #begun: Queued<SplicedMessage> | undefined;
  /** The source of the last message. */
  #latest: string | undefined;
  #isPausingAll = false;
  #isInputPaused = false;
  /** The paused sources, each with the limit of its unwritten bytes below which it resumes. */
  readonly #pausedSources = new Map<string, number>();
  #isClosed = false;
  #onAllWritten: (() => void) | undefined;
  readonly #writeWaitingLater = (): void => this.#writeWaiting();
  readonly #onTaken = (): void => {
    this.#begun = undefined;
    this.#writeWaiting();
  };

  constructor(stream: Writable, backpressure: ClientBackpressure, options: FairWriterOptions = {}) {
    this.#stream = stream;
    this.#backpressure = backpressure;
    this.#maxUnwrittenBytes = options.maxUnwrittenBytes ?? MAX_UNWRITTEN_BYTES;
    this.#onUnread = options.onUnread ?? (() => {});
    this.#input = options.input;
    this.#writer = new LineWriter(stream);
    stream.on('drain', () => this.#relax());
    // Some streams do not call back for a write that they began when they close.
    stream.once('close', this.#onTaken);
  }

  get unwrittenBytes(): number {
    return this.#writer.unwrittenBytes + this.#waiting.bytes;
  }

  send(message: SplicedMessage, source?: string): void {
    if (this.#isClosed || (this.#isPausingAll && this.#closeIfUnread())) {
      message.lease?.release();
      return;
    }
    const isLarge = message.span.end - message.span.start >= LARGE_BYTES;
    if (isLarge || this.#isBusy) this.#enqueue(message, isLarge, source);
    else this.#writer.send(message);
    this.#latest = source;
    const { unwrittenBytes } = this;
    if (unwrittenBytes <= HIGH_WATER_BYTES) return;
    if (!this.#isPausingAll) {
      this.#isPausingAll = true;
      this.#backpressure.pause();
    }
    if (this.#isInputPaused || unwrittenBytes <= this.#maxUnwrittenBytes) return;
    this.#isInputPaused = true;
    this.#input?.pause();
  }

  /** Calls back once everything sent until now is written, or cannot be written any more. */
  whenAllWritten(onAllWritten: () => void): void {
    this.#onAllWritten = onAllWritten;
    if (!this.#isBusy) this.#writeWaiting();
  }

  /** Closes the writer, and returns `true`, if the client does not read. One message may be of any size. */
  #closeIfUnread(): boolean {
    const { unwrittenBytes } = this;
    if (unwrittenBytes <= this.#maxUnwrittenBytes || this.#backpressure.isAlone) return false;
    this.#isClosed = true;
    this.#clear();
    this.#backpressure.close();
    this.#onUnread(unwrittenBytes);
    return true;
  }

  #enqueue(message: SplicedMessage, isLarge: boolean, source: string | undefined): void {
    if (!this.#stream.writable) {
      message.lease?.release();
      return;
    }
    // A small message is copied, because it may be a view of much more memory than its length.
    this.#waiting.add(isLarge ? message : unedited(splice(message)), splicedLength(message) + 1, source);
    if (source !== undefined) this.#pauseIfMuchWaits(source);
    if (this.#isBusy) return;
    this.#isBusy = true;
    inMicrotask(this.#writeWaitingLater);
  }

  #pauseIfMuchWaits(source: string): void {
    const highWater = source === this.#latest ? SOURCE_HIGH_WATER_BYTES : SHARED_HIGH_WATER_BYTES;
    if (this.#unwrittenOf(source) <= highWater) return;
    const isPaused = this.#pausedSources.has(source);
    this.#pausedSources.set(source, highWater);
    if (!isPaused) this.#backpressure.pause(source);
  }

  /** Writes waiting messages, up to and including the next large one. */
  #writeWaiting(): void {
    while (this.#stream.writable) {
      const next = this.#waiting.take();
      if (next === undefined) {
        this.#isBusy = false;
        break;
      }
      this.#writer.send(next.item);
      if (next.bytes >= LARGE_BYTES) {
        this.#begun = next;
        this.#writer.flush(this.#onTaken);
        break;
      }
    }
    if (!this.#stream.writable) this.#clear();
    if (this.#onAllWritten !== undefined && this.#waiting.bytes === 0 && this.#begun === undefined)
      this.#reportWritten();
    this.#relax();
  }

  #reportWritten(): void {
    const onAllWritten = this.#onAllWritten ?? (() => {});
    this.#onAllWritten = undefined;
    this.#writer.flush();
    // Node calls back for an empty write when all earlier writes have ended, also when they failed.
    if (this.#stream.writable) this.#stream.write('', () => onAllWritten());
    else onAllWritten();
  }

  #clear(): void {
    for (let next = this.#waiting.take(); next !== undefined; next = this.#waiting.take()) next.item.lease?.release();
  }

  /** Resumes the sources, and the input, if few enough bytes are unwritten again. */
  #relax(): void {
    for (const [source, highWater] of this.#pausedSources) {
      if (this.#unwrittenOf(source) > highWater) continue;
      this.#pausedSources.delete(source);
      this.#backpressure.resume(source);
    }
    if (!this.#isPausingAll || this.unwrittenBytes > HIGH_WATER_BYTES / 2) return;
    this.#isPausingAll = false;
    this.#backpressure.resume();
    if (!this.#isInputPaused) return;
    this.#isInputPaused = false;
    this.#input?.resume();
  }

  #unwrittenOf(source: string): number {
    return this.#waiting.bytesOf(source) + (this.#begun?.source === source ? this.#begun.bytes : 0);
  }
}

/** An item that waits, its size and its source. */
interface Queued<T> {
  readonly item: T;
  readonly bytes: number;
  readonly source: string | undefined;
}

interface Entry<T> extends Queued<T> {
  /** The start tag: the end tag of the item before it from the same source, or the virtual time it was added at if later. */
  readonly start: number;
  next: Entry<T> | undefined;
}

interface Lane<T> {
  first: Entry<T>;
  last: Entry<T>;
}

/** The items that may overtake each other, apart from the order within each source. */
type Segment<T> = Map<string | undefined, Lane<T>>;

/**
 * A queue in which several sources take turns by bytes: the source that has had the fewest bytes goes first, so that a small item does not
 * wait for many large ones, and no item waits forever. This is start-time fair queueing, with a lane for each source.
 *
 * Items of one source stay in order. An item without a source keeps its place among all items: everything added before it goes first, and
 * everything added after it waits.
 */
export class FairQueue<T> {
  /** Segments with sources alternate with segments without. */
  readonly #segments: Segment<T>[] = [];
  /** The end tag of each source's last item. Emptied when the queue is empty. */
  readonly #ends = new Map<string | undefined, number>();
  readonly #bytesOf = new Map<string | undefined, number>();
  /** The virtual time: the start tag of the item taken last. */
  #position = 0;
  #bytes = 0;

  /** The size of all items that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  bytesOf(source: string): number {
    return this.#bytesOf.get(source) ?? 0;
  }

  add(item: T, bytes: number, source: string | undefined): void {
    const start = Math.max(this.#position, this.#ends.get(source) ?? 0);
    this.#ends.set(source, start + bytes);
    this.#count(source, bytes);
    const entry: Entry<T> = { item, bytes, source, start, next: undefined };
    const segment = this.#segmentFor(source);
    const lane = segment.get(source);
    if (lane === undefined) {
      segment.set(source, { first: entry, last: entry });
      return;
    }
    lane.last.next = entry;
    lane.last = entry;
  }

  /** Removes the item whose turn it is. */
  take(): Queued<T> | undefined {
    const [segment] = this.#segments;
    if (segment === undefined) return undefined;
    let chosen: Lane<T> | undefined;
    for (const lane of segment.values()) {
      if (chosen === undefined || lane.first.start < chosen.first.start) chosen = lane;
    }
    if (chosen === undefined) return undefined;
    const entry = chosen.first;
    if (entry.next !== undefined) chosen.first = entry.next;
    else segment.delete(entry.source);
    if (segment.size === 0) this.#segments.shift();
    this.#position = Math.max(this.#position, entry.start);
    this.#count(entry.source, -entry.bytes);
    if (this.#segments.length === 0) this.#forget();
    return entry;
  }

  /** Begins anew, because no waiting item is left to compare later items with. */
  #forget(): void {
    this.#ends.clear();
    this.#bytesOf.clear();
    this.#position = 0;
  }

  #segmentFor(source: string | undefined): Segment<T> {
    const last = this.#segments.at(-1);
    if (last !== undefined && last.has(undefined) === (source === undefined)) return last;
    const segment: Segment<T> = new Map();
    this.#segments.push(segment);
    return segment;
  }

  #count(source: string | undefined, bytes: number): void {
    this.#bytes += bytes;
    this.#bytesOf.set(source, (this.#bytesOf.get(source) ?? 0) + bytes);
  }
}
