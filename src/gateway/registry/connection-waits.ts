import type { FailureReason } from '../../downstream/failure.js';
import type { Clock } from '../../timing/clock.js';

/** Those who wait for a process to be there, and not for an answer of it. Each is told once. */
export class ConnectionWaits {
  readonly #clock: Clock;
  readonly #waiting = new Set<(absence: FailureReason | undefined) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Resolves with what `tell` is told, or with `late()` after `waitMs`. */
  begin(waitMs: number, late: () => FailureReason): Promise<FailureReason | undefined> {
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(waitMs, () => {
        this.#waiting.delete(settle);
        resolve(late());
      });
      const settle = (absence: FailureReason | undefined) => {
        cancel();
        resolve(absence);
      };
      this.#waiting.add(settle);
    });
  }

  /** There is a process, or this is why none is to be expected. */
  tell(absence: FailureReason | undefined): void {
    for (const settle of this.#waiting) settle(absence);
    this.#waiting.clear();
  }
}
