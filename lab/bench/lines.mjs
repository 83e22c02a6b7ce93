const NEWLINE = 0x0a;
/** Lines from this size on are not made into text: that would cost more than what is measured. */
const LARGE_BYTES = 64 * 1024;
/** An id stands within so many bytes of either end of a message whose payload is in the middle. */
const END_BYTES = 256;

/** Cuts bytes into lines: text for the small ones, a `LargeLine` for the others. */
export class Lines {
  #pieces = [];
  #byteLength = 0;

  push(chunk, onLine) {
    const first = chunk.indexOf(NEWLINE);
    if (first < 0) {
      this.#keep(chunk);
      return;
    }
    let start = 0;
    if (this.#byteLength > 0) {
      this.#keep(chunk.subarray(0, first));
      start = first + 1;
      onLine(this.#takeKept());
    }
    const last = chunk.lastIndexOf(NEWLINE);
    if (last >= start) for (const line of chunk.utf8Slice(start, last).split('\n')) onLine(line);
    if (last + 1 < chunk.length) this.#keep(chunk.subarray(last + 1));
  }

  #keep(piece) {
    this.#pieces.push(piece);
    this.#byteLength += piece.length;
  }

  #takeKept() {
    const line = new LargeLine(this.#pieces, this.#byteLength);
    this.#pieces = [];
    this.#byteLength = 0;
    return line.byteLength < LARGE_BYTES ? line.text() : line;
  }
}

/** A message that is looked at from its ends. */
class LargeLine {
  #pieces;

  constructor(pieces, byteLength) {
    this.#pieces = pieces;
    this.byteLength = byteLength;
  }

  get head() {
    const [first, ...rest] = this.#pieces;
    const whole = first.length < END_BYTES ? Buffer.concat([first, ...rest.slice(0, 2)]) : first;
    return whole.latin1Slice(0, Math.min(END_BYTES, whole.length));
  }

  /** The id, a whole number, wherever the member stands: the official SDK puts it behind the payload. */
  get id() {
    const [, atHead] = ID.exec(this.head) ?? [];
    const [, atEnd] = atHead === undefined ? (ID.exec(this.end) ?? []) : [];
    return Number(atHead ?? atEnd);
  }

  text() {
    return Buffer.concat(this.#pieces).utf8Slice();
  }

  get end() {
    return Buffer.concat(this.#pieces.slice(-2)).subarray(-END_BYTES).latin1Slice();
  }
}

const ID = /"id":(\d+)/;
