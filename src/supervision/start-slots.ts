import type { Cancel, Clock } from '../timing/clock.js';

export interface StartSlotsOptions {
  readonly clock: Clock;
  /** How many starts may run at once. */
  readonly limit: number;
  /** Whether this start has used the processor since the last call. `undefined` if that is unknown. */
  readonly isComputing: (key: string) => boolean | undefined;
  /** Called once for a start that has waited for something else than the processor for 1 s, or has begun 5 s ago. */
  readonly onSlow?: ((key: string) => void) | undefined;
}

/** How often a start is checked, in milliseconds. */
const CHECK_MS = 100;
/** Checks after which a start gives its slot back, even if it still computes. */
const MAX_CHECKS = 20;
/**
 * Checks in a row without computing after which a start is slow. A few would prove nothing on a busy machine, where a
 * program computes seldom.
 */
const SLOW_IDLE_CHECKS = 10;
/** Checks after which a start is slow in any case. */
const MAX_SLOW_CHECKS = 50;
/** Checks after which others may begin beside a start for which a caller waits: a slow one must not hold up all of them. */
const MAX_URGENT_CHECKS = 5;
/** How long the other starts wait after one for which a caller waited, in milliseconds: the caller gets its answer first. */
const AFTER_URGENT_MS = 20;
/** If it is unknown whether the start computes, it counts as computing before this check, and as waiting from then on. */
const MAX_BLIND_CHECKS = 2;

/**
 * Limits how many starts run at once, first come, first served. The limit is for the processor: a start that waits for
 * anything else gives its slot back, so that it does not delay the others. While a start for which a caller waits has a slot,
 * only such starts begin, for half a second at most.
 */
export class StartSlots {
  readonly #clock: Clock;
  readonly #isComputing: StartSlotsOptions['isComputing'];
  readonly #onSlow: StartSlotsOptions['onSlow'];
  #limit: number;
  /** In order of arrival. */
  readonly #waiting = new Map<string, () => void>();
  readonly #held = new Set<string>();
  /** Those of the held that have begun less than half a second ago. */
  readonly #recent = new Set<string>();
  /** Those of the recent for which a caller waits. */
  readonly #urgent = new Set<string>();
  /** Ends the pause after an urgent start. */
  #endPause: Cancel | undefined;
  /** The next check of each start that has begun and is not known to be slow. */
  readonly #checks = new Map<string, Cancel>();

  constructor({ clock, limit, isComputing, onSlow }: StartSlotsOptions) {
    this.#clock = clock;
    this.#limit = limit;
    this.#isComputing = isComputing;
    this.#onSlow = onSlow;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#fill();
  }

  /** Calls `start` when a slot is free, which may be at once. The slot is held until `release`, while the start computes, for 2 s at most. */
  request(key: string, start: () => void): void {
    this.#waiting.set(key, start);
    this.#fill();
  }

  /** A caller waits for this start: runs it now, if it has not begun, and no others until it gives its slot back. */
  hurry(key: string): void {
    const start = this.#waiting.get(key);
    if (start !== undefined || this.#recent.has(key)) this.#urgent.add(key);
    if (start !== undefined) this.#begin(key, start);
  }

  /** The start has ended, or is not wanted any more: releases its slot, or withdraws its request for one. */
  release(key: string): void {
    this.#waiting.delete(key);
    this.#checks.get(key)?.();
    this.#checks.delete(key);
    this.#free(key);
  }

  #free(key: string): void {
    this.#recent.delete(key);
    const wasUrgent = this.#urgent.delete(key);
    if (!this.#held.delete(key)) return;
    if (wasUrgent && this.#waiting.size > 0) this.#pause();
    else this.#fill();
  }

  #pause(): void {
    this.#endPause?.();
    this.#endPause = this.#clock.schedule(AFTER_URGENT_MS, () => {
      this.#endPause = undefined;
      this.#fill();
    });
  }

  #fill(): void {
    for (const [key, start] of this.#waiting) {
      if (this.#held.size >= this.#limit || this.#urgent.size > 0 || this.#endPause !== undefined) return;
      this.#begin(key, start);
    }
  }

  #begin(key: string, start: () => void): void {
    this.#waiting.delete(key);
    this.#held.add(key);
    this.#recent.add(key);
    this.#check(key, 1);
    start();
  }

  /** `idleChecks` in a row have found that the start waits for something else than the processor. */
  #check(key: string, check: number, idleChecks = 0): void {
    const cancel = this.#clock.schedule(CHECK_MS, () => {
      const isComputing = this.#isComputing(key) ?? check < MAX_BLIND_CHECKS;
      const idle = isComputing ? 0 : idleChecks + 1;
      const isSlow = idle >= SLOW_IDLE_CHECKS || check >= MAX_SLOW_CHECKS;
      if (isSlow) this.#checks.delete(key);
      else this.#check(key, check + 1, idle);
      if (check >= MAX_URGENT_CHECKS) this.#recent.delete(key);
      if (!isComputing || check >= MAX_CHECKS) this.#free(key);
      else if (!this.#recent.has(key) && this.#urgent.delete(key)) this.#fill();
      if (isSlow) this.#onSlow?.(key);
    });
    this.#checks.set(key, cancel);
  }
}
