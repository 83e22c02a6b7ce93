/** Memory of the buffer pool and how many leases on it are not released yet. */
interface Loan {
  readonly memory: Uint8Array;
  readonly onReleased: (memory: Uint8Array) => void;
  holders: number;
}

/** By the memory, so that a lease is found from any bytes of a line without passing through the code in between. */
const leases = new WeakMap<ArrayBufferLike, Lease>();

/**
 * The right to use the memory that a large line stands in. The memory is used for another line once all leases on it
 * are released.
 *
 * The line reader makes a line's first lease. The code that builds a message from the line's bytes attaches the lease
 * to the message (`SplicedMessage.lease`), and the code that writes or drops the message releases it. A lease that
 * nobody releases does no harm: the garbage collector frees the memory together with its last message. Small lines have
 * no lease, because they share memory that is never reused.
 */
export class Lease {
  readonly #loan: Loan;
  #isReleased = false;

  private constructor(loan: Loan) {
    this.#loan = loan;
  }

  /**
   * Makes the first lease on `memory`. `onReleased` is called once, when this lease and all that it is shared with are
   * released.
   */
  static on(memory: Uint8Array, onReleased: (memory: Uint8Array) => void): Lease {
    const lease = new Lease({ memory, onReleased, holders: 1 });
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

  /**
   * Shares the memory with another message: returns a second lease, to be released as well. This one must not be
   * released yet.
   */
  retain(): Lease {
    this.#loan.holders += 1;
    return new Lease(this.#loan);
  }

  /** Gives up this lease: its holder does not look at the bytes any more. Calls after the first do nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const loan = this.#loan;
    loan.holders -= 1;
    if (loan.holders > 0) return;
    leases.delete(loan.memory.buffer);
    loan.onReleased(loan.memory);
  }
}
