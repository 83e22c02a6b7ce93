import { BufferPool } from './buffer-pool.js';
import type { ByteReader } from './byte-reader.js';
import { FairMemory, type Holder } from './fair-memory.js';
import { LARGE_FROM_BYTES, ReadBuffer } from './read-buffer.js';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const TAB = 0x09;
const SPACE = 0x20;

/**
 * Unfinished lines up to this length are exempt from the shared limit, because nearly every line arrives in two pieces at
 * some time. A stream that uses up the limit must not make others lose such lines.
 */
const EXEMPT_BYTES = 64 * 1024;
/** Bytes of a dropped line that are kept at either end, because they show the id of the request that it answers. */
const FRAGMENT_BYTES = 512;

/** Receives the lines of a stream. */
export interface LineSink {
  /**
   * The line from `start` to `end` in `bytes`, which other lines may share: to keep a view of the line keeps all of
   * them in memory. A large line is alone in leased memory (`Lease.of`).
   */
  line(bytes: Uint8Array, start: number, end: number): void;
}

/** Both ends of a dropped line. */
export interface OversizedLine {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  readonly byteLength: number;
  /** Whether the line was dropped before it was finished, because it was the largest when the shared memory was full. */
  readonly isEvicted: boolean;
  /** Whether the line was dropped because its first byte shows that it is no message. */
  readonly isText: boolean;
}

/** Learns of the lines that were dropped. Reading continues after the newline of such a line. */
export interface DroppedLineSink {
  /**
   * A line was dropped, and its newline has come: it passed the limit for one line, or `evicted` or `text` has reported it
   * before.
   */
  oversized(fragment: OversizedLine): void;
  /**
   * Dropped the unfinished line that begins with `head`, because it was the largest when the shared memory was full. Its rest
   * is skipped; `oversized` reports its end.
   */
  evicted(head: Uint8Array): void;
  /** Dropped a large unfinished line. Its first bytes (`head`) show that it cannot be a message. Its rest is skipped. */
  text?(head: Uint8Array): void;
}

export interface LineDecoderOptions {
  readonly sink: LineSink;
  readonly dropped?: DroppedLineSink;
  readonly maxLineBytes: number;
  /** Whether a line that begins with this byte can be of use. Any other line is dropped when it is large. */
  readonly canBegin?: ((byte: number) => boolean) | undefined;
  /** Memory of the unfinished lines of all decoders (`unfinishedLines`). Without it, only the limit for one line applies. */
  readonly unfinishedLines?: FairMemory | undefined;
  /** Source of the decoder's memory. */
  readonly bufferPool?: BufferPool | undefined;
}

/**
 * Cuts a byte stream into lines at 0x0A and nowhere else, so that a chunk boundary inside a character does no harm.
 *
 * A lone carriage return is not a line end, because JSON takes it as white space. Bytes are read into `freeSpace` and
 * lines stay where they were read; only new bytes are searched. So a large line in small pieces, or many lines in a
 * large piece, cost time in proportion to their length.
 */
export class LineDecoder implements ByteReader {
  readonly #sink: LineSink;
  readonly #dropped: DroppedLineSink;
  readonly #maxLineBytes: number;
  readonly #canBegin: (byte: number) => boolean;
  readonly #buffer: ReadBuffer;
  /** Memory of all decoders, and the part of it that the unfinished line has. */
  readonly #memory: FairMemory;
  readonly #holder: Holder;
  #skipped: SkippedLine | undefined;
  #onMoved: () => void = () => {};
  #droppedLines = 0;
  #droppedBytes = 0;
  #blankLines = 0;
  #blankBytes = 0;
  #excessBytes = 0;
  #isReading = false;
  #hasEnded = false;

  constructor(options: LineDecoderOptions) {
    const { sink, dropped = NOBODY, maxLineBytes, unfinishedLines, bufferPool } = options;
    const { canBegin = ANY_BYTE } = options;
    this.#sink = sink;
    this.#dropped = dropped;
    this.#maxLineBytes = maxLineBytes;
    this.#canBegin = canBegin;
    this.#buffer = new ReadBuffer(bufferPool ?? new BufferPool(), maxLineBytes);
    this.#memory = unfinishedLines ?? createLineMemory(Number.POSITIVE_INFINITY);
    this.#holder = this.#memory.join({ evict: () => this.#evictBetweenReads() });
  }

