import type { TokenText } from './splice.js';

const ZERO = 0x30;
const MAX_DIGITS = 16;
const CHUNK_BYTES = 4 * 1024;

/**
 * Writes whole numbers that are not negative, such as ids of ours, as edits. The engine keeps every text that it makes of
 * a number for a while, and with ids, which are never the same again, that keeps its garbage collector busy; and so would
 * an array of bytes for each, hence they stand one behind the other in larger ones.
 */
export class Digits {
  /** None as long as nothing was written: many are made, one for each session, and few write. */
  #bytes = new Uint8Array(0);
  #filled = CHUNK_BYTES;

  /** What is written is never changed, so an edit may be kept for as long as one likes. */
  write(value: number): TokenText {
    if (this.#filled + MAX_DIGITS > CHUNK_BYTES) {
      this.#bytes = new Uint8Array(CHUNK_BYTES);
      this.#filled = 0;
    }
    const start = this.#filled;
    let end = start + 1;
    for (let bound = 10; value >= bound; bound *= 10) end += 1;
    for (let at = end - 1, rest = value; at >= start; at -= 1) {
      // Most are small enough for whole numbers of the machine, which divide faster.
      const tenth = rest < 0x7fffffff ? (rest / 10) | 0 : Math.floor(rest / 10);
      this.#bytes[at] = ZERO + (rest - tenth * 10);
      rest = tenth;
    }
    this.#filled = end;
    return { text: this.#bytes, part: { start, end } };
  }
}
