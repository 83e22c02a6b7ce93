import type { Clock } from '../../timing/clock.js';

export interface HealthEvents {
  /** Several requests in a row timed out, without a sign of life meanwhile. */
  silent(): void;
  /** The server violates the protocol too often. Called once. */
  violated(reason: string): void;
}

/** The number of requests that time out in a row before a server counts as silent. */
const SILENT_AFTER = 3;
/** Time for which a protocol violation counts toward the limits, in milliseconds. */
const WINDOW_MS = 60_000;
/** Broken frames within the window. */
const MAX_BROKEN_FRAMES = 3;
/** Bytes of stray output within the window. */
const MAX_STRAY_BYTES = 16 * 1024 * 1024;
/** Stray output is added up in slots of this length, in milliseconds. */
const SLOT_MS = 1_000;

const TOO_MANY_BROKEN = `it sent ${MAX_BROKEN_FRAMES} broken, oversized or unfinished frames within a minute`;
const TOO_MUCH_STRAY = 'it wrote more than 16 MiB that is no message to stdout within a minute';

/**
 * Watches one server: whether the server is silent, and how often it violates the protocol.
 *
 * A sign of life is an answer to a request of Trunkline's, in time or late, and progress of such a request. Everything
 * else that a server prints proves nothing: logs and notifications can come from a thread that works, while the one that
 * answers requests does not.
 *
 * A broken frame is a line that was meant as a message and cannot be read as one, one beyond the frame limit, or one that
 * was dropped before it was finished. Stray output is every other line that is no message: many servers log to stdout.
 */
export class HealthMonitor {
  readonly #clock: Clock;
  readonly #events: HealthEvents;
  /** Requests that timed out since the last sign of life. */
  #timeouts = 0;
  /** Times of the last broken frames, the oldest first. */
  #brokenFrames: number[] = [];
  #stray: { readonly from: number; bytes: number }[] = [];
  /** The part of oversized lines beyond the frame limit that is counted already, in bytes. */
  #excessBytes = 0;
  #hasEnded = false;

  constructor(clock: Clock, events: HealthEvents) {
    this.#clock = clock;
    this.#events = events;
  }

  /** Whether several requests in a row timed out, and there was no sign of life since. */
  get isSilent(): boolean {
    return this.#timeouts >= SILENT_AFTER;
  }

  /** The server answered a request, or reported progress of one. */
  signOfLife(): void {
    this.#timeouts = 0;
  }

  /** A request timed out. */
  timedOut(): void {
    this.#timeouts += 1;
    if (this.#timeouts === SILENT_AFTER) this.#events.silent();
  }

  brokenFrame(): void {
    const now = this.#clock.now();
    this.#brokenFrames = [...this.#brokenFrames.filter((at) => now - at < WINDOW_MS), now];
    if (this.#brokenFrames.length >= MAX_BROKEN_FRAMES) this.#violated(TOO_MANY_BROKEN);
  }

  strayOutput(byteLength: number): void {
    const now = this.#clock.now();
    this.#stray = this.#stray.filter(({ from }) => now - from < WINDOW_MS);
    const last = this.#stray.at(-1);
    if (last !== undefined && now - last.from < SLOT_MS) last.bytes += byteLength;
    else this.#stray.push({ from: now, bytes: byteLength });
    const sum = this.#stray.reduce((bytes, slot) => bytes + slot.bytes, 0);
    if (sum > MAX_STRAY_BYTES) this.#violated(TOO_MUCH_STRAY);
  }

  /**
   * Lines exceeded the frame limit by `excessBytes`, all of them together. The excess counts as stray output, so that a
   * line without an end is not read forever.
   */
  exceeded(excessBytes: number): void {
    if (excessBytes === this.#excessBytes) return;
    this.strayOutput(excessBytes - this.#excessBytes);
    this.#excessBytes = excessBytes;
  }

  /** The connection is closed; violations are no longer reported. */
  end(): void {
    this.#hasEnded = true;
  }

  #violated(reason: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#events.violated(reason);
  }
}
