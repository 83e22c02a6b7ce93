import type { FailureReason } from '../../downstream/failure.js';
import type { Clock } from '../../timing/clock.js';
import { type Availability, connectionOf, waitReason } from './availability.js';

/** What waits for a connection to a server without having a call to send, such as a list that the gateway asks for. */
export class ConnectionWaits {
  readonly #clock: Clock;
  readonly #availability: () => Availability;
  readonly #waits = new Set<() => void>();

  constructor(clock: Clock, availability: () => Availability) {
    this.#clock = clock;
    this.#availability = availability;
  }

  get size(): number {
    return this.#waits.size;
  }

  /**
   * Resolves with `undefined` once there is a connection. Resolves with a reason if no connection will come, or if none
   * came within `waitMs` milliseconds.
   */
  untilConnected(waitMs: number): Promise<FailureReason | undefined> {
    return new Promise((resolve) => {
      const settle = () => {
        cancel();
        this.#waits.delete(settle);
        const now = this.#availability();
        resolve(connectionOf(now) === undefined ? waitReason(now) : undefined);
      };
      const cancel = this.#clock.schedule(waitMs, settle);
      this.#waits.add(settle);
    });
  }

  /** Ends all waits. Call this when there is a connection, or when none will come. */
  settle(): void {
    for (const settle of this.#waits) settle();
  }
}
