import type { Redact } from './redact.js';

const MAX_BYTES = 64 * 1024;
const MAX_LINE_CHARACTERS = 8 * 1024;
/** What is read of a longer line, so that a secret where the shown part ends is still recognised as one. */
const MAX_READ_CHARACTERS = MAX_LINE_CHARACTERS * 2;
/** The end of what was read may be half a secret, which nothing recognises. */
const UNSURE_CHARACTERS = 4 * 1024;
const NOTHING_SURE = '[a long line that is full of secrets]';

export interface ChildLogOptions {
  readonly redact: Redact;
  /** Called for each line as it is kept. */
  readonly onLine?: (line: string) => void;
}

/**
 * The last lines that one server wrote to stderr, with what it wrote to stdout that was no message.
 *
 * Secrets are removed before a line is kept. Of long lines the beginning is kept, of many lines the last ones.
 */
export class ChildLog {
  readonly #redact: Redact;
  readonly #onLine: (line: string) => void;
  readonly #lines: string[] = [];
  readonly #decoder = new TextDecoder();
  #length = 0;
  #partial = '';

  constructor({ redact, onLine = () => {} }: ChildLogOptions) {
    this.#redact = redact;
    this.#onLine = onLine;
  }

  /** Oldest first. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Bytes of stderr, cut anywhere. */
  write(chunk: Uint8Array): void {
    const [first = '', ...rest] = this.#decoder.decode(chunk, { stream: true }).split('\n');
    this.#extend(first);
    for (const piece of rest) {
      this.#endLine();
      this.#extend(piece);
    }
  }

  /** A whole line from elsewhere. */
  add(line: string): void {
    const redacted = this.#redact(line.slice(0, MAX_READ_CHARACTERS));
    const isCut = line.length >= MAX_READ_CHARACTERS;
    const sure = isCut ? redacted.slice(0, -UNSURE_CHARACTERS) : redacted;
    const clean = sure.slice(0, MAX_LINE_CHARACTERS).trimEnd() || (isCut ? NOTHING_SURE : '');
    if (clean === '') return;
    this.#lines.push(clean);
    this.#length += clean.length;
    while (this.#length > MAX_BYTES) this.#length -= this.#lines.shift()?.length ?? 0;
    this.#onLine(clean);
  }

  /** The stream ended; what stands without a line end is a line all the same. */
  end(): void {
    // What is left of a character belongs to this stream, not to the next process.
    this.#extend(this.#decoder.decode());
    this.#endLine();
  }

  #extend(piece: string): void {
    const room = MAX_READ_CHARACTERS - this.#partial.length;
    if (room > 0) this.#partial += piece.slice(0, room);
  }

  #endLine(): void {
    const line = this.#partial;
    this.#partial = '';
    this.add(line);
  }
}
