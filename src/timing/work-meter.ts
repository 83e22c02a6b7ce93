import type { Clock } from './clock.js';
import { describeWork, type WorkKind, type WorkTime } from './work-time.js';

/** A piece of work that held the event loop. */
export interface Hold {
  /** Names the work, such as `parsing a list of github`. */
  readonly work: string;
  readonly ms: number;
  /** When it ended, in milliseconds on the clock. */
  readonly endedAt: number;
}

export interface WorkMeterOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** Called for a piece of work of more than 500 ms, once a minute at most. `skipped` were not reported since the last call. */
  readonly onHeld: (hold: Hold & { readonly skipped: number }) => void;
}

/** A shorter piece of work is only counted. */
const NOTABLE_MS = 20;
/** A person notices a longer piece of work: the calls of all servers and clients wait meanwhile. */
const HELD_MS = 500;
const REPORT_EVERY_MS = 60_000;
/** So many pieces of work count fully; those before them count less and less. */
const MAX_COUNTED = 65_536;
/** Bucket 0 counts pieces below 1 ms, and bucket `n` those below 2ⁿ ms. */
const BUCKETS = 33;

/**
 * Counts the pieces of work that hold the event loop by their length, and names the longest.
 *
 * Counting costs a compare and an add for each piece and needs no timer, so an idle gateway pays nothing. Times are those
 * of the clock: garbage collection, and a processor that is busy with other programs, make work longer, too.
 */
export class WorkMeter implements WorkTime {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #onHeld: WorkMeterOptions['onHeld'];
  readonly #counts = new Array<number>(BUCKETS).fill(0);
  #counted = 0;
  #latest: Hold | undefined;
  #longest: Hold | undefined;
  #holds = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #skipped = 0;

  constructor({ clock, onHeld }: WorkMeterOptions) {
    this.#clock = clock;
    this.#onHeld = onHeld;
  }

  /** How many pieces of work took more than 500 ms. */
  get holds(): number {
    return this.#holds;
  }

  /** The longest piece of work of at least 20 ms. */
  get longest(): Hold | undefined {
    return this.#longest;
  }

  measure(kind: WorkKind, instance: string | undefined, ms: number): void {
    const bucket = 32 - Math.clz32(ms);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#counted += 1;
    if (this.#counted === MAX_COUNTED) this.#forgetHalf();
    if (ms >= NOTABLE_MS) this.#note(describeWork(kind, instance), ms);
  }

  /**
   * Returns the milliseconds that the share `quantile` (0 to 1) of the pieces of work did not exceed: a power of two, or
   * the longest piece of work. `undefined` if there was no work.
   */
  quantile(quantile: number): number | undefined {
    if (this.#counted === 0) return undefined;
    let left = this.#counted * quantile;
    const bucket = this.#counts.findIndex((count) => {
      left -= count;
      return left <= 0;
    });
    return Math.min(2 ** bucket, Math.ceil(this.#longest?.ms ?? NOTABLE_MS));
  }

  #forgetHalf(): void {
    this.#counted = 0;
    for (const [bucket, count] of this.#counts.entries()) {
      this.#counts[bucket] = count >> 1;
      this.#counted += count >> 1;
    }
  }

  #note(work: string, ms: number): void {
    const endedAt = this.#clock.now();
    const before = this.#latest;
    // A piece within this one ended before. If it took most of the time, it is the cause.
    const inner = before !== undefined && before.endedAt > endedAt - ms && before.ms >= ms / 2 ? before : undefined;
    const hold = { work: inner?.work ?? work, ms, endedAt };
    this.#latest = hold;
    if (ms >= (this.#longest?.ms ?? 0)) this.#longest = hold;
    if (ms > HELD_MS && (inner === undefined || inner.ms <= HELD_MS)) this.#held(hold);
  }

  #held(hold: Hold): void {
    this.#holds += 1;
    if (hold.endedAt - this.#reportedAt < REPORT_EVERY_MS) {
      this.#skipped += 1;
      return;
    }
    const skipped = this.#skipped;
    this.#reportedAt = hold.endedAt;
    this.#skipped = 0;
    this.#onHeld({ ...hold, skipped });
  }
}
