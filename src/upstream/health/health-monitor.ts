import type { Clock } from '../../timing/clock.js';
import { ProtocolViolations } from './protocol-violations.js';

export interface HealthEvents {
  /** Several requests in a row timed out, and the server wrote nothing meanwhile. */
  silent(): void;
  /** The server violates the protocol too often. Called once. */
  violated(reason: string): void;
}

/** The number of requests that time out in a row before a server counts as silent. */
const SILENT_AFTER = 3;

/** Watches what comes from one server: whether the server is silent, and how often it violates the protocol. */
export class HealthMonitor {
  readonly #events: HealthEvents;
  readonly #violations: ProtocolViolations;
  /** Requests that timed out since the last byte from the server. */
  #timeouts = 0;
  /** The part of oversized lines beyond the frame limit that is counted already, in bytes. */
  #excessBytes = 0;
  #hasEnded = false;

  constructor(clock: Clock, events: HealthEvents) {
    this.#events = events;
    this.#violations = new ProtocolViolations(clock);
  }

  /** Whether several requests in a row timed out and the server has written nothing since. */
  get isSilent(): boolean {
    return this.#timeouts >= SILENT_AFTER;
  }

  /** The server wrote something. */
  heard(): void {
    this.#timeouts = 0;
  }

  /** A request timed out. */
  timedOut(): void {
    this.#timeouts += 1;
    if (this.#timeouts === SILENT_AFTER) this.#events.silent();
  }

  /** The server wrote a broken message, or one beyond the frame limit. */
  brokenFrame(): void {
    this.#report(this.#violations.brokenFrame());
  }

  /** The server wrote bytes that are no message. */
  strayOutput(byteLength: number): void {
    this.#report(this.#violations.strayOutput(byteLength));
  }

  /**
   * Lines exceeded the frame limit by so many bytes, all of them together. The excess counts as stray output, so that a
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
