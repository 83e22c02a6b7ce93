import type { BufferPool } from './buffer-pool.js';

/** An unfinished line of more than this gets a room to itself. */
export const LARGE_FROM_BYTES = 16 * 1024;
/** A line that goes on beyond its room is moved to one at least so much larger, so that it is not moved often. */
const ROOM_GROWTH = 2;
/** Less than this is not read at a time, as long as there is more to be read. */
const MIN_READ_BYTES = 8 * 1024;
/** Nor more than this, which must not take long compared to what else there is to do. */
const MAX_READ_BYTES = 256 * 1024;

/**
 * What was read and not taken yet, in one piece, and the room behind it that is read into. Whoever reads asks for the
 * room after each time, and goes on writing to it until then: it must not be given away meanwhile.
 *
 * Small lines stand one behind the other, and stay where they are for whoever keeps them. One that gets large is moved to
 * a room of its own, as large as the last one needed, and is alone there when it ends.
 */
export class ReadBuffer {
  readonly #bufferPool: BufferPool;
  /** The most that one line may take. */
  readonly #maxBytes: number;
  #memory: Uint8Array;
  #freeSpace: Uint8Array;
  #start = 0;
  #end = 0;
  #isLarge = false;
  /** What the last large line has needed. */
  #usualBytes = 0;

  constructor(bufferPool: BufferPool, maxLineBytes: number) {
    this.#bufferPool = bufferPool;
    this.#maxBytes = maxLineBytes + MIN_READ_BYTES;
    this.#memory = bufferPool.slab();
    this.#freeSpace = this.#memory;
  }

  /** Where the next bytes are to be read to, from its beginning. */
  get freeSpace(): Uint8Array {
    return this.#freeSpace;
  }

  get length(): number {
    return this.#end - this.#start;
  }

  /** Whether what there is belongs to one line, or did until its end came, and has its room to itself. */
  get isLarge(): boolean {
    return this.#isLarge;
  }

  /** What was read and not taken. */
  get bytes(): Uint8Array {
    // A plain array of bytes: the platform's own kind takes its time to be cut.
    return new Uint8Array(this.#memory.buffer, this.#memory.byteOffset + this.#start, this.length);
  }

  /** So many bytes were read into the room; `makeRoom` has to be called before more are. */
  filled(byteLength: number): void {
    this.#end += byteLength;
  }

  /** So many of the bytes are for others from now on. */
  take(byteLength: number): void {
    this.#start += byteLength;
  }

  /** The same for a large line. Its room goes with it; what was read behind it moves, and is returned. */
  takeBuffer(byteLength: number): Uint8Array {
    this.take(byteLength);
    this.#usualBytes = byteLength + MIN_READ_BYTES;
    this.#moveTo(this.#bufferPool.slab(this.length + MIN_READ_BYTES));
    this.#isLarge = false;
    return this.#memory.subarray(0, this.#end);
  }

  /** Drops what was not taken. The room stays: whoever reads may still be about to write to it. */
  drop(): void {
    this.#end = this.#start;
  }

  /** The same where `makeRoom` follows, and whoever reads will go by that: the room is given back. */
  dropBuffer(): void {
    this.drop();
    if (!this.#isLarge) return;
    const freeSpace = this.#memory;
    this.#moveTo(this.#bufferPool.slab());
    this.#isLarge = false;
    this.#bufferPool.release(freeSpace);
  }

  /** Makes room for what is read next. */
  makeRoom(): void {
    const { length } = this;
    if (this.#isLarge) {
      if (this.#spareBytes < MIN_READ_BYTES) this.#growTo(Math.min(this.#memory.length * ROOM_GROWTH, this.#maxBytes));
    } else if (length > LARGE_FROM_BYTES) {
      this.#growTo(Math.max(this.#usualBytes, length + MIN_READ_BYTES));
    } else if (this.#spareBytes < MIN_READ_BYTES) {
      this.#moveTo(this.#bufferPool.slab());
    }
    this.#freeSpace = this.#memory.subarray(this.#end, this.#end + MAX_READ_BYTES);
  }

  get #spareBytes(): number {
    return this.#memory.length - this.#end;
  }

  /** Nobody has seen what was not taken, so the room that it stood in is free. */
  #growTo(byteLength: number): void {
    const before = this.#memory;
    this.#moveTo(this.#bufferPool.take(byteLength));
    if (this.#isLarge) this.#bufferPool.release(before);
    this.#isLarge = true;
  }

  #moveTo(memory: Uint8Array): void {
    memory.set(this.bytes);
    this.#end -= this.#start;
    this.#start = 0;
    this.#memory = memory;
  }
}
