import { BufferPool } from './buffer-pool.js';
import type { ByteReader } from './byte-reader.js';
import { ReadBuffer } from './read-buffer.js';
import { SharedLimit } from './shared-limit.js';

const NEWLINE = 0x0a;
/** One who hoards must not keep others from what comes in two pieces by chance: as much as this may always be held. */
const ALWAYS_GIVEN_BYTES = 64 * 1024;
/** How much of a dropped line is kept at either end: enough to find the id of the request it would have answered. */
const FRAGMENT_BYTES = 512;

/** What came out of the stream. */
export interface LineSink {
  /** From `start` to `end` in bytes that other lines may share. Whoever keeps them longer than the call keeps all of them. */
  line(bytes: Uint8Array, start: number, end: number): void;
  /** A line passed a limit and was dropped; reading went on after its newline. */
  oversized(fragment: OversizedLine): void;
}

export interface OversizedLine {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  readonly byteLength: number;
}

export interface LineDecoderOptions {
  readonly sink: LineSink;
  readonly maxLineBytes: number;
  /** What all decoders together may hold of unfinished lines; a line that would be beyond that is dropped. */
  readonly held?: SharedLimit | undefined;
  /** Where its memory is from. */
  readonly bufferPool?: BufferPool | undefined;
}

/**
 * Cuts a byte stream into lines at 0x0A and nowhere else, so that text split inside a character stays whole.
 *
 * A lone carriage return is not a line end: JSON takes it as white space. Bytes are read into `room`, and lines are left
 * where they were read to; only new bytes are searched. So neither a large line in small pieces nor many lines in a large
 * piece cost more than their length.
 */
export class LineDecoder implements ByteReader {
  readonly #sink: LineSink;
  readonly #maxLineBytes: number;
  readonly #limit: SharedLimit;
  readonly #buffer: ReadBuffer;
  /** What was taken of the limit for the unfinished line. */
  #taken = 0;
  #skipped: { head: Uint8Array; tail: Uint8Array; byteLength: number } | undefined;
  #droppedLines = 0;
  #droppedBytes = 0;
  #excessBytes = 0;
  #hasEnded = false;

  constructor({ sink, maxLineBytes, held, bufferPool }: LineDecoderOptions) {
    this.#sink = sink;
    this.#maxLineBytes = maxLineBytes;
    this.#limit = held ?? new SharedLimit(Number.POSITIVE_INFINITY);
    this.#buffer = new ReadBuffer(bufferPool ?? new BufferPool(), maxLineBytes);
  }

  /** Lines dropped because they passed a limit, a last one without a newline included. */
  get droppedLines(): number {
    return this.#droppedLines;
  }

  get droppedBytes(): number {
    return this.#droppedBytes;
  }

  /** Bytes that lines were beyond the limit, those of one that still goes on included. */
  get excessBytes(): number {
    return this.#excessBytes + this.#excessOf(this.#skipped);
  }

  /** Bytes of an unfinished line that are held at the moment. */
  get heldBytes(): number {
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
      // What stands behind a line that its sink failed over was not looked at. Whoever reads may not get to know of
      // another room, so this one stays.
      if (!isSearched) this.#buffer.drop();
      this.#hold();
      this.#buffer.makeRoom();
    }
  }

  /**
   * The stream ended, or nobody wants to know more of it: an unfinished line is dropped, because half a message is no
   * message. Returns its length.
   */
  end(): number {
    this.#hasEnded = true;
    const lost = this.#skipped?.byteLength ?? this.#buffer.length;
    if (lost > 0) this.#countDropped(lost);
    this.#skipped = undefined;
    this.#giveTaken();
    this.#buffer.drop();
    return lost;
  }

  #search(byteLength: number): void {
    const buffer = this.#buffer;
    // The platform's own kind of bytes is searched faster than a plain array of them.
    let fresh = buffer.freeSpace.subarray(0, byteLength);
    const heldBefore = buffer.length;
    buffer.filled(byteLength);
    let newline = fresh.indexOf(NEWLINE);
    if (newline >= 0 && buffer.isLarge) {
      const line = buffer.bytes.subarray(0, heldBefore + newline);
      fresh = buffer.takeBuffer(line.length + 1);
      this.#line(line, 0, line.length);
      newline = fresh.indexOf(NEWLINE);
    }
    if (newline < 0) return;
    // One view for all lines: one of each would cost about as much as to find it.
    const { bytes } = buffer;
    const offset = bytes.length - fresh.length;
    let start = 0;
    for (; newline >= 0 && !this.#hasEnded; newline = fresh.indexOf(NEWLINE, newline + 1)) {
      const end = offset + newline;
      buffer.take(end + 1 - start);
      this.#line(bytes, start, end);
      start = end + 1;
    }
  }

  #line(bytes: Uint8Array, start: number, end: number): void {
    if (this.#taken > 0) this.#giveTaken();
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

  /** Keeps what there is of an unfinished line, or its ends when that is too much. */
  #hold(): void {
    const buffer = this.#buffer;
    const { length } = buffer;
    if (length === 0) return;
    if (this.#skipped === undefined && length <= this.#maxLineBytes && this.#takeFor(length)) return;
    this.#giveTaken();
    this.#skip(buffer.bytes, 0, length);
    buffer.dropBuffer();
  }

  /** Returns false, and does nothing, when there is no room for it among what all hold. */
  #takeFor(length: number): boolean {
    const more = length - this.#taken;
    if (length <= ALWAYS_GIVEN_BYTES) this.#limit.takeAnyway(more);
    else if (!this.#limit.take(more)) return false;
    this.#taken = length;
    return true;
  }

  #giveTaken(): void {
    this.#limit.give(this.#taken);
    this.#taken = 0;
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
