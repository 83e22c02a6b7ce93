/** Someone who has memory ready for what comes, so that nobody has to make any. */
export interface ByteReader {
  /**
   * Where the next bytes are to be read to, from its beginning; never empty. It is the same until `filled` is called, and
   * may be any other one afterwards.
   */
  readonly freeSpace: Uint8Array;
  /** So many bytes, one at least, were read into the room. */
  filled(byteLength: number): void;
}

/** Lets it read bytes that are somewhere else. */
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
