import { type ByteReader, copyInto } from '../../io/byte-reader.js';
import type { WorkAccount } from '../../io/work-budget.js';

const NEWLINE = 0x0a;
/** A piece of short lines, at first and after one that answered nothing. */
const PIECE_BYTES = 512;
/** Only lines that are shorter cost so much more than their bytes that the piece matters. */
const SHORT_LINE_BYTES = 128;

/**
 * Passes bytes to a reader, and stops within a read when the account has to wait.
 *
 * A single read of short lines can hold thousands of them, which would hold up every other server. So such a read is
 * passed on in pieces, which grow while they answer requests. The rest of the read waits here; it is never more than one
 * read, since the stream is paused meanwhile.
 */
export class YieldingReader implements ByteReader {
  readonly #reader: ByteReader;
  readonly #work: Pick<WorkAccount, 'chargedMs' | 'mustWait'>;
  #rest: Uint8Array = NOTHING;
  #onMoved: () => void = () => {};

  constructor(reader: ByteReader, work: Pick<WorkAccount, 'chargedMs' | 'mustWait'>) {
    this.#reader = reader;
    this.#work = work;
  }

  get freeSpace(): Uint8Array {
    return this.#reader.freeSpace;
  }

  whenMoved(listener: () => void): void {
    this.#onMoved = listener;
    this.#reader.whenMoved?.(listener);
  }

  filled(byteLength: number): void {
    const isFirst = this.#rest.length === 0;
    // A stream that cannot stop within a chunk goes on although it is paused.
    if (isFirst && (byteLength <= PIECE_BYTES || !hasShortLines(this.freeSpace, byteLength))) {
      this.#reader.filled(byteLength);
      return;
    }
    const bytes = this.freeSpace.slice(0, byteLength);
    this.#rest = isFirst ? bytes : Buffer.concat([this.#rest, bytes]);
    if (isFirst) this.#passOn();
  }

  /** Passes on what waits here, as far as the account need not wait. Call it before the stream is resumed. */
  proceed(): void {
    if (this.#rest.length === 0) return;
    try {
      this.#passOn();
    } finally {
      this.#onMoved();
    }
  }

  #passOn(): void {
    let pieceBytes = PIECE_BYTES;
    while (this.#rest.length > 0 && !this.#work.mustWait()) {
      const piece = this.#rest.subarray(0, pieceBytes);
      this.#rest = this.#rest.subarray(piece.length);
      const { chargedMs } = this.#work;
      copyInto(this.#reader, piece);
      pieceBytes = this.#work.chargedMs === chargedMs ? pieceBytes * 2 : PIECE_BYTES;
    }
  }
}

const NOTHING = new Uint8Array(0);

/** Whether lines are short, at the beginning of the bytes or in their middle. */
function hasShortLines(bytes: Uint8Array, byteLength: number): boolean {
  return isShort(bytes, 0, byteLength) || isShort(bytes, byteLength >> 1, byteLength);
}

function isShort(bytes: Uint8Array, from: number, end: number): boolean {
  const newline = bytes.subarray(from, Math.min(end, from + SHORT_LINE_BYTES)).indexOf(NEWLINE);
  return newline >= 0;
}
