import type { Clock } from '../../timing/clock.js';

export interface HealthEvents {
  /** Several requests in a row timed out, without a sign of life meanwhile. */
  silent(): void;
  /** The server violates the protocol too often. Called once. */
  violated(reason: string): void;
}

/** The number of requests that time out in a row before a server counts as silent. */
const SILENT_AFTER = 3;

/**
 * Watches one server: whether the server is silent, and how often it violates the protocol.
 *
 * A sign of life is an answer to a request of Trunkline's, in time or late, and progress of such a request. Everything
 * else that a server prints proves nothing: logs and notifications can come from a thread that works, while the one that
 * answers requests does not.
 */
export class HealthMonitor {
  readonly #events: HealthEvents;
  readonly #violations: ProtocolViolations;
  /** Requests that timed out since the last sign of life. */
  #timeouts = 0;
  /** The part of oversized lines beyond the frame limit that is counted already, in bytes. */
  #excessBytes = 0;
  #hasEnded = false;

  constructor(clock: Clock, events: HealthEvents) {
    this.#events = events;
    this.#violations = new ProtocolViolations(clock);
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

  /** The server wrote a broken message, one beyond the frame limit, or one that was dropped unfinished. */
  brokenFrame(): void {
    this.#report(this.#violations.brokenFrame());
  }

  /** The server wrote bytes that are no message. */
  strayOutput(byteLength: number): void {
    this.#report(this.#violations.strayOutput(byteLength));
  }

  /**
   * Lines exceeded the frame limit by `excessBytes`, all of them together. The excess counts as stray output, so that a
   * line without an end is not read forever.
   */
  exceeded(excessBytes: number): void {
    if (excessBytes === this.#excessBytes) return;
    const more = excessBytes - this.#excessBytes;
    this.#excessBytes = excessBytes;
    this.strayOutput(more);
  }

  /** The connection is closed; violations are no longer reported. */
  end(): void {
    this.#hasEnded = true;
  }

  #report(reason: string | undefined): void {
    if (reason === undefined || this.#hasEnded) return;
    this.#hasEnded = true;
    this.#events.violated(reason);
  }
}

/** Time for which a protocol violation counts toward the limits, in milliseconds. */
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
 * A broken frame is a line that was meant as a message and cannot be read as one, one beyond the frame limit, or one that
 * was dropped before it was finished. Stray
 * output is every other line that is no message: many servers log to stdout. Three broken frames within a minute, or more
 * than 16 MiB of stray output within a minute, are too much.
 */
export class ProtocolViolations {
  readonly #clock: Clock;
  /** Times of the last broken frames, the oldest first. */
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
    return `it sent ${MAX_BROKEN_FRAMES} broken, oversized or unfinished frames within a minute`;
  }

  /** Counts stray output. Returns why the server must be restarted, if this was too much. */
  strayOutput(byteLength: number): string | undefined {
    const now = this.#clock.now();
    this.#slots = this.#slots.filter(({ from }) => now - from < WINDOW_MS);
    const last = this.#slots.at(-1);
    if (last !== undefined && now - last.from < SLOT_MS) last.bytes += byteLength;
    else this.#slots.push({ from: now, bytes: byteLength });
    const sum = this.#slots.reduce((bytes, slot) => bytes + slot.bytes, 0);
    return sum > MAX_STRAY_BYTES ? 'it wrote more than 16 MiB that is no message to stdout within a minute' : undefined;
  }
}
