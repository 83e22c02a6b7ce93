/** What Node reads from a pipe at most at once. */
export const READ_BYTES = 64 * 1024;

/**
 * Reads bytes as Node would from a pipe: where the reader has room for them, to there, and otherwise, as in builds that
 * are older, to fresh memory that `take` is given.
 */
export function read(bytes, reader, take) {
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + Math.min(READ_BYTES, reader.freeSpace?.length ?? READ_BYTES));
    at += piece.length;
    if (reader.freeSpace === undefined) {
      take(Buffer.from(piece));
    } else {
      reader.freeSpace.set(piece);
      reader.filled(piece.length);
    }
  }
}
