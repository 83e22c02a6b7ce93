import type { TokenText } from './splice.js';

const ZERO = 0x30;
const MAX_DIGITS = 16;
const CHUNK_BYTES = 4 * 1024;

/**
 * Writes non-negative integers, such as the gateway's own ids, as edits.
 *
 * The engine caches each text that it makes of a number, and ids never repeat, so texts would keep the garbage
 * collector busy. So would an array of bytes for each id. The digits of many ids therefore share larger arrays.
 */
export class Digits {
  /** Allocated with the first number: each session has a `Digits`, and few sessions write any. */
  #bytes = new Uint8Array(0);
  #filled = CHUNK_BYTES;

  /** Returns the digits of `value` as part of a text. That text never changes, so the edit may be kept. */
  write(value: number): TokenText {
    if (this.#filled + MAX_DIGITS > CHUNK_BYTES) {
      this.#bytes = new Uint8Array(CHUNK_BYTES);
      this.#filled = 0;
    }
    const start = this.#filled;
    let end = start + 1;
    for (let bound = 10; value >= bound; bound *= 10) end += 1;
    for (let at = end - 1, rest = value; at >= start; at -= 1) {
      // Most ids fit into 32-bit integers, which divide faster.
      const tenth = rest < 0x7fffffff ? (rest / 10) | 0 : Math.floor(rest / 10);
      this.#bytes[at] = ZERO + (rest - tenth * 10);
      rest = tenth;
    }
    this.#filled = end;
    return { text: this.#bytes, part: { start, end } };
  }
}
