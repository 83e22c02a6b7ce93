import { setImmediate as nextTurn } from 'node:timers/promises';

/** Destination of lines. Both methods may fail, and may take any time. */
export interface LineOutput {
  /** Takes whole lines, each with its line feed. */
  write(text: string): Promise<void>;
  close(): Promise<void>;
}

export interface LineQueueOptions {
  readonly sink: LineOutput;
  /** Limit of the waiting bytes. Beyond it, new lines are dropped. */
  readonly maxBytes: number;
  /** Returns the line that replaces missing lines and says how many they are. */
  readonly describeGap: (lines: number) => string;
  /** Milliseconds that lines may wait, so that many are written at once. A full piece is written at once. 0 if absent. */
  readonly delayMs?: number;
  /** Called for the first failure in a series of failed writes. */
  readonly onFault: (error: unknown) => void;
}

/** Bytes of one piece. Making the lines of a longer piece would hold the event loop. */
const MAX_PIECE_BYTES = 64 * 1024;

/**
 * Writes lines in the background, so that no caller waits for the disk. Makes and writes the lines later, in small
 * pieces. Beyond its limit, drops lines and writes one line with their number.
 */
export class LineQueue {
  readonly #options: LineQueueOptions;
  #waiting: { readonly bytes: number; readonly render: () => string }[] = [];
  #waitingBytes = 0;
  #gap = 0;
  #dropped = 0;
  #written = 0;
  #isFaulty = false;
  #isClosed = false;
  #work: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LineQueueOptions) {
    this.#options = options;
  }

  get dropped(): number {
    return this.#dropped;
  }

  get written(): number {
    return this.#written;
  }

  /** Adds a line. If there is room, calls `take` now, which copies the data and returns a function that makes the line. */
  offer(bytes: number, take: () => () => string): void {
    if (this.#isClosed) return;
    if (this.#waitingBytes + bytes > this.#options.maxBytes) {
      this.#drop(1);
      return;
    }
    this.#waitingBytes += bytes;
    this.#waiting.push({ bytes, render: take() });
    if (this.#work === undefined) this.#plan();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#waiting.length > 0) this.#begin();
    await this.#work;
    if (this.#gap > 0) await this.#write('', 0);
    await this.#options.sink.close().catch(this.#options.onFault);
  }

  /** Writes the waiting lines now if they fill a piece, otherwise after the delay. */
  #plan(): void {
    const { delayMs = 0 } = this.#options;
    if (delayMs === 0 || this.#waitingBytes >= MAX_PIECE_BYTES) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), delayMs).unref();
  }

  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#work ??= this.#drain();
  }

  async #drain(): Promise<void> {
    const { delayMs = 0 } = this.#options;
    // Ends the loop unless a piece is full, because a busy queue never becomes empty, and would write a few lines at a time.
    const isDue = () => delayMs === 0 || this.#isClosed || this.#waitingBytes >= MAX_PIECE_BYTES;
    do {
      await nextTurn();
      let text = '';
      let lines = 0;
      let at = 0;
      for (; at < this.#waiting.length && text.length < MAX_PIECE_BYTES; at += 1) {
        const next = this.#waiting[at];
        this.#waitingBytes -= next?.bytes ?? 0;
        text += `${next?.render()}\n`;
        lines += 1;
      }
      this.#waiting = this.#waiting.slice(at);
      await this.#write(text, lines);
    } while (this.#waiting.length > 0 && isDue());
    this.#work = undefined;
    if (this.#waiting.length > 0) this.#plan();
  }

  async #write(text: string, lines: number): Promise<void> {
    const { sink, describeGap, onFault } = this.#options;
    const gap = this.#gap;
    this.#gap = 0;
    try {
      await sink.write(gap > 0 ? `${describeGap(gap)}\n${text}` : text);
      this.#written += lines;
      this.#isFaulty = false;
    } catch (error) {
      this.#gap += gap;
      this.#drop(lines);
      if (!this.#isFaulty) onFault(error);
      this.#isFaulty = true;
    }
  }

  #drop(lines: number): void {
    this.#gap += lines;
    this.#dropped += lines;
  }
}
