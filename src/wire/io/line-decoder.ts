import { join } from '../jsonrpc/message.js';
import { BufferPool, type Lease } from './buffer-pool.js';
import type { ByteReader } from './byte-reader.js';
import { FairMemory, type Holder } from './shared-limit.js';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const TAB = 0x09;
const SPACE = 0x20;

/**
 * Unfinished lines up to this length are exempt from the shared limit, because any line can arrive in two pieces. A
 * stream that uses up the limit must not make other streams lose such lines.
 */
const EXEMPT_BYTES = 64 * 1024;
/** Bytes of a dropped line that are kept at either end, because they contain the id of the answered request. */
const FRAGMENT_BYTES = 512;

export interface LineSink {
  /**
   * The line from `start` to `end` in `bytes`. Other lines may share the memory of `bytes`, and a view of this line keeps all
   * of it from being freed. A large line is alone in leased memory (`Lease.of`).
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

/** Gets the lines that were dropped. Reading continues after the newline of a dropped line. */
export interface DroppedLineSink {
  /**
   * The newline of a dropped line has come. The line was dropped because it passed the limit for one line, or `evicted` or
   * `text` has already reported the line.
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
  readonly bufferPool?: BufferPool | undefined;
}

/**
 * Cuts a byte stream into lines at 0x0A and nowhere else, so that a chunk boundary inside a character does no harm.
 *
 * A carriage return is not a line end, because JSON takes it as white space. It becomes a space where it was read, because
 * readers of Java, .NET and Python's text mode take it as a line end, and would see a forged message behind it. Bytes are read
 * into `freeSpace` and lines stay where they were read; only new bytes are searched. So a large line in small pieces, or many lines in a
 * large piece, cost time in proportion to their length.
 */
export class LineDecoder implements ByteReader {
  readonly #sink: LineSink;
  readonly #dropped: DroppedLineSink;
  readonly #maxLineBytes: number;
  readonly #canBegin: (byte: number) => boolean;
  readonly #buffer: ReadBuffer;
  /** Memory for the unfinished lines of all decoders. */
  readonly #memory: FairMemory;
  /** The part of the memory that this decoder's unfinished line uses. */
  readonly #holder: Holder;
  #skipped: SkippedLine | undefined;
  #onMoved: () => void = () => {};
  #blankLines = 0;
  #returns = 0;
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

  /** Lines of nothing but white space, which are skipped. */
  get blankLines(): number {
    return this.#blankLines;
  }

  get returns(): number {
    return this.#returns;
  }

  /** Bytes beyond the limit for one line, of all lines, finished or not. All bytes of a line that was dropped as text count. */
  get excessBytes(): number {
    return this.#excessBytes + this.#excessOf(this.#skipped);
  }

  get unfinishedBytes(): number {
    return this.#buffer.length;
  }

  /** The unfinished line in memory: a view that is valid until the next read. */
  get unfinished(): Uint8Array {
    return this.#buffer.bytes;
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
      // The sink threw, so the bytes after its line were not searched. The memory stays the same, because the socket may
      // not ask for the next free space after an error.
      if (!isSearched) this.#buffer.drop();
      this.#keepUnfinished();
      this.#buffer.prepareRead();
      this.#isReading = false;
    }
  }

  /**
   * Ends reading, because the stream ended or its owner is done with it. Drops an unfinished line, because half a message is no message.
   */
  end(): void {
    this.#hasEnded = true;
    this.#skipped = undefined;
    this.#memory.leave(this.#holder);
    if (this.#isReading) this.#buffer.drop();
    else this.#dropBetweenReads();
  }

  #search(byteLength: number): void {
    const buffer = this.#buffer;
    // If the pool allocates Node buffers, this is one, and Node searches it faster than a plain array.
    let fresh = buffer.freeSpace.subarray(0, byteLength);
    const lengthBefore = buffer.length;
    this.#spaceOutReturns(fresh);
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
    // Difference between a position in the view and the same position in the new bytes.
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
      if (byte === NEWLINE) this.#blankLines += 1;
      else if (byte !== SPACE && byte !== TAB) return position;
    }
  }

