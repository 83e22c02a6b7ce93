import type { BufferPool, Lease } from './buffer-pool.js';

/** An unfinished line of more than this gets a buffer of its own. */
export const LARGE_FROM_BYTES = 16 * 1024;
/** Factor by which a buffer grows when its line outgrows it, so that a line moves only a few times. */
const BUFFER_GROWTH = 2;
/** A larger buffer that its line has outgrown is freed: it would hold memory that few other lines need. */
const MAX_KEPT_BYTES = 2 * 1024 * 1024;
/** The least free space for one read. */
const MIN_READ_BYTES = 8 * 1024;
/** The most bytes for one read, so that a read does not delay other work for long. */
const MAX_READ_BYTES = 256 * 1024;

/**
 * The bytes that were read and not taken yet, in one piece, and the free space behind them for the next read.
 *
 * The socket asks for the free space after each read and may write to it until it asks again, so that memory must not
 * be reused in between. Small lines stand one behind the other in a slab, and stay where they are. A line that gets
 * large moves to a leased buffer of its own, as large as the last large line needed, and is alone there when it ends.
 */
export class ReadBuffer {
  readonly #bufferPool: BufferPool;
  /** The most that one line and the next read may take. */
  readonly #maxBytes: number;
  #memory: Uint8Array;
  #freeSpace: Uint8Array;
  #start = 0;
  #end = 0;
  /** On the memory, if the unfinished line is large. */
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

  /**
   * Whether the bytes belong to one line in a buffer of its own; bytes behind the line's end may follow in the same
   * read.
   */
  get isLarge(): boolean {
    return this.#lease !== undefined;
  }

  /** The first byte that was not taken, if there is one. */
  get firstByte(): number {
    return this.#memory[this.#start] ?? 0;
  }

  /** The bytes that were read and not taken. */
  get bytes(): Uint8Array {
    // A plain array: a subarray of a Node buffer takes longer to make.
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

  /**
   * Removes a large line with its buffer and the lease on it. Moves the bytes behind the line to a slab and returns
   * them.
   */
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
