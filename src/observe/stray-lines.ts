/** The last lines, and the last bytes of them, that are kept until somebody looks. */
const MAX_LINES = 1_000;
const MAX_BYTES = 64 * 1024;
/** How much of a line is kept. */
const MAX_LINE_BYTES = 1024;

export interface StrayLine {
  readonly bytes: Uint8Array;
  /** Why the line is no message. */
  readonly reason: string;
  /** How many bytes of stderr had come before the line. */
  readonly position: number;
  readonly byteLength: number;
}

/**
 * The last lines on a server's stdout that were no messages, as they came.
 *
 * Nothing is decoded until somebody looks, so that a server that writes such lines without end costs little.
 */
export class StrayLines {
  readonly #lines: StrayLine[] = [];
  /** Where the lines begin that are kept. Those before are removed together, because each removal moves all others. */
  #first = 0;
  #keptBytes = 0;
  #lostBytes = 0;

  add(line: Uint8Array, reason: string, position: number): void {
    const bytes = line.slice(0, MAX_LINE_BYTES);
    this.#lines.push({ bytes, reason, position, byteLength: line.length });
    this.#keptBytes += bytes.length;
    while (this.#lines.length - this.#first > MAX_LINES || this.#keptBytes > MAX_BYTES) this.#lose();
  }

  /** Takes all lines, oldest first, and tells how many bytes of older ones are lost. */
  take(): { readonly lines: readonly StrayLine[]; readonly lostBytes: number } {
    const taken = { lines: this.#lines.slice(this.#first), lostBytes: this.#lostBytes };
    this.#lines.length = 0;
    this.#first = 0;
    this.#keptBytes = 0;
    this.#lostBytes = 0;
    return taken;
  }

  #lose(): void {
    const line = this.#lines[this.#first];
    this.#keptBytes -= line?.bytes.length ?? 0;
    this.#lostBytes += line?.byteLength ?? 0;
    this.#first += 1;
    if (this.#first < MAX_LINES) return;
    this.#lines.splice(0, this.#first);
    this.#first = 0;
  }
}