  #spaceOutReturns(fresh: Uint8Array): void {
    const first = fresh.indexOf(CARRIAGE_RETURN);
    // A search for each would cost more in a chunk that has many.
    for (let at = first; at >= 0 && at < fresh.length; at += 1) {
      if (fresh[at] !== CARRIAGE_RETURN) continue;
      fresh[at] = SPACE;
      this.#returns += 1;
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

  /** Drops the unfinished line while the stream waits for its next bytes. These go into other memory. */
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
  head = NOTHING;
  tail = NOTHING;
  byteLength = 0;

  add(bytes: Uint8Array, start: number, end: number): void {
    this.byteLength += end - start;
    const missing = FRAGMENT_BYTES - this.head.length;
    if (missing > 0) this.head = join([this.head, bytes.subarray(start, Math.min(end, start + missing))]);
    this.tail = join([this.tail, bytes.subarray(Math.max(start, end - FRAGMENT_BYTES), end)]).slice(-FRAGMENT_BYTES);
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);

/** An unfinished line of more than this gets a buffer of its own. */
export const LARGE_FROM_BYTES = 16 * 1024;
/** Factor by which a buffer grows when its line outgrows it, so that a line moves only a few times. */
const BUFFER_GROWTH = 2;
/** A larger buffer that its line has outgrown is freed, because few other lines need a buffer of its size. */
const MAX_KEPT_BYTES = 2 * 1024 * 1024;
/** The least free space for one read. */
const MIN_READ_BYTES = 8 * 1024;
/** The most bytes for one read, so that a read does not delay other work for long. */
const MAX_READ_BYTES = 256 * 1024;

/**
 * The bytes that were read and not taken yet, in one piece, and the free space after them for the next read.
 *
 * The socket asks for the free space after each read and may write to it until it asks again, so that memory must not
 * be reused in between. Small lines stand one behind the other in a slab, and stay where they are. A line that gets
 * large moves to a leased buffer of its own, as large as the last large line needed, and is alone there when it ends.
 */
class ReadBuffer {
  readonly #bufferPool: BufferPool;
  /** The most that one line and the next read may take. */
  readonly #maxBytes: number;
  #memory: Uint8Array;
  #freeSpace: Uint8Array;
  #start = 0;
  #end = 0;
  /** The lease on the memory, if the unfinished line is large. */
  #lease: Lease | undefined;
  /** The memory that the last large line needed. */
  #usualBytes = 0;

  constructor(bufferPool: BufferPool, maxLineBytes: number) {
    this.#bufferPool = bufferPool;
    this.#maxBytes = maxLineBytes + MIN_READ_BYTES;
    this.#memory = bufferPool.slab();
    this.#freeSpace = this.#memory;
  }

  /** Memory for the next read, from its beginning. */
  get freeSpace(): Uint8Array {
    return this.#freeSpace;
  }

  get length(): number {
    return this.#end - this.#start;
  }

  /** Whether the bytes belong to one line in a buffer of its own. Bytes after the line's end may follow in the same read. */
  get isLarge(): boolean {
    return this.#lease !== undefined;
  }

  /** The first byte that was not taken, if there is one. */
  get firstByte(): number {
    return this.#memory[this.#start] ?? 0;
  }

  /** The bytes that were read and not taken. */
  get bytes(): Uint8Array {
    // A plain array, because a subarray of a Node buffer takes longer to make.
    return new Uint8Array(this.#memory.buffer, this.#memory.byteOffset + this.#start, this.length);
  }

  /** Adds `byteLength` bytes that were read into the free space. Call `prepareRead` before the next read. */
  filled(byteLength: number): void {
    this.#end += byteLength;
  }

  /** Removes `byteLength` bytes from the beginning. They stay where they are. */
  take(byteLength: number): void {
    this.#start += byteLength;
  }

  /** Removes a large line with its buffer and the lease on it. Moves the bytes after the line to a slab and returns them. */
  takeLarge(byteLength: number): Uint8Array {
    this.take(byteLength);
    this.#usualBytes = byteLength + MIN_READ_BYTES;
    this.#moveTo(this.#bufferPool.slab(this.length + MIN_READ_BYTES));
    this.#lease = undefined;
    return this.#memory.subarray(0, this.#end);
  }

  /** Drops the bytes that were not taken. Keeps the memory, because the socket may still write to the free space. */
  drop(): void {
    this.#end = this.#start;
  }

  /** Drops the bytes and frees a large line's buffer. Call `prepareRead` before the next read. */
  dropLarge(): void {
    this.drop();
    const lease = this.#lease;
    if (lease === undefined) return;
    this.#moveTo(this.#bufferPool.slab());
    this.#lease = undefined;
    lease.discard();
  }

  /** Makes sure that there is enough free space for the next read. */
  prepareRead(): void {
    const { length } = this;
    if (this.isLarge) {
      if (this.#freeBytes < MIN_READ_BYTES) this.#growTo(Math.min(this.#memory.length * BUFFER_GROWTH, this.#maxBytes));
    } else if (length > LARGE_FROM_BYTES) {
      this.#growTo(Math.max(this.#usualBytes, length + MIN_READ_BYTES));
    } else if (this.#freeBytes < MIN_READ_BYTES) {
      this.#moveTo(this.#bufferPool.slab());
    }
    this.#freeSpace = this.#memory.subarray(this.#end, this.#end + MAX_READ_BYTES);
  }

  get #freeBytes(): number {
    return this.#memory.length - this.#end;
  }

  /** Moves the bytes to a larger buffer. The old one can be used again or freed, because no other code has seen its bytes. */
  #growTo(byteLength: number): void {
    const before = this.#lease;
    this.#lease = this.#bufferPool.lease(byteLength);
    this.#moveTo(this.#lease.memory);
    if (before !== undefined && before.memory.length > MAX_KEPT_BYTES) before.discard();
    else before?.release();
  }

  #moveTo(memory: Uint8Array): void {
    memory.set(this.bytes);
    this.#end -= this.#start;
    this.#start = 0;
    this.#memory = memory;
  }
}
