import type { Redact } from './redact.js';

const MAX_BYTES = 64 * 1024;
const MAX_LINE_CHARACTERS = 8 * 1024;
/** A longer prefix is read than shown, so that a secret at the cut is still recognized. */
const MAX_READ_BYTES = MAX_LINE_CHARACTERS * 2;
/** The last part of a cut line is dropped: it can be half a secret, which no pattern recognizes. */
const DROPPED_CHARACTERS = 4 * 1024;
const REDACTED_LINE = '[a long line that is full of secrets]';
/** A server that writes more is looping, and must not slow down the others. */
const MAX_LINES = 1_000;
const PERIOD_MS = 1_000;
const NEWLINE = 0x0a;

export interface ChildLogOptions {
  readonly redact: Redact;
  /** Milliseconds on the monotonic clock. */
  readonly now: () => number;
  /** Called for each stored line. */
  readonly onLine?: (line: string) => void;
}

/**
 * The last lines that one server wrote to stderr, and the lines on its stdout that were not messages.
 *
 * Secrets are removed before a line is stored. Long lines are cut, and the oldest lines are dropped when there are too
 * many. Beyond 1,000 lines in a second, the rest of that second is dropped, and one line reports how many they were.
 */
export class ChildLog {
  readonly #redact: Redact;
  readonly #now: () => number;
  readonly #onLine: (line: string) => void;
  readonly #lines: string[] = [];
  readonly #decoder = new TextDecoder();
  /** Where the lines of the latest attempt to run the server begin, and those of the attempt before it. */
  #latestStart = 0;
  #previousStart = 0;
  #length = 0;
  #partial = new Uint8Array(0);
  #partialLength = 0;
  #periodStart = Number.NEGATIVE_INFINITY;
  #linesInPeriod = 0;
  #unreportedDrops = 0;
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

  /** The lines since the latest attempt began, or those of the attempt before it. */
  linesOf(attempt: 'latest' | 'previous'): readonly string[] {
    return attempt === 'latest'
      ? this.#lines.slice(this.#latestStart)
      : this.#lines.slice(this.#previousStart, this.#latestStart);
  }

  /** The server is started again, or its package is installed again: the lines before say nothing about it. */
  beginAttempt(): void {
    this.#previousStart = this.#latestStart;
    this.#latestStart = this.#lines.length;
  }

  /** Adds the whole output of an attempt that has ended. */
  addAttempt(lines: readonly string[]): void {
    this.beginAttempt();
    for (const line of lines) this.add(line);
  }

  /** How many lines the rate limit has dropped. */
  get droppedLines(): number {
    return this.#dropped;
  }

  /** Adds bytes of stderr; a chunk can begin and end inside a line. */
  write(chunk: Uint8Array): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#extend(chunk.subarray(start, end));
      this.#endLine();
      start = end + 1;
    }
    this.#extend(chunk.subarray(start));
  }

  /** Adds a whole line that does not come from stderr. */
  add(line: string): void {
    if (this.#isWithinRate()) this.#addCut(line, line.length >= MAX_READ_BYTES);
  }

  /** The stream has ended; an unfinished line counts as a line. */
  end(): void {
    this.#endLine();
    this.#reportDropped();
  }

  #extend(piece: Uint8Array): void {
    const part = piece.subarray(0, MAX_READ_BYTES - this.#partialLength);
    const length = this.#partialLength + part.length;
    if (length > this.#partial.length) {
      const grown = new Uint8Array(Math.min(MAX_READ_BYTES, Math.max(length, this.#partial.length * 2)));
      grown.set(this.#partial.subarray(0, this.#partialLength));
      this.#partial = grown;
    }
    this.#partial.set(part, this.#partialLength);
    this.#partialLength = length;
  }

  #endLine(): void {
    const length = this.#partialLength;
    this.#partialLength = 0;
    if (length === 0 || !this.#isWithinRate()) return;
    this.#addCut(this.#decoder.decode(this.#partial.subarray(0, length)), length >= MAX_READ_BYTES);
  }

  #isWithinRate(): boolean {
    const now = this.#now();
    if (now - this.#periodStart >= PERIOD_MS) {
      this.#reportDropped();
      this.#periodStart = now;
      this.#linesInPeriod = 0;
    }
    this.#linesInPeriod += 1;
    if (this.#linesInPeriod <= MAX_LINES) return true;
    this.#unreportedDrops += 1;
    this.#dropped += 1;
    return false;
  }

  #reportDropped(): void {
    if (this.#unreportedDrops > 0)
      this.#store(`[${this.#unreportedDrops} lines were dropped here: more than ${MAX_LINES} in a second]`);
    this.#unreportedDrops = 0;
  }

  #addCut(line: string, isCut: boolean): void {
    const redacted = this.#redact(line.slice(0, MAX_READ_BYTES));
    const certain = isCut ? redacted.slice(0, -DROPPED_CHARACTERS) : redacted;
    const clean = certain.slice(0, MAX_LINE_CHARACTERS).trimEnd() || (isCut ? REDACTED_LINE : '');
    if (clean !== '') this.#store(clean);
  }

  #store(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (this.#length > MAX_BYTES) {
      this.#length -= this.#lines.shift()?.length ?? 0;
      this.#latestStart = Math.max(0, this.#latestStart - 1);
      this.#previousStart = Math.max(0, this.#previousStart - 1);
    }
    this.#onLine(line);
  }
}
