import { BufferPool } from './buffer-pool.js';
import type { ByteReader } from './byte-reader.js';
import { LARGE_FROM_BYTES, ReadBuffer } from './read-buffer.js';
import { type OversizedLine, SkippedLine } from './skipped-line.js';
import { type EvictionReason, type UnfinishedLine, UnfinishedLines } from './unfinished-lines.js';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const TAB = 0x09;
const SPACE = 0x20;

/** Receives the lines of a stream. */
export interface LineSink {
  /**
   * The line from `start` to `end` in `bytes`, which other lines may share: to keep a view of the line keeps all of
   * them in memory. A large line is alone in leased memory (`Lease.of`).
   */
  line(bytes: Uint8Array, start: number, end: number): void;
}

/** Learns of the lines that were dropped. Reading continues after the newline of such a line. */
export interface DroppedLineSink {
  /**
   * A line was dropped, and its newline has come: it passed the limit for one line, or `evicted` or `text` has reported it
   * before.
   */
  oversized(fragment: OversizedLine): void;
  /** An unfinished line was dropped, of which `head` is the beginning. Its rest is skipped; `oversized` reports its end. */
  evicted(head: Uint8Array, reason: EvictionReason): void;
  /** A large unfinished line was dropped that begins, with `head`, like none that can be of use. Its rest is skipped. */
  text?(head: Uint8Array): void;
}

export interface LineDecoderOptions {
  readonly sink: LineSink;
  readonly dropped?: DroppedLineSink;
  readonly maxLineBytes: number;
  /** Whether a line that begins with this byte can be of use. Any other line is dropped when it is large. */
  readonly canBegin?: ((byte: number) => boolean) | undefined;
  /** Bounds the unfinished lines of all decoders together. Without it, only the limit for one line applies. */
  readonly unfinishedLines?: UnfinishedLines | undefined;
  /** Whether somebody waits for a line at the moment. Lines that nobody waits for get less memory. */
  readonly isAwaited?: (() => boolean) | undefined;
  /** Whether nobody reads the stream at the moment. An unfinished line does not stall meanwhile. */
  readonly isPaused?: (() => boolean) | undefined;
  /** Where the decoder's memory comes from. */
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
  /** The unfinished line, unless it was dropped, among those of all decoders. */
  readonly #unfinished: UnfinishedLine;
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
    const { canBegin = ANY_BYTE, isPaused = () => false, isAwaited = () => true } = options;
    this.#sink = sink;
    this.#dropped = dropped;
    this.#maxLineBytes = maxLineBytes;
    this.#canBegin = canBegin;
    this.#buffer = new ReadBuffer(bufferPool ?? new BufferPool(), maxLineBytes);
    this.#unfinished = (unfinishedLines ?? boundless()).join({
      maxLineBytes,
      isPaused,
      isAwaited,
      evict: (reason) => this.#evictBetweenReads(reason),
    });
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
    this.#unfinished.leave();
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
    if (this.#unfinished.exists) this.#unfinished.end();
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
      if (length > LARGE_FROM_BYTES && !this.#canBegin(buffer.firstByte)) this.#dropped.text?.(this.#drop());
      else if (!this.#unfinished.grow(length)) this.#dropped.evicted(this.#drop('memory-limit'), 'memory-limit');
      return;
    }
    const skipped = this.#skip(buffer.bytes, 0, length);
    buffer.dropLarge();
    // The rest of a line that is too long takes no memory, but it must come.
    if (skipped.evicted === undefined) this.#unfinished.grow(0);
  }

  /** Drops the unfinished line while the stream waits for its next bytes, for which there is other memory then. */
  #evictBetweenReads(reason: EvictionReason): void {
    const head = this.#drop(reason);
    this.#dropBetweenReads();
    this.#dropped.evicted(head, reason);
  }

  #dropBetweenReads(): void {
    this.#buffer.dropLarge();
    this.#buffer.prepareRead();
    this.#onMoved();
  }

  /**
   * Drops the unfinished line, and returns its beginning. Without a reason, the line is text. Call `prepareRead` before
   * the next read.
   */
  #drop(reason?: EvictionReason): Uint8Array {
    const { bytes, length } = this.#buffer;
    const skipped = this.#skip(bytes, 0, length);
    skipped.evicted = reason;
    skipped.isText = reason === undefined;
    this.#unfinished.end();
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

/** For a decoder that shares nothing. */
function boundless(): UnfinishedLines {
  return new UnfinishedLines({
    maxBytes: Number.POSITIVE_INFINITY,
    timeoutMs: Number.POSITIVE_INFINITY,
    schedule: () => () => {},
  });
}