  /** Lines dropped because they passed a limit or because the stream ended before their newline. */
  get droppedLines(): number {
    return this.#droppedLines;
  }

  get droppedBytes(): number {
    return this.#droppedBytes;
  }

  /** Lines of nothing but white space, which are skipped. */
  get blankLines(): number {
    return this.#blankLines;
  }

  /** Bytes of white space before lines and of blank lines. They are skipped, and not stored. */
  get blankBytes(): number {
    return this.#blankBytes;
  }

  /** Bytes of all lines beyond what a line may have, including a line that has not ended. Large text may have none. */
  get excessBytes(): number {
    return this.#excessBytes + this.#excessOf(this.#skipped);
  }

  /** Bytes of the unfinished line in memory. */
  get unfinishedBytes(): number {
    return this.#buffer.length;
  }

  /** Bytes of the unfinished line if it was dropped. */
  get skippedBytes(): number {
    return this.#skipped?.byteLength ?? 0;
  }

  get freeSpace(): Uint8Array {
    return this.#buffer.freeSpace;
  }

  whenMoved(listener: () => void): void {
    this.#onMoved = listener;
  }

  filled(byteLength: number): void {
    if (this.#hasEnded) return;
    let isSearched = false;
    this.#isReading = true;
    try {
      this.#search(byteLength);
      isSearched = true;
    } finally {
      // The sink failed over a line, so the bytes behind that line were not searched. The memory stays the same,
      // because the socket may not ask for the next free space after an error.
      if (!isSearched) this.#buffer.drop();
      this.#keepUnfinished();
      this.#buffer.prepareRead();
      this.#isReading = false;
    }
  }

  /**
   * Ends reading: the stream ended, or its owner is done with it. Drops an unfinished line, because half a message is
   * no message. Returns its length.
   */
  end(): number {
    this.#hasEnded = true;
    const lost = this.#skipped?.byteLength ?? this.#buffer.length;
    if (lost > 0) this.#countDropped(lost);
    this.#skipped = undefined;
    this.#memory.leave(this.#holder);
    if (this.#isReading) this.#buffer.drop();
    else this.#dropBetweenReads();
    return lost;
  }

  #search(byteLength: number): void {
    const buffer = this.#buffer;
    // A Node buffer where the pool allocates those: Node searches it faster than a plain array.
    let fresh = buffer.freeSpace.subarray(0, byteLength);
    const lengthBefore = buffer.length;
    buffer.filled(byteLength);
    let isAtLineStart = lengthBefore === 0 && this.#skipped === undefined;
    let newline = isAtLineStart ? -1 : fresh.indexOf(NEWLINE);
    if (newline >= 0 && buffer.isLarge) {
      const line = buffer.bytes.subarray(0, lengthBefore + newline);
      fresh = buffer.takeLarge(line.length + 1);
      this.#line(line, 0, line.length);
      if (this.#hasEnded) return;
      isAtLineStart = true;
    }
    if (isAtLineStart) {
      const blank = this.#skipBlank(fresh, 0);
      buffer.take(blank);
      newline = fresh.indexOf(NEWLINE, blank);
    }
    if (newline < 0) return;
    // One view for all lines, because a view for each costs about as much as finding the line.
    const { bytes } = buffer;
    // From a position in the new bytes to one in the view.
    const shift = bytes.length - fresh.length;
    let start = 0;
    for (; newline >= 0 && !this.#hasEnded; newline = fresh.indexOf(NEWLINE, start - shift)) {
      const end = newline + shift;
      const next = this.#skipBlank(bytes, end + 1);
      buffer.take(next - start);
      this.#line(bytes, start, end);
      start = next;
    }
  }

  /**
   * Returns the position after the white space at `start`, where a line begins, and counts its newlines as blank lines.
   * A search for each newline would cost much more.
   */
  #skipBlank(bytes: Uint8Array, start: number): number {
    for (let position = start; ; position += 1) {
      const byte = bytes[position];
      if (byte === NEWLINE) {
        this.#blankLines += 1;
      } else if (byte !== SPACE && byte !== TAB && byte !== CARRIAGE_RETURN) {
        this.#blankBytes += position - start;
        return position;
      }
    }
  }

  #line(bytes: Uint8Array, start: number, end: number): void {
    if (this.#holder.bytes > 0) this.#memory.release(this.#holder);
    if (this.#skipped === undefined && end - start <= this.#maxLineBytes) {
      this.#sink.line(bytes, start, end);
      return;
    }
    const skipped = this.#skip(bytes, start, end);
    this.#skipped = undefined;
    this.#countDropped(skipped.byteLength);
    this.#excessBytes += this.#excessOf(skipped);
    this.#dropped.oversized(skipped);
  }

  /** Keeps the unfinished line, or only its ends if it passes a limit. */
  #keepUnfinished(): void {
    const buffer = this.#buffer;
    const { length } = buffer;
    if (length === 0) return;
    if (this.#skipped === undefined && length <= this.#maxLineBytes) {
      if (length > LARGE_FROM_BYTES && !this.#canBegin(buffer.firstByte)) this.#dropped.text?.(this.#drop(false));
      else if (!this.#memory.grow(this.#holder, length)) this.#dropped.evicted(this.#drop(true));
      return;
    }
    this.#skip(buffer.bytes, 0, length);
    buffer.dropLarge();
    this.#memory.release(this.#holder);
  }

  /** Drops the unfinished line while the stream waits for its next bytes, for which there is other memory then. */
  #evictBetweenReads(): void {
    const head = this.#drop(true);
    this.#dropBetweenReads();
    this.#dropped.evicted(head);
  }

  #dropBetweenReads(): void {
    this.#buffer.dropLarge();
    this.#buffer.prepareRead();
    this.#onMoved();
  }

