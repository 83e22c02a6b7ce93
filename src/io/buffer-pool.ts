import { Lease } from './lease.js';

/** Size of the memory that a line reader reads small lines into. */
const SLAB_BYTES = 32 * 1024;
const MIB = 1024 * 1024;
const SIZES: readonly number[] = [-4, -3, -2, -1, 0, 1, 2, 3, 4, 5].map((power) => MIB * 2 ** power);

export interface BufferPoolOptions {
  /** Allocates memory; its content does not matter. */
  readonly allocate?: (byteLength: number) => Uint8Array;
  /** Frees memory that no lease is on. Without it, the garbage collector does. */
  readonly free?: (memory: Uint8Array) => void;
  /** The sizes of buffers in bytes, from small to large. A line that needs more gets a buffer of exactly that size. */
  readonly sizes?: readonly number[];
  /** The most bytes of idle buffers to keep for reuse. */
  readonly maxIdleBytes?: number;
  /** Called each time a buffer becomes idle. */
  readonly onIdle?: () => void;
  /** Runs a task once the code that is running now has returned. Runs it at once by default. */
  readonly later?: (task: () => void) => void;
}

/**
 * Memory for what is read.
 *
 * Each large line stands in a buffer of its own, which is reused for another line when all leases on it are released.
 * Fresh memory costs more than everything else that happens to a large line, because the operating system has to map
 * each page, and abandoned memory makes the garbage collector run.
 */
export class BufferPool {
  readonly #allocate: (byteLength: number) => Uint8Array;
  readonly #free: (memory: Uint8Array) => void;
  readonly #sizes: readonly number[];
  readonly #maxIdleBytes: number;
  readonly #onIdle: () => void;
  readonly #later: (task: () => void) => void;
  #idle: Uint8Array[] = [];
  #idleBytes = 0;

  constructor(options: BufferPoolOptions = {}) {
    this.#allocate = options.allocate ?? ((byteLength) => new Uint8Array(byteLength));
    this.#free = options.free ?? (() => {});
    this.#sizes = options.sizes ?? SIZES;
    this.#maxIdleBytes = options.maxIdleBytes ?? 0;
    this.#onIdle = options.onIdle ?? (() => {});
    this.#later = options.later ?? ((task) => task());
  }

  /** Bytes of the buffers that are kept for reuse. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /**
   * Memory for small lines: 32 KiB, or `byteLength` if that is more. There is no lease on it, and it is never reused.
   */
  slab(byteLength = SLAB_BYTES): Uint8Array {
    return this.#allocate(Math.max(byteLength, SLAB_BYTES));
  }

  /**
   * Leases a buffer of at least so many bytes. A released buffer is reused only after the code that releases it has
   * returned, because its callers may still look at the bytes.
   */
  lease(byteLength: number): Lease {
    const size = this.#sizeFor(byteLength);
    return Lease.on(this.#takeIdle(size) ?? this.#allocate(size), this.#onReleased);
  }

  /** Frees all idle buffers. */
  clear(): void {
    for (const memory of this.#idle.splice(0)) this.#free(memory);
    this.#idleBytes = 0;
  }

  readonly #onReleased = (memory: Uint8Array): void => this.#later(() => this.#keep(memory));

  #keep(memory: Uint8Array): void {
    if (this.#idleBytes + memory.length > this.#maxIdleBytes) {
      this.#free(memory);
      return;
    }
    this.#idle.push(memory);
    this.#idleBytes += memory.length;
    this.#onIdle();
  }

  #sizeFor(byteLength: number): number {
    return this.#sizes.find((size) => size >= byteLength) ?? byteLength;
  }

  /** Prefers the buffer that was used last: more of it is in the processor's caches. */
  #takeIdle(size: number): Uint8Array | undefined {
    const index = this.#idle.findLastIndex(({ length }) => length === size);
    if (index < 0) return undefined;
    const [memory] = this.#idle.splice(index, 1);
    this.#idleBytes -= size;
    return memory;
  }
}
