import { RawOutput, type TakenLine, type TakenLines } from './raw-output.js';
import type { Redact } from './redact.js';
import { type StrayLine, StrayLines } from './stray-lines.js';

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

export interface ChildLogOptions {
  readonly redact: Redact;
  /** Milliseconds on the monotonic clock. */
  readonly now: () => number;
  /** Called for each stored line. */
  readonly onLine?: (line: string) => void;
  /** Whether `onLine` wants each line as it comes. Otherwise output is made into lines when somebody looks. */
  readonly isFollowed?: () => boolean;
}

/**
 * The last lines that one server wrote to stderr, and the lines on its stdout that were not messages.
 *
 * Secrets are removed before a line is stored. Long lines are cut, and the oldest lines are dropped when there are too
 * many. Of what a server writes to stderr, the last 64 KiB wait unsplit until somebody looks, and so do the last 1,000
 * lines of stdout. At most 1,000 lines in a second are taken; one line reports how much was dropped.
 */
export class ChildLog {
  readonly #redact: Redact;
  readonly #now: () => number;
  readonly #onLine: (line: string) => void;
  readonly #isFollowed: () => boolean;
  readonly #raw = new RawOutput();
  readonly #stray = new StrayLines();
  readonly #lines: string[] = [];
  readonly #decoder = new TextDecoder();
  /** Where the lines of the latest attempt to run the server begin, and those of the attempt before it. */
  #latestStart = 0;
  #previousStart = 0;
  #length = 0;
  #periodStart = Number.NEGATIVE_INFINITY;
  #linesInPeriod = 0;
  #unreportedBytes = 0;
  #droppedBytes = 0;

  constructor({ redact, now, onLine = () => {}, isFollowed = () => false }: ChildLogOptions) {
    this.#redact = redact;
    this.#now = now;
    this.#onLine = onLine;
    this.#isFollowed = isFollowed;
  }

  /** Receives the bytes of stderr. */
  readonly stderr = {
    log: this,
    get freeSpace(): Uint8Array {
      return this.log.#raw.freeSpace;
    },
    filled(byteLength: number): void {
      this.log.#raw.filled(byteLength);
      if (this.log.#isFollowed()) this.log.#read(this.log.#room);
    },
  };

  /** Oldest first. */
  get lines(): readonly string[] {
    this.#read(MAX_LINES);
    return this.#lines;
  }

  /** The lines since the latest attempt began, or those of the attempt before it. */
  linesOf(attempt: 'latest' | 'previous'): readonly string[] {
    this.#read(MAX_LINES);
    return attempt === 'latest'
      ? this.#lines.slice(this.#latestStart)
      : this.#lines.slice(this.#previousStart, this.#latestStart);
  }

  /** The server is started again, or its package is installed again: the lines before say nothing about it. */
  beginAttempt(): void {
    this.#read(MAX_LINES);
    this.#previousStart = this.#latestStart;
    this.#latestStart = this.#lines.length;
  }

  /** Adds the whole output of an attempt that has ended. */
  addAttempt(lines: readonly string[]): void {
    this.beginAttempt();
    for (const line of lines) this.add(line);
  }

  /** Bytes of output that were dropped because too much came at once. */
  get droppedBytes(): number {
    return this.#droppedBytes;
  }

  /** Adds a whole line that does not come from the server's output. */
  add(line: string): void {
    this.#read(this.#room);
    this.#addCut(line, line.length >= MAX_READ_BYTES);
  }

  /** Adds a line of stdout that is no message. */
  addJunk(bytes: Uint8Array, reason: string): void {
    this.#stray.add(bytes, reason, this.#raw.receivedBytes);
    if (this.#isFollowed()) this.#read(this.#room);
  }

  /** The stream has ended; an unfinished line counts as a line. */
  end(): void {
    this.#take(this.#raw.takeAll(MAX_LINES), MAX_LINES);
    this.#reportDropped();
  }

  /** How many lines may be taken now. */
  get #room(): number {
    const now = this.#now();
    if (now - this.#periodStart >= PERIOD_MS) {
      this.#periodStart = now;
      this.#linesInPeriod = 0;
    }
    return MAX_LINES - this.#linesInPeriod;
  }

  /** Splits what came from stderr into lines, and takes the last `max` lines of both streams. */
  #read(max: number): void {
    if (max > 0) this.#take(this.#raw.take(max), max);
  }

  #take(raw: TakenLines, max: number): void {
    const stray = this.#stray.take();
    const all = inOrder(raw.lines, stray.lines);
    const tooMany = all.splice(0, Math.max(0, all.length - max));
    const lostBytes = tooMany.reduce((sum, line) => sum + lengthOf(line), raw.lostBytes + stray.lostBytes);
    if (lostBytes > 0) this.#drop(lostBytes);
    if (all.length === 0) return;
    this.#linesInPeriod = Math.min(MAX_LINES, this.#linesInPeriod + all.length);
    this.#reportDropped();
    for (const line of all) {
      const text = this.#decoder.decode(line.bytes.subarray(0, MAX_READ_BYTES));
      if ('reason' in line) this.#addCut(`stdout (${line.reason}): ${text}`, false);
      else this.#addCut(text, line.bytes.length >= MAX_READ_BYTES);
    }
  }

  #drop(byteLength: number): void {
    this.#droppedBytes += byteLength;
    this.#unreportedBytes += byteLength;
  }

  #reportDropped(): void {
    const dropped = this.#unreportedBytes;
    this.#unreportedBytes = 0;
    if (dropped > 0) this.#store(`[${dropped} bytes of output were dropped here: too much came at once]`);
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

/** The lines of both streams as they came. */
function inOrder(raw: readonly TakenLine[], stray: readonly StrayLine[]): (TakenLine | StrayLine)[] {
  const all: (TakenLine | StrayLine)[] = [];
  let next = 0;
  for (const line of stray) {
    for (let before = raw[next]; before !== undefined && before.position <= line.position; before = raw[next]) {
      all.push(before);
      next += 1;
    }
    all.push(line);
  }
  return all.concat(raw.slice(next));
}

function lengthOf(line: TakenLine | StrayLine): number {
  return 'byteLength' in line ? line.byteLength : line.bytes.length;
}