  /**
   * Drops the unfinished line, for its size (`isEvicted`) or because it is text, and returns its beginning. Call `prepareRead`
   * before the next read.
   */
  #drop(isEvicted: boolean): Uint8Array {
    const { bytes, length } = this.#buffer;
    const skipped = this.#skip(bytes, 0, length);
    skipped.isEvicted = isEvicted;
    skipped.isText = !isEvicted;
    this.#memory.release(this.#holder);
    this.#buffer.dropLarge();
    return skipped.head;
  }

  #skip(bytes: Uint8Array, start: number, end: number): SkippedLine {
    this.#skipped ??= new SkippedLine();
    this.#skipped.add(bytes, start, end);
    return this.#skipped;
  }

  #excessOf(skipped: OversizedLine | undefined): number {
    if (skipped === undefined) return 0;
    return Math.max(0, skipped.byteLength - (skipped.isText ? 0 : this.#maxLineBytes));
  }

  #countDropped(byteLength: number): void {
    this.#droppedLines += 1;
    this.#droppedBytes += byteLength;
  }
}

const NOBODY: DroppedLineSink = { oversized: () => {}, evicted: () => {} };

const ANY_BYTE = () => true;

/** Creates memory for the unfinished lines of several decoders. */
export function createLineMemory(maxBytes: number): FairMemory {
  return new FairMemory(maxBytes, EXEMPT_BYTES);
}

/** A dropped line, of which only the ends are kept. */
class SkippedLine implements OversizedLine {
  isEvicted = false;
  isText = false;
  #head = NOTHING;
  #tail = NOTHING;
  #byteLength = 0;

  get head(): Uint8Array {
    return this.#head;
  }

  get tail(): Uint8Array {
    return this.#tail;
  }

  get byteLength(): number {
    return this.#byteLength;
  }

  /** The line goes on with these bytes. */
  add(bytes: Uint8Array, start: number, end: number): void {
    this.#byteLength += end - start;
    const missing = FRAGMENT_BYTES - this.#head.length;
    if (missing > 0) this.#head = joined(this.#head, bytes.slice(start, Math.min(end, start + missing)));
    this.#tail = joined(this.#tail, bytes.slice(Math.max(start, end - FRAGMENT_BYTES), end)).slice(-FRAGMENT_BYTES);
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second;
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
