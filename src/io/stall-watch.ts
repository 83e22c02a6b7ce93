/** A stream in a `StallWatch`. Only the `StallWatch` changes `isUnfinished` and `silentTicks`. */
export interface WatchedStream {
  isUnfinished: boolean;
  /** Ticks of the timer since the last byte of the unfinished line. */
  silentTicks: number;
  /** Whether nobody reads the stream at the moment, so that its silence means nothing. */
  readonly isPaused: () => boolean;
  readonly stalled: () => void;
}

export interface StallWatchOptions {
  readonly timeoutMs: number;
  /** Runs a task after so many milliseconds, and returns the function that cancels it. */
  readonly schedule: (delayMs: number, task: () => void) => () => void;
}

/** A line stalls after so many ticks of a third of the timeout: up to a third late, and never early. */
const STALLED_AFTER_TICKS = 4;

/**
 * Notices unfinished lines of which no byte comes any more, on many streams with one timer.
 *
 * It counts ticks instead of comparing times, so a byte costs no look at the clock. Ticks also stay right when nothing
 * could be read for a while: a stream that is paused at a tick counts as heard, and a computer that slept misses ticks.
 * The timer runs only while there is an unfinished line.
 */
export class StallWatch {
  readonly #schedule: StallWatchOptions['schedule'];
  readonly #streams = new Set<WatchedStream>();
  #timeoutMs: number;
  #cancel: (() => void) | undefined;

  constructor({ timeoutMs, schedule }: StallWatchOptions) {
    this.#timeoutMs = timeoutMs;
    this.#schedule = schedule;
  }

  /** Changes the timeout, from the next tick on. */
  limitTo(timeoutMs: number): void {
    this.#timeoutMs = timeoutMs;
  }

  /** Adds a stream without an unfinished line. `stalled` is called for each line that stalls, which is ended by then. */
  join({ isPaused, stalled }: Pick<WatchedStream, 'isPaused' | 'stalled'>): WatchedStream {
    const stream: WatchedStream = { isUnfinished: false, silentTicks: 0, isPaused, stalled };
    this.#streams.add(stream);
    return stream;
  }

  /** A byte of an unfinished line came. */
  heard(stream: WatchedStream): void {
    stream.isUnfinished = true;
    stream.silentTicks = 0;
    if (this.#cancel === undefined) this.#arm();
  }

  /** The line is finished, or nobody waits for its end any more. */
  ended(stream: WatchedStream): void {
    stream.isUnfinished = false;
  }

  /** Removes a stream. May be called twice. */
  leave(stream: WatchedStream): void {
    stream.isUnfinished = false;
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(): void {
    this.#cancel = this.#schedule(this.#timeoutMs / (STALLED_AFTER_TICKS - 1), () => this.#tick());
  }

  #tick(): void {
    this.#cancel = undefined;
    const stalled: WatchedStream[] = [];
    let isAnyUnfinished = false;
    for (const stream of this.#streams) {
      if (!stream.isUnfinished) continue;
      stream.silentTicks = stream.isPaused() ? 0 : stream.silentTicks + 1;
      if (stream.silentTicks >= STALLED_AFTER_TICKS) stalled.push(stream);
      else isAnyUnfinished = true;
    }
    if (isAnyUnfinished) this.#arm();
    for (const stream of stalled) {
      stream.isUnfinished = false;
      stream.stalled();
    }
  }
}
