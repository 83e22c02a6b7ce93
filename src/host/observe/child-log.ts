import type { ByteReader } from '../../wire/io/byte-reader.js';
import type { Redact } from './redact.js';

const MAX_BYTES = 64 * 1024;
const MAX_LINE_CHARACTERS = 8 * 1024;
/** A longer prefix is read than shown, so that a secret at the cut is still recognized. */
const MAX_READ_BYTES = MAX_LINE_CHARACTERS * 2;
/** The last part of a cut line is dropped, because it can be half a secret, which no pattern recognizes. */
const DROPPED_CHARACTERS = 4 * 1024;
const REDACTED_LINE = '[a long line that is full of secrets]';
/** Limit of lines in a period, because a server that writes more is looping, and must not slow down the others. */
const MAX_LINES = 1_000;
const PERIOD_MS = 1_000;
const MAX_STARTS = 20;
/** A line of stdout that is no message is kept up to this length, because there may be very many of them. */
const MAX_STRAY_BYTES = 1024;

export interface ChildLogOptions {
  readonly redact: Redact;
  /** Milliseconds on the monotonic clock. */
  readonly now: () => number;
  /** Called for each stored line. */
  readonly onLine?: (line: string) => void;
  /** Whether `onLine` wants each line as it comes. Otherwise output is made into lines when the lines are read. */
  readonly isFollowed?: () => boolean;
}

/** A line, and the milliseconds since 1970 at which it came. */
export interface LogLine {
  readonly at: number;
  readonly text: string;
}

/**
 * The last lines that one server wrote to stderr, and the lines on its stdout that were not messages.
 *
 * Secrets are removed before a line is stored. Long lines are cut, and the oldest lines are dropped when there are too many. The
 * last 1,000 lines wait as bytes until they are read, so that a server that writes without end costs little. If `isFollowed`
 * returns true, at most 1,000 lines in a second are decoded. One line reports how much was dropped.
 */
export class ChildLog {
  readonly #redact: Redact;
  readonly #now: () => number;
  readonly #onLine: (line: string) => void;
  readonly #isFollowed: () => boolean;
  readonly #waiting = new WaitingLines();
  readonly #lines: LogLine[] = [];
  /** Times of the latest starts of the server, in milliseconds since 1970. */
  readonly starts: number[] = [];
  readonly #decoder = new TextDecoder();
  /** Indexes of the first lines of the latest attempt to run the server, and of the attempt before it. */
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

  readonly #stderr = new LineSplitter((line) => {
    this.#waiting.add({ at: Date.now(), bytes: line.slice(0, MAX_READ_BYTES), byteLength: line.length });
    this.#follow();
  });

  get stderr(): ByteReader {
    return this.#stderr;
  }

  /** The lines, oldest first. Decodes those that wait. */
  get lines(): readonly string[] {
    return this.timedLines.map(({ text }) => text);
  }

  get timedLines(): readonly LogLine[] {
    this.#read(MAX_LINES);
    return this.#lines;
  }

  /** The lines since the latest attempt began, or those of the attempt before it. */
  linesOf(attempt: 'latest' | 'previous'): readonly string[] {
    const { lines } = this;
    return attempt === 'latest' ? lines.slice(this.#latestStart) : lines.slice(this.#previousStart, this.#latestStart);
  }

  /** Begins an attempt when the server is started, because earlier lines say nothing about it. */
  beginAttempt(): void {
    this.#beginLines();
    if (this.starts.push(Date.now()) > MAX_STARTS) this.starts.shift();
  }

  #beginLines(): void {
    this.#read(MAX_LINES);
    this.#previousStart = this.#latestStart;
    this.#latestStart = this.#lines.length;
  }

  /** Adds the whole output of an attempt to install the package, which has ended. */
  addAttempt(lines: readonly string[]): void {
    this.#beginLines();
    for (const line of lines) this.add(line);
  }

  /** Bytes of output that were dropped because too much came at once. */
  get droppedBytes(): number {
    return this.#droppedBytes;
  }

  /** Adds a whole line that does not come from the server's output. */
  add(line: string): void {
    this.#read(this.#capacity);
    this.#addCut(line, line.length >= MAX_READ_BYTES, Date.now());
  }

  /** Adds a line of stdout that is no message. */
  addJunk(bytes: Uint8Array, reason: string): void {
    this.#waiting.add({ at: Date.now(), bytes: bytes.slice(0, MAX_STRAY_BYTES), byteLength: bytes.length, reason });
    this.#follow();
  }

  /** The stream has ended; an unfinished line counts as a line. */
  end(): void {
    this.#stderr.end();
    this.#read(MAX_LINES);
    this.#reportDropped();
  }

  #follow(): void {
    if (this.#isFollowed()) this.#read(this.#capacity);
  }

  /** Number of lines that may be decoded now. */
  get #capacity(): number {
    const now = this.#now();
    if (now - this.#periodStart >= PERIOD_MS) {
      this.#periodStart = now;
      this.#linesInPeriod = 0;
    }
    return MAX_LINES - this.#linesInPeriod;
  }

  /** Decodes the last `max` of the waiting lines, and drops those before. */
  #read(max: number): void {
    if (max <= 0) return;
    const { lines, lostBytes } = this.#waiting.take(max);
    if (lostBytes > 0) this.#drop(lostBytes);
    if (lines.length === 0) return;
    this.#linesInPeriod = Math.min(MAX_LINES, this.#linesInPeriod + lines.length);
    this.#reportDropped(lines[0]?.at);
    for (const { at, bytes, reason } of lines) {
      const text = this.#decoder.decode(bytes);
      if (reason === undefined) this.#addCut(text, bytes.length >= MAX_READ_BYTES, at);
      else this.#addCut(`stdout (${reason}): ${text}`, false, at);
    }
  }

  #drop(byteLength: number): void {
    this.#droppedBytes += byteLength;
    this.#unreportedBytes += byteLength;
  }

  #reportDropped(at = Date.now()): void {
    const dropped = this.#unreportedBytes;
    this.#unreportedBytes = 0;
    if (dropped > 0) this.#store(`[${dropped} bytes of output were dropped here: too much came at once]`, at);
  }

  #addCut(line: string, isCut: boolean, at: number): void {
    const redacted = this.#redact(line.slice(0, MAX_READ_BYTES));
    const certain = isCut ? redacted.slice(0, -DROPPED_CHARACTERS) : redacted;
    const clean = certain.slice(0, MAX_LINE_CHARACTERS).trimEnd() || (isCut ? REDACTED_LINE : '');
    if (clean !== '') this.#store(clean, at);
  }

  #store(text: string, at: number): void {
    this.#lines.push({ at, text });
    this.#length += text.length;
    while (this.#length > MAX_BYTES) {
      this.#length -= this.#lines.shift()?.text.length ?? 0;
      this.#latestStart = Math.max(0, this.#latestStart - 1);
      this.#previousStart = Math.max(0, this.#previousStart - 1);
    }
    this.#onLine(text);
  }
}

