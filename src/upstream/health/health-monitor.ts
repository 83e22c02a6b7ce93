import type { Clock } from '../../timing/clock.js';
import { ProtocolViolations } from './protocol-violations.js';

export interface HealthEvents {
  /** Several requests in a row have timed out, and nothing at all has come meanwhile. */
  silent(): void;
  /** The child breaks the protocol more often than can be put up with. Told once. */
  offended(charge: string): void;
}

/** Requests that time out in a row before a child counts as silent. */
const SILENT_AFTER = 3;

/** How a child behaves: whether it has gone silent, and what it writes that is no message. */
export class HealthMonitor {
  readonly #events: HealthEvents;
  readonly #violations: ProtocolViolations;
  /** Since the last byte from the child. */
  #timeouts = 0;
  /** Of lines that were too large, as far as they were counted. */
  #excessBytes = 0;
  #isOver = false;

  constructor(clock: Clock, events: HealthEvents) {
    this.#events = events;
    this.#violations = new ProtocolViolations(clock);
  }

  /** Whether several requests in a row have timed out, and nothing has come since. */
  get isSilent(): boolean {
    return this.#timeouts >= SILENT_AFTER;
  }

  /** Something has come. */
  heard(): void {
    this.#timeouts = 0;
  }

  /** A request was not answered in time. */
  timedOut(): void {
    this.#timeouts += 1;
    if (this.#timeouts === SILENT_AFTER) this.#events.silent();
  }

  /** A message was broken or too large. */
  brokeFrame(): void {
    this.#charge(this.#violations.frame());
  }

  /** So much was written that is no message. */
  printed(byteLength: number): void {
    this.#charge(this.#violations.output(byteLength));
  }

  /** Lines were so much too long, in all. A line that never ends must not be read for ever. */
  exceeded(excessBytes: number): void {
    if (excessBytes === this.#excessBytes) return;
    const more = excessBytes - this.#excessBytes;
    this.#excessBytes = excessBytes;
    this.printed(more);
  }

  /** The child was given up: nothing that it does is held against it any more. */
  end(): void {
    this.#isOver = true;
  }

  #charge(charge: string | undefined): void {
    if (charge === undefined || this.#isOver) return;
    this.#isOver = true;
    this.#events.offended(charge);
  }
}
