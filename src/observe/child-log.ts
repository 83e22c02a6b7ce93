import type { Redact } from './redact.js';

const MAX_BYTES = 64 * 1024;
const MAX_LINE_CHARACTERS = 8 * 1024;
/** What is read of a longer line, so that a secret where the shown part ends is still recognised as one. */
const MAX_READ_BYTES = MAX_LINE_CHARACTERS * 2;
/** The end of what was read may be half a secret, which nothing recognises. */
const UNSURE_CHARACTERS = 4 * 1024;
const NOTHING_SURE = '[a long line that is full of secrets]';
/** A child that says more is looping, and reading it must not keep the others waiting. */
const MAX_LINES = 1_000;
const PERIOD_MS = 1_000;
const NEWLINE = 0x0a;

export interface ChildLogOptions {
  readonly redact: Redact;
  /** Milliseconds on the monotonic clock. */
  readonly now: () => number;
  /** Called for each line as it is kept. */
  readonly onLine?: (line: string) => void;
}

/**
 * The last lines that one server wrote to stderr, with what it wrote to stdout that was no message.
 *
 * Secrets are removed before a line is kept. Of long lines the beginning is kept, of many lines the last ones, and of
 * more than 1,000 in a second the first ones: the others are counted, and one line says how many they were.
 */
export class ChildLog {
  readonly #redact: Redact;
  readonly #now: () => number;
  readonly #onLine: (line: string) => void;
  readonly #lines: string[] = [];
  readonly #decoder = new TextDecoder();
  #length = 0;
  #partial = new Uint8Array(0);
  #partialLength = 0;
  #periodStart = Number.NEGATIVE_INFINITY;
  #linesInPeriod = 0;
  #untold = 0;
  #dropped = 0;

  constructor({ redact, now, onLine = () => {} }: ChildLogOptions) {
    this.#redact = redact;
    this.#now = now;
    this.#onLine = onLine;
  }

  /** Oldest first. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** How many lines were dropped because there were too many at once. */
  get droppedLines(): number {
    return this.#dropped;
  }

  /** Bytes of stderr, cut anywhere. */
  write(chunk: Uint8Array): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#extend(chunk.subarray(start, end));
      this.#endLine();
      start = end + 1;
    }
    this.#extend(chunk.subarray(start));
  }

  /** A whole line from elsewhere. */
  add(line: string): void {
    if (this.#isInTime()) this.#take(line, line.length >= MAX_READ_BYTES);
  }

  /** The stream ended; what stands without a line end is a line all the same. */
  end(): void {
    this.#endLine();
    this.#tellDropped();
  }

  #extend(piece: Uint8Array): void {
    const kept = piece.subarray(0, MAX_READ_BYTES - this.#partialLength);
    const length = this.#partialLength + kept.length;
    if (length > this.#partial.length) {
      const grown = new Uint8Array(Math.min(MAX_READ_BYTES, Math.max(length, this.#partial.length * 2)));
      grown.set(this.#partial.subarray(0, this.#partialLength));
      this.#partial = grown;
    }
    this.#partial.set(kept, this.#partialLength);
    this.#partialLength = length;
  }

  #endLine(): void {
    const length = this.#partialLength;
    this.#partialLength = 0;
    if (length === 0 || !this.#isInTime()) return;
    this.#take(this.#decoder.decode(this.#partial.subarray(0, length)), length >= MAX_READ_BYTES);
  }

  #isInTime(): boolean {
    const now = this.#now();
    if (now - this.#periodStart >= PERIOD_MS) {
      this.#tellDropped();
      this.#periodStart = now;
      this.#linesInPeriod = 0;
    }
    this.#linesInPeriod += 1;
    if (this.#linesInPeriod <= MAX_LINES) return true;
    this.#untold += 1;
    this.#dropped += 1;
    return false;
  }

  #tellDropped(): void {
    if (this.#untold > 0) this.#keep(`[${this.#untold} lines were dropped here: more than ${MAX_LINES} in a second]`);
    this.#untold = 0;
  }

  #take(line: string, isCut: boolean): void {
    const redacted = this.#redact(line.slice(0, MAX_READ_BYTES));
    const sure = isCut ? redacted.slice(0, -UNSURE_CHARACTERS) : redacted;
    const clean = sure.slice(0, MAX_LINE_CHARACTERS).trimEnd() || (isCut ? NOTHING_SURE : '');
    if (clean !== '') this.#keep(clean);
  }

  #keep(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (this.#length > MAX_BYTES) this.#length -= this.#lines.shift()?.length ?? 0;
    this.#onLine(line);
  }
}
