import { FairMemory, type Holder } from './fair-memory.js';
import { StallWatch, type StallWatchOptions, type WatchedStream } from './stall-watch.js';

/**
 * An unfinished line of at most so many bytes is exempt from the shared limit, so that a stream that uses up the limit
 * does not make others lose lines that merely arrive in two pieces.
 */
export const EXEMPT_BYTES = 64 * 1024;
/** Bytes of all unfinished lines together that nobody waits for; more if a single line may be longer. */
const UNAWAITED_BYTES = 64 * 1024 * 1024;

/**
 * `memory-limit`: the line held the most when the shared memory was full. `line-timeout`: no byte of it came for too long.
 */
export type EvictionReason = 'memory-limit' | 'line-timeout';

export interface UnfinishedLinesOptions extends StallWatchOptions {
  /** Bytes of all unfinished lines together. */
  readonly maxBytes: number;
}

/** The unfinished lines of all streams: how much memory they share, and which of them stall. */
export class UnfinishedLines {
  readonly memory: FairMemory;
  /** The part of the memory that lines may take which answer nobody: as much as one line alone. */
  readonly unawaited = new FairMemory(UNAWAITED_BYTES, EXEMPT_BYTES);
  readonly stalls: StallWatch;

  constructor({ maxBytes, ...options }: UnfinishedLinesOptions) {
    this.memory = new FairMemory(maxBytes, EXEMPT_BYTES);
    this.stalls = new StallWatch(options);
  }

  /** The place of one more stream. `evict` is called when the stream has to drop its unfinished line. */
  join(options: UnfinishedLineOptions): UnfinishedLine {
    if (options.maxLineBytes > this.unawaited.max) this.unawaited.limitTo(options.maxLineBytes);
    return new UnfinishedLine(this, options);
  }
}

interface UnfinishedLineOptions {
  /** Limit for one line. */
  readonly maxLineBytes: number;
  /** Whether somebody waits for a line of the stream. */
  readonly isAwaited: () => boolean;
  /** Whether nobody reads the stream at the moment. Its line does not stall meanwhile. */
  readonly isPaused: () => boolean;
  readonly evict: (reason: EvictionReason) => void;
}

/** The unfinished line of one stream among those of all streams. */
export class UnfinishedLine {
  readonly #memory: FairMemory;
  readonly #unawaited: FairMemory;
  readonly #stalls: StallWatch;
  readonly #holder: Holder;
  readonly #unawaitedHolder: Holder;
  readonly #isAwaited: () => boolean;
  readonly #stream: WatchedStream;

  constructor(lines: UnfinishedLines, { isPaused, isAwaited, evict }: UnfinishedLineOptions) {
    const { memory, unawaited, stalls } = lines;
    this.#memory = memory;
    this.#unawaited = unawaited;
    this.#stalls = stalls;
    this.#isAwaited = isAwaited;
    this.#holder = memory.join({ evict: () => evict('memory-limit') });
    this.#unawaitedHolder = unawaited.join({ evict: () => evict('memory-limit') });
    this.#stream = stalls.join({ isPaused, stalled: () => evict('line-timeout') });
  }

  /** Whether the stream has an unfinished line that was not dropped. */
  get exists(): boolean {
    return this.#stream.isUnfinished;
  }

  /** The line has grown and holds so many bytes. Returns `false` if it is the one that has to be dropped; call `end` then. */
  grow(bytes: number): boolean {
    this.#stalls.heard(this.#stream);
    if (!this.#memory.grow(this.#holder, bytes)) return false;
    if (bytes > EXEMPT_BYTES && !this.#isAwaited()) return this.#unawaited.grow(this.#unawaitedHolder, bytes);
    this.#unawaited.release(this.#unawaitedHolder);
    return true;
  }

  /** The line is finished or dropped. */
  end(): void {
    this.#stalls.ended(this.#stream);
    this.#memory.release(this.#holder);
    this.#unawaited.release(this.#unawaitedHolder);
  }

  /** The stream has ended. May be called twice. */
  leave(): void {
    this.#stalls.leave(this.#stream);
    this.#memory.leave(this.#holder);
    this.#unawaited.leave(this.#unawaitedHolder);
  }
}
