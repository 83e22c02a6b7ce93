import { BufferPool } from './buffer-pool.js';
import { ReadBuffer } from './read-buffer.js';
import { SharedLimit } from './shared-limit.js';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const TAB = 0x09;
const SPACE = 0x20;
/**
 * An unfinished line of at most so many bytes is exempt from the shared limit, so that a stream that uses up the limit
 * does not make others lose lines that merely arrive in two pieces.
 */
const EXEMPT_BYTES = 64 * 1024;
/** How many bytes of a dropped line are kept at either end: enough to find the id of the request that it answers. */
const FRAGMENT_BYTES = 512;

/** Receives the lines of a stream. */
export interface LineSink {
  /**
   * The line from `start` to `end` in `bytes`, which other lines may share: to keep a view of the line keeps all of
   * them in memory. A large line is alone in leased memory (`Lease.of`).
   */
  line(bytes: Uint8Array, start: number, end: number): void;
  /** A line passed a limit and was dropped. Reading continues after its newline. */
  oversized(fragment: OversizedLine): void;
}

/** Both ends of a dropped line. */
export interface OversizedLine {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  readonly byteLength: number;
}

interface LineDecoderOptions {
  readonly sink: LineSink;
  readonly maxLineBytes: number;
  /** Limits the bytes of unfinished lines in all decoders together; a line that would pass it is dropped. */
  readonly sharedLimit?: SharedLimit | undefined;
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
  readonly #maxLineBytes: number;
  readonly #limit: SharedLimit;
  readonly #buffer: ReadBuffer;
  /** Bytes acquired from the shared limit for the unfinished line. */
  #acquired = 0;
  #skipped: { head: Uint8Array; tail: Uint8Array; byteLength: number } | undefined;
  #droppedLines = 0;
  #droppedBytes = 0;
  #blankLines = 0;
  #blankBytes = 0;
  #excessBytes = 0;
  #hasEnded = false;

  constructor({ sink, maxLineBytes, sharedLimit, bufferPool }: LineDecoderOptions) {
    this.#sink = sink;
    this.#maxLineBytes = maxLineBytes;
    this.#limit = sharedLimit ?? new SharedLimit(Number.POSITIVE_INFINITY);
    this.#buffer = new ReadBuffer(bufferPool ?? new BufferPool(), maxLineBytes);
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

  /** Bytes of all lines beyond the limit for one line, including a line that has not ended. */
  get excessBytes(): number {
    return this.#excessBytes + this.#excessOf(this.#skipped);
  }

  /** Bytes of the unfinished line in memory. */
  get unfinishedBytes(): number {
    return this.#buffer.length;
  }

  get freeSpace(): Uint8Array {
    return this.#buffer.freeSpace;
  }

  filled(byteLength: number): void {
    if (this.#hasEnded) return;
    let isSearched = false;
    try {
      this.#search(byteLength);
      isSearched = true;
    } finally {
      // The sink failed over a line, so the bytes behind that line were not searched. The memory stays the same,
      // because the socket may not ask for the next free space after an error.
      if (!isSearched) this.#buffer.drop();
      this.#keepUnfinished();
      this.#buffer.prepareRead();
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
    this.#releaseAcquired();
    this.#buffer.drop();
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
   * A search for each newline would cost a hundred times as much.
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
    if (this.#acquired > 0) this.#releaseAcquired();
    if (this.#skipped === undefined && end - start <= this.#maxLineBytes) {
      this.#sink.line(bytes, start, end);
      return;
    }
    const skipped = this.#skip(bytes, start, end);
    this.#skipped = undefined;
    this.#countDropped(skipped.byteLength);
    this.#excessBytes += this.#excessOf(skipped);
    this.#sink.oversized(skipped);
  }

  /** Keeps the unfinished line, or only its ends if it passes a limit. */
  #keepUnfinished(): void {
    const buffer = this.#buffer;
    const { length } = buffer;
    if (length === 0) return;
    if (this.#skipped === undefined && length <= this.#maxLineBytes && this.#acquireFor(length)) return;
    this.#releaseAcquired();
    this.#skip(buffer.bytes, 0, length);
    buffer.dropLarge();
  }

  /** Returns `false`, and acquires nothing, if the shared limit does not allow a line of this length. */
  #acquireFor(length: number): boolean {
    const more = length - this.#acquired;
    if (length <= EXEMPT_BYTES) this.#limit.acquire(more);
    else if (!this.#limit.tryAcquire(more)) return false;
    this.#acquired = length;
    return true;
  }

  #releaseAcquired(): void {
    this.#limit.release(this.#acquired);
    this.#acquired = 0;
  }

  #skip(bytes: Uint8Array, start: number, end: number): OversizedLine {
    const head = bytes.slice(start, Math.min(end, start + FRAGMENT_BYTES));
    const tail = bytes.slice(Math.max(start, end - FRAGMENT_BYTES), end);
    const skipped = this.#skipped;
    if (skipped === undefined) {
      this.#skipped = { head, tail, byteLength: end - start };
      return this.#skipped;
    }
    skipped.byteLength += end - start;
    if (skipped.head.length < FRAGMENT_BYTES) skipped.head = joined(skipped.head, head).slice(0, FRAGMENT_BYTES);
    skipped.tail = joined(skipped.tail, tail).slice(-FRAGMENT_BYTES);
    return skipped;
  }

  #excessOf(skipped: { readonly byteLength: number } | undefined): number {
    return skipped === undefined ? 0 : Math.max(0, skipped.byteLength - this.#maxLineBytes);
  }

  #countDropped(byteLength: number): void {
    this.#droppedLines += 1;
    this.#droppedBytes += byteLength;
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

/** Receives bytes in memory of its own, so that the code that reads them allocates none. */
export interface ByteReader {
  /**
   * Where to write the next bytes, from its beginning; never empty. It stays the same until `filled` is called, and may
   * be different memory afterwards.
   */
  readonly freeSpace: Uint8Array;
  /** Tells the reader that so many bytes, at least one, were written to `freeSpace`. */
  filled(byteLength: number): void;
}

/** Passes bytes from other memory to a reader. */
export function copyInto(reader: ByteReader, bytes: Uint8Array): void {
  let position = 0;
  while (position < bytes.length) {
    const { freeSpace } = reader;
    const piece = bytes.subarray(position, position + freeSpace.length);
    freeSpace.set(piece);
    position += piece.length;
    reader.filled(piece.length);
  }
}
