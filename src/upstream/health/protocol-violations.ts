import type { Clock } from '../../timing/clock.js';

/** How long a protocol violation counts toward the limits, in milliseconds. */
const WINDOW_MS = 60_000;
/** Broken frames within the window. */
const MAX_BROKEN_FRAMES = 3;
/** Bytes of stray output within the window. */
const MAX_STRAY_BYTES = 16 * 1024 * 1024;
/** Stray output is added up in slots of this length, in milliseconds. */
const SLOT_MS = 1_000;

/**
 * Counts a server's violations of the protocol.
 *
 * A broken frame is a line that was meant as a message and cannot be read as one, or one beyond the frame limit. Stray
 * output is every other line that is no message: many servers log to stdout. Three broken frames within a minute, or more
 * than 16 MiB of stray output within a minute, are too much.
 */
export class ProtocolViolations {
  readonly #clock: Clock;
  /** When the last broken frames came, the oldest first. */
  #brokenFrames: number[] = [];
  #slots: { readonly from: number; bytes: number }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a broken frame. Returns why the server must be restarted, if this was one too many. */
  brokenFrame(): string | undefined {
    const now = this.#clock.now();
    this.#brokenFrames = [...this.#brokenFrames.filter((at) => now - at < WINDOW_MS), now];
    if (this.#brokenFrames.length < MAX_BROKEN_FRAMES) return undefined;
    return `${MAX_BROKEN_FRAMES} broken or oversized frames within a minute`;
  }

  /** Counts stray output. Returns why the server must be restarted, if this was too much. */
  strayOutput(byteLength: number): string | undefined {
    const now = this.#clock.now();
    this.#slots = this.#slots.filter(({ from }) => now - from < WINDOW_MS);
    const last = this.#slots.at(-1);
    if (last !== undefined && now - last.from < SLOT_MS) last.bytes += byteLength;
    else this.#slots.push({ from: now, bytes: byteLength });
    const sum = this.#slots.reduce((bytes, slot) => bytes + slot.bytes, 0);
    return sum > MAX_STRAY_BYTES ? 'more than 16 MiB on stdout that is no message, within a minute' : undefined;
  }
}
