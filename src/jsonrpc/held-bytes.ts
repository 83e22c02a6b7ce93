/** Pieces from this size on are kept as they came; one that is smaller would cost more than it holds. */
const PIECE_BYTES = 4 * 1024;
const SHELF_BYTES = 4 * PIECE_BYTES;

const EMPTY = new Uint8Array(0);

/**
 * Bytes that come in pieces until they are wanted as one: what is large is copied once, however many pieces it came in,
 * and what is small is copied together as it comes.
 *
 * So is what fits into a room that was reserved. Then the chunks that the pieces are parts of are garbage at once; those
 * that live until the last one is there are left to a full collection, and that takes longer than all the copies.
 */
export class HeldBytes {
  #pieces: Uint8Array[] = [];
  #length = 0;
  /** Where small pieces go; of it, what is a piece already and what is filled since. */
  #shelf = EMPTY;
  #shelved = 0;
  #filled = 0;

  get length(): number {
    return this.#length;
  }

  /** Keeps the piece, or a copy of it. */
  add(piece: Uint8Array): void {
    this.#length += piece.length;
    if (piece.length < PIECE_BYTES || this.#filled + piece.length <= this.#shelf.length) {
      this.#copy(piece);
    } else {
      this.#endShelved();
      this.#pieces.push(piece);
    }
  }

  /** Makes room for so many bytes, those that are held included. */
  reserve(byteLength: number): void {
    this.#shelf = this.#join(byteLength);
    this.#pieces = [];
    this.#shelved = 0;
    this.#filled = this.#length;
  }

  /** Everything as one array of bytes, which nobody else has. Nothing is held afterwards. */
  take(): Uint8Array {
    const isOnShelf = this.#filled === this.#length;
    // Whoever keeps it must not keep a room that is much larger.
    const isNearlyFull = isOnShelf && this.#filled >= this.#shelf.length * 0.75;
    const taken = isNearlyFull ? this.#shelf.subarray(0, this.#filled) : this.#join(this.#length);
    this.clear();
    return taken;
  }

  clear(): void {
    this.#pieces = [];
    this.#length = 0;
    this.#shelf = EMPTY;
    this.#shelved = 0;
    this.#filled = 0;
  }

  #join(byteLength: number): Uint8Array<ArrayBuffer> {
    this.#endShelved();
    const joined = new Uint8Array(byteLength);
    let position = 0;
    for (const piece of this.#pieces) {
      joined.set(piece, position);
      position += piece.length;
    }
    return joined;
  }

  #copy(piece: Uint8Array): void {
    if (this.#filled + piece.length > this.#shelf.length) {
      this.#endShelved();
      // The first one small, since most lines that come in two pieces are.
      this.#shelf = new Uint8Array(this.#pieces.length === 0 ? PIECE_BYTES : SHELF_BYTES);
      this.#shelved = 0;
      this.#filled = 0;
    }
    this.#shelf.set(piece, this.#filled);
    this.#filled += piece.length;
  }

  #endShelved(): void {
    if (this.#shelved < this.#filled) this.#pieces.push(this.#shelf.subarray(this.#shelved, this.#filled));
    this.#shelved = this.#filled;
  }
}
