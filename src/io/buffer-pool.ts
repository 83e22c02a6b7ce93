/** What a decoder reads into as long as lines are small. */
const SLAB_BYTES = 32 * 1024;
const MIB = 1024 * 1024;
const SIZES: readonly number[] = [-4, -3, -2, -1, 0, 1, 2, 3, 4, 5].map((power) => MIB * 2 ** power);

export interface BufferPoolOptions {
  /** Makes memory; what is in it does not matter. */
  readonly allocate?: (byteLength: number) => Uint8Array;
  /** Unmakes memory that nobody has. Without it, that is left to the garbage collector. */
  readonly free?: (memory: Uint8Array) => void;
  /** In which sizes rooms come, from small to large. What is larger gets what it asks for. */
  readonly sizes?: readonly number[];
  /** What may be kept of rooms that nobody has. */
  readonly maxIdleBytes?: number;
  /** Called when one more is kept. */
  readonly onIdle?: () => void;
  /** Runs a task when all that is under way has come to an end. */
  readonly later?: (task: () => void) => void;
}

/**
 * Memory for what is read.
 *
 * A large line has a room to itself, which the next one can have when it is known that nobody looks at it any more: fresh
 * memory costs more than all else that is done with it, since the operating system has to bring each page, and what is
 * left behind sets the garbage collector to work. Who never gives a room back leaves it to the collector.
 */
export class BufferPool {
  readonly #allocate: (byteLength: number) => Uint8Array;
  readonly #free: (memory: Uint8Array) => void;
  readonly #sizes: readonly number[];
  readonly #maxIdleBytes: number;
  readonly #onIdle: () => void;
  readonly #later: (task: () => void) => void;
  /** Rooms that somebody has. */
  readonly #taken = new WeakMap<ArrayBufferLike, Uint8Array>();
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

  /** Bytes of rooms that are kept and nobody has. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /** Memory for small lines, or for so much at least, which is never given back. */
  slab(byteLength = SLAB_BYTES): Uint8Array {
    return this.#allocate(Math.max(byteLength, SLAB_BYTES));
  }

  /** A room for so many bytes at least. */
  take(byteLength: number): Uint8Array {
    const size = this.#sizeFor(byteLength);
    const freeSpace = this.#takeIdle(size) ?? this.#allocate(size);
    this.#taken.set(freeSpace.buffer, freeSpace);
    return freeSpace;
  }

  /**
   * Takes the room back that these bytes are in, all or some of them: nobody may look at any of them from now on. Bytes
   * that are in no room, or in one that was given back, are left alone.
   */
  release({ buffer }: Uint8Array): void {
    const freeSpace = this.#taken.get(buffer);
    if (freeSpace === undefined) return;
    this.#taken.delete(buffer);
    if (this.#idleBytes + freeSpace.length > this.#maxIdleBytes) {
      this.#free(freeSpace);
      return;
    }
    this.#idle.push(freeSpace);
    this.#idleBytes += freeSpace.length;
    this.#onIdle();
  }

  /** The same for whoever is called by somebody who may not be through with the bytes. */
  releaseLater(bytes: Uint8Array): void {
    this.#later(() => this.release(bytes));
  }

  /** Keeps nothing that nobody has. */
  clear(): void {
    for (const freeSpace of this.#idle.splice(0)) this.#free(freeSpace);
    this.#idleBytes = 0;
  }

  #sizeFor(byteLength: number): number {
    return this.#sizes.find((size) => size >= byteLength) ?? byteLength;
  }

  /** The one that was used last, of which more is at hand. */
  #takeIdle(size: number): Uint8Array | undefined {
    const index = this.#idle.findLastIndex(({ length }) => length === size);
    if (index < 0) return undefined;
    const [freeSpace] = this.#idle.splice(index, 1);
    this.#idleBytes -= size;
    return freeSpace;
  }
}
