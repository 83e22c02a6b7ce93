/** The last bytes of the output that are kept until somebody looks. */
const MAX_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;

export interface TakenLine {
  readonly bytes: Uint8Array;
  /** How many bytes had come when the line was finished. */
  readonly position: number;
}

/** Lines that were taken, oldest first. */
export interface TakenLines {
  readonly lines: readonly TakenLine[];
  /** Bytes of older lines that are lost: newer output took their place, or there were too many lines. */
  readonly lostBytes: number;
}

/**
 * The last 64 KiB that a server wrote to stderr, as they came.
 *
 * Nothing is searched or split until somebody looks, so that a server that writes without end costs no more than a copy
 * of its bytes. What a line lost at its beginning is dropped with it: the rest can be half a secret, which no pattern
 * recognizes.
 */
export class RawOutput {
  /** A ring. Allocated for the first read. */
  #memory: Uint8Array | undefined;
  /** Where the next byte goes. */
  #end = 0;
  #length = 0;
  #receivedBytes = 0;
  #lostBytes = 0;
  #isHeadLost = false;

  /** All bytes that came, kept or not. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** Where to write the next bytes, from its beginning; never empty. */
  get freeSpace(): Uint8Array {
    this.#memory ??= new Uint8Array(MAX_BYTES);
    return this.#memory.subarray(this.#end);
  }

  /** So many bytes were written to `freeSpace`. */
  filled(byteLength: number): void {
    this.#end = (this.#end + byteLength) % MAX_BYTES;
    this.#length += byteLength;
    this.#receivedBytes += byteLength;
    if (this.#length <= MAX_BYTES) return;
    this.#lostBytes += this.#length - MAX_BYTES;
    this.#length = MAX_BYTES;
    this.#isHeadLost = true;
  }

  /** Takes all whole lines, and returns the last `max` of them that are not blank. */
  take(max: number): TakenLines {
    const bytes = this.#bytes();
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    if (end === 0) return { lines: [], lostBytes: this.#takeLost() };
    const from = this.#receivedBytes - this.#length;
    this.#length -= end;
    return this.#split(bytes.subarray(0, end), from, max);
  }

  /** Takes everything; an unfinished line counts as a line. */
  takeAll(max: number): TakenLines {
    const bytes = this.#bytes();
    const from = this.#receivedBytes - this.#length;
    this.#length = 0;
    return this.#split(bytes, from, max);
  }

  /** A copy of the bytes, in one piece. */
  #bytes(): Uint8Array {
    const memory = this.#memory ?? new Uint8Array(0);
    const bytes = new Uint8Array(this.#length);
    const start = this.#end - this.#length;
    if (start >= 0) {
      bytes.set(memory.subarray(start, this.#end));
    } else {
      bytes.set(memory.subarray(MAX_BYTES + start));
      bytes.set(memory.subarray(0, this.#end), -start);
    }
    return bytes;
  }

  /** `from` is how many bytes had come before these. */
  #split(bytes: Uint8Array, from: number, max: number): TakenLines {
    const first = this.#isHeadLost ? bytes.indexOf(NEWLINE) + 1 || bytes.length : 0;
    this.#isHeadLost = false;
    const lines: TakenLine[] = [];
    let end = skipSpaceBack(bytes, bytes.length, first);
    let lostBytes = first;
    // From the end, so that the last lines win, without a look at those before.
    while (end > first && lines.length < max) {
      const start = Math.max(first, bytes.lastIndexOf(NEWLINE, end - 1) + 1);
      lines.push({ bytes: bytes.subarray(start, end), position: from + end });
      if (lines.length === max) lostBytes = start;
      end = skipSpaceBack(bytes, start, first);
    }
    return { lines: lines.reverse(), lostBytes: this.#takeLost() + lostBytes };
  }

  #takeLost(): number {
    const lostBytes = this.#lostBytes;
    this.#lostBytes = 0;
    return lostBytes;
  }
}

/** Returns the end of the text before `end`, without the blank lines and the white space behind it. */
function skipSpaceBack(bytes: Uint8Array, end: number, first: number): number {
  let position = end;
  while (position > first && isSpace(bytes[position - 1])) position -= 1;
  return position;
}

function isSpace(byte: number | undefined): boolean {
  return byte === NEWLINE || byte === CARRIAGE_RETURN || byte === SPACE || byte === TAB;
}
