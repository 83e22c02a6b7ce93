/** Receives bytes in memory of its own, so that the code that reads them allocates none. */
export interface ByteReader {
  /**
   * Memory for the next bytes, from its beginning; never empty. It stays the same until `filled` is called, and may
   * be different memory afterwards. `whenMoved` reports a change in between.
   */
  readonly freeSpace: Uint8Array;
  /** `listener` is called when `freeSpace` is replaced before it was filled. Nothing may be written to the old memory then. */
  whenMoved?(listener: () => void): void;
  /** Tells the reader that `byteLength` bytes, at least one, were written to `freeSpace`. */
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
