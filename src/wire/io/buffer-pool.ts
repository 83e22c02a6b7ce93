/** Size of the memory that a line reader reads small lines into. */
const SLAB_BYTES = 32 * 1024;
const MIB = 1024 * 1024;
const SIZES: readonly number[] = [-4, -3, -2, -1, 0, 1, 2, 3, 4, 5].map((power) => MIB * 2 ** power);

interface BufferPoolOptions {
  /** Allocates memory; its content does not matter. */
  readonly allocate?: (byteLength: number) => Uint8Array;
  /** Frees unleased memory. Without this function, the garbage collector frees it. */
  readonly free?: (memory: Uint8Array) => void;
  /** The sizes of buffers in bytes, from small to large. A line that needs more gets a buffer of exactly that size. */
  readonly sizes?: readonly number[];
  /** The most bytes of idle buffers to keep for reuse. */
  readonly maxIdleBytes?: number;
  readonly onIdle?: () => void;
  /** Runs a task once the code that is running now has returned. Runs it at once by default. */
  readonly later?: (task: () => void) => void;
}

/**
 * Memory for reading. Each large line stands in a buffer of its own, which is reused for another line when all leases on it
 * are released. Fresh memory costs more than everything else that happens to a large line, because the operating system has to map
 * each page, and abandoned memory makes the garbage collector run.
 */
export class BufferPool {
  readonly #options: Required<BufferPoolOptions>;
  #idle: Uint8Array[] = [];
  #idleBytes = 0;

  constructor(options: BufferPoolOptions = {}) {
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Bytes of the buffers that are kept for reuse. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  /** Unleased memory for small lines: 32 KiB, or `byteLength` if that is more. It is never reused. */
  slab(byteLength = SLAB_BYTES): Uint8Array {
    return this.#options.allocate(Math.max(byteLength, SLAB_BYTES));
  }

  /**
   * Leases a buffer of at least `byteLength` bytes. A released buffer is reused only after the code that releases it has
   * returned, because its callers may still look at the bytes.
   */
  lease(byteLength: number): Lease {
    const size = this.#sizeFor(byteLength);
    return Lease.on(this.#takeIdle(size) ?? this.#options.allocate(size), this.#onReleased);
  }

  clear(): void {
    for (const memory of this.#idle.splice(0)) this.#options.free(memory);
    this.#idleBytes = 0;
  }

  readonly #onReleased = (memory: Uint8Array, isKept: boolean): void =>
    this.#options.later(() => (isKept ? this.#keep(memory) : this.#options.free(memory)));

  #keep(memory: Uint8Array): void {
    if (this.#idleBytes + memory.length > this.#options.maxIdleBytes) {
      this.#options.free(memory);
      return;
    }
    this.#idle.push(memory);
    this.#idleBytes += memory.length;
    this.#options.onIdle();
  }

  #sizeFor(byteLength: number): number {
    return this.#options.sizes.find((size) => size >= byteLength) ?? byteLength;
  }

  /** Prefers the buffer that was used last, because more of it is in the processor's caches. */
  #takeIdle(size: number): Uint8Array | undefined {
    const index = this.#idle.findLastIndex(({ length }) => length === size);
    if (index < 0) return undefined;
    const [memory] = this.#idle.splice(index, 1);
    this.#idleBytes -= size;
    return memory;
  }
}

const DEFAULTS: Required<BufferPoolOptions> = {
  allocate: (byteLength) => new Uint8Array(byteLength),
  free: () => {},
  sizes: SIZES,
  maxIdleBytes: 0,
  onIdle: () => {},
  later: (task) => task(),
};

/** Memory of the buffer pool, and the number of its leases that are not released yet. */
interface Loan {
  readonly memory: Uint8Array;
  readonly onReleased: OnReleased;
  holders: number;
  /** Whether the memory may be used for another line. */
  isKept: boolean;
}

type OnReleased = (memory: Uint8Array, isKept: boolean) => void;

/** The first lease of each memory. `Lease.of` finds it from any bytes of a line, so code in between need not pass it on. */
const leases = new WeakMap<ArrayBufferLike, Lease>();

/**
 * The right to use the memory that a large line stands in. The memory is used for another line once all leases on it are released.
 *
 * The line reader makes a line's first lease. The code that builds a message from the line's bytes attaches the lease to the message
 * (`SplicedMessage.lease`), and the code that writes or drops the message releases it. A lease that is never released does no harm, because
 * the garbage collector frees the memory together with its last message. Small lines have no lease, because they share memory that is never
 * reused.
 */
export class Lease {
  readonly #loan: Loan;
  #isReleased = false;

  private constructor(loan: Loan) {
    this.#loan = loan;
  }

  /**
   * Makes the first lease on `memory`. `onReleased` is called once, when this lease and all that it is shared with are
   * released; `isKept` is `false` if one of them was discarded.
   */
  static on(memory: Uint8Array, onReleased: OnReleased): Lease {
    const lease = new Lease({ memory, onReleased, holders: 1, isKept: true });
    leases.set(memory.buffer, lease);
    return lease;
  }

  /** The first lease on the memory that these bytes stand in; `undefined` if there is none or all are released. */
  static of({ buffer }: Uint8Array): Lease | undefined {
    return leases.get(buffer);
  }

  get memory(): Uint8Array {
    return this.#loan.memory;
  }

  /** Shares the memory with another message: returns a second lease, to be released as well. This one must not be released yet. */
  retain(): Lease {
    this.#loan.holders += 1;
    return new Lease(this.#loan);
  }

  /** Gives up this lease. Its holder must not look at the bytes any more. Calls after the first do nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const loan = this.#loan;
    loan.holders -= 1;
    if (loan.holders > 0) return;
    leases.delete(loan.memory.buffer);
    loan.onReleased(loan.memory, loan.isKept);
  }

  /** Releases this lease. The memory is then freed instead of reused for another line. */
  discard(): void {
    if (!this.#isReleased) this.#loan.isKept = false;
    this.release();
  }
}
