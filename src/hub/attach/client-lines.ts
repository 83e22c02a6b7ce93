import { lineAfter } from '../wire.js';

const NEWLINE = 0x0a;
const [TAB, CARRIAGE_RETURN, SPACE] = [0x09, 0x0d, 0x20];
/** No hub takes a longer line, so none is kept to be sent again. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** The beginning of a line that is too long, which shows its id. */
const HEAD_BYTES = 1024;

/** A line of the client, without its newline, in the pieces in which it was read. */
export interface ClientLine {
  readonly pieces: readonly Uint8Array[];
  /** The line was too long to be kept; `pieces` is its beginning. */
  readonly isCut: boolean;
  /** The line was sent to another hub before, and its answer is not for the client. */
  readonly isReplay: boolean;
}

/**
 * Cuts what a client writes into lines, and numbers them as the hub does: a line of nothing but white space has no number.
 * The bytes are not copied.
 */
export class ClientLines {
  readonly #onLine: (line: Uint8Array | readonly Uint8Array[], isCut: boolean) => void;
  /** The unfinished line. */
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #isBlank = true;

  /** `onLine` gets the line in one piece or in several; never a blank one. */
  constructor(onLine: (line: Uint8Array | readonly Uint8Array[], isCut: boolean) => void) {
    this.#onLine = onLine;
  }

  /** The beginning of the line that has not ended. */
  get unfinished(): readonly Uint8Array[] {
    return this.#pieces;
  }

  /** Takes what the client has written next. Keeps views of `bytes`. */
  add(bytes: Uint8Array): void {
    let start = 0;
    for (;;) {
      const end = bytes.indexOf(NEWLINE, start);
      if (end === -1) break;
      this.#end(bytes, start, end);
      start = end + 1;
    }
    if (start < bytes.length) this.#begin(bytes.subarray(start));
  }

  #end(bytes: Uint8Array, start: number, end: number): void {
    if (this.#bytes === 0) {
      if (!isBlank(bytes, start, end)) this.#onLine(bytes.subarray(start, end), false);
      return;
    }
    if (end > start) this.#begin(bytes.subarray(start, end));
    const pieces = this.#pieces;
    const isCut = this.#bytes > MAX_LINE_BYTES;
    const isEmpty = this.#isBlank;
    this.#pieces = [];
    this.#bytes = 0;
    this.#isBlank = true;
    if (!isEmpty) this.#onLine(pieces, isCut);
  }

  #begin(piece: Uint8Array): void {
    this.#bytes += piece.length;
    this.#isBlank &&= isBlank(piece, 0, piece.length);
    if (this.#bytes <= MAX_LINE_BYTES) this.#pieces.push(piece);
    else this.#pieces = this.#pieces.slice(0, 1).map((first) => first.slice(0, HEAD_BYTES));
  }
}

function isBlank(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at];
    if (byte !== SPACE && byte !== TAB && byte !== CARRIAGE_RETURN) return false;
  }
  return true;
}

/** The lines that were sent to one hub and that it has not settled, by their numbers. */
export class UnsettledLines {
  readonly #lines = new Map<number, ClientLine>();
  #last = 0;

  get size(): number {
    return this.#lines.size;
  }

  /** The line that is sent next. */
  add(line: ClientLine): void {
    this.#last = lineAfter(this.#last);
    this.#lines.set(this.#last, line);
  }

  get(number: number): ClientLine | undefined {
    return this.#lines.get(number);
  }

  settle(number: number): void {
    this.#lines.delete(number);
  }

  /** All lines, in the order in which they were sent. */
  get all(): readonly ClientLine[] {
    return [...this.#lines.values()];
  }
}