interface WaitingLine {
  readonly at: number;
  readonly bytes: Uint8Array;
  /** Length of the whole line, of which `bytes` may be the beginning. */
  readonly byteLength: number;
  /** Reason for which a line of stdout is no message; `undefined` for a line of stderr. */
  readonly reason?: string;
}

/** The last lines that wait until they are read, at most 1,000 lines and 64 KiB. */
class WaitingLines {
  #lines: WaitingLine[] = [];
  #keptBytes = 0;
  #lostBytes = 0;

  add(line: WaitingLine): void {
    this.#lines.push(line);
    this.#keptBytes += line.bytes.length;
    while (this.#lines.length > MAX_LINES || this.#keptBytes > MAX_BYTES) this.#dropOldest();
  }

  /** Takes the last `max` lines, oldest first. `lostBytes` is the length of the older lines, which are dropped. */
  take(max: number): { readonly lines: readonly WaitingLine[]; readonly lostBytes: number } {
    while (this.#lines.length > max) this.#dropOldest();
    const taken = { lines: this.#lines, lostBytes: this.#lostBytes };
    this.#lines = [];
    this.#keptBytes = 0;
    this.#lostBytes = 0;
    return taken;
  }

  #dropOldest(): void {
    const line = this.#lines.shift();
    this.#keptBytes -= line?.bytes.length ?? 0;
    this.#lostBytes += line?.byteLength ?? 0;
  }
}

/** Cuts a stream into lines that are not blank. Skips the rest of a line over 64 KiB. */
class LineSplitter implements ByteReader {
  readonly #onLine: (line: Uint8Array) => void;
  /** Allocated for the first read. */
  #memory: Uint8Array | undefined;
  /** Bytes of the unfinished line, at the beginning of the memory. */
  #length = 0;
  #skipsLine = false;

  constructor(onLine: (line: Uint8Array) => void) {
    this.#onLine = onLine;
  }

  get freeSpace(): Uint8Array {
    this.#memory ??= new Uint8Array(MAX_BYTES);
    return this.#memory.subarray(this.#length);
  }

  filled(byteLength: number): void {
    const memory = this.#memory ?? NOTHING;
    const end = this.#length + byteLength;
    let start = 0;
    for (let at = memory.indexOf(NEWLINE, this.#length); at >= 0 && at < end; at = memory.indexOf(NEWLINE, start)) {
      this.#line(memory.subarray(start, at));
      start = at + 1;
    }
    memory.copyWithin(0, start, end);
    this.#length = end - start;
    if (this.#length < memory.length) return;
    this.#line(memory);
    this.#skipsLine = true;
    this.#length = 0;
  }

  /** The stream has ended. May be called twice. */
  end(): void {
    this.#line((this.#memory ?? NOTHING).subarray(0, this.#length));
    this.#length = 0;
  }

  #line(line: Uint8Array): void {
    const isRest = this.#skipsLine;
    this.#skipsLine = false;
    if (!isRest && line.length > 0 && line.some(isVisible)) this.#onLine(line);
  }
}

const NOTHING = new Uint8Array(0);
const NEWLINE = 0x0a;

function isVisible(byte: number): boolean {
  return byte !== 0x20 && byte !== 0x09 && byte !== 0x0d;
}
