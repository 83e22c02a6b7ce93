import type { Cancel, Clock } from '../timing/clock.js';

export interface StartSlotsOptions {
  readonly clock: Clock;
  /** Most starts that run at once. */
  readonly limit: number;
  /** Called once for a start that takes longer than 3 s. */
  readonly onSlow?: ((key: string) => void) | undefined;
}

/** Time for which a start keeps its slot, because a server that waits for a network must not hold up the others. */
const MAX_HELD_MS = 1_000;
/** The default of `gateway.startupWait`: the first list does not wait for a slower start either. */
const SLOW_AFTER_MS = 3_000;
/** Longest wait of other starts beside one for which a caller waits. */
const MAX_URGENT_MS = 500;
/** Wait of the others after it, because each spawn would delay the call that now goes out. */
const AFTER_URGENT_MS = 20;

/** A start that has begun and is not known to be slow. */
interface Start {
  readonly begunAt: number;
  hasSlot: boolean;
  /** Whether a caller waits for it. */
  isUrgent: boolean;
  cancelTimer: Cancel;
}

/**
 * Limits how many starts run at once, first come, first served. A start for which a caller waits goes first: it begins at once,
 * and no other start begins beside it for half a second.
 */
export class StartSlots {
  readonly #clock: Clock;
  readonly #onSlow: StartSlotsOptions['onSlow'];
  #limit: number;
  /** In order of arrival. */
  readonly #waiting = new Map<string, () => void>();
  readonly #starts = new Map<string, Start>();
  /** Cancels the end of the pause for a call. */
  #cancelPause: Cancel | undefined;

  constructor({ clock, limit, onSlow }: StartSlotsOptions) {
    this.#clock = clock;
    this.#limit = limit;
    this.#onSlow = onSlow;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#fill();
  }

  /** Calls `start` when a slot is free, which may be at once. The slot is held until `release`, for 1 s at most. */
  request(key: string, start: () => void): void {
    this.#waiting.set(key, start);
    this.#fill();
  }

  /** Runs this start now if it has not begun, and no others until it is over, because a caller waits for it. */
  hurry(key: string): void {
    const run = this.#waiting.get(key);
    const start = run === undefined ? this.#starts.get(key) : this.#add(key);
    if (start === undefined) return;
    const elapsedMs = this.#clock.now() - start.begunAt;
    if (!start.isUrgent && elapsedMs < MAX_URGENT_MS) {
      start.isUrgent = true;
      this.#pause(MAX_URGENT_MS - elapsedMs);
    }
    run?.();
  }

  /** Frees the slot of a start that is over, or withdraws the request of one that is not wanted any more. */
  release(key: string): void {
    this.#waiting.delete(key);
    const start = this.#starts.get(key);
    if (start === undefined) return;
    this.#starts.delete(key);
    start.cancelTimer();
    if (!start.isUrgent) this.#fill();
    else if (!this.#isAnyUrgent()) this.#pause(this.#waiting.size > 0 ? AFTER_URGENT_MS : 0);
  }

  #isAnyUrgent(): boolean {
    const now = this.#clock.now();
    return [...this.#starts.values()].some(({ isUrgent, begunAt }) => isUrgent && now < begunAt + MAX_URGENT_MS);
  }

  /** Begins no start for this time. A new pause replaces the one before. */
  #pause(delayMs: number): void {
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    if (delayMs === 0) {
      this.#fill();
      return;
    }
    this.#cancelPause = this.#clock.schedule(delayMs, () => {
      this.#cancelPause = undefined;
      this.#fill();
    });
  }

  #fill(): void {
    for (const [key, run] of this.#waiting) {
      const held = [...this.#starts.values()].filter(({ hasSlot }) => hasSlot).length;
      if (held >= this.#limit || this.#cancelPause !== undefined) return;
      this.#add(key);
      run();
    }
  }

  #add(key: string): Start {
    this.#waiting.delete(key);
    const start: Start = { begunAt: this.#clock.now(), hasSlot: true, isUrgent: false, cancelTimer: () => {} };
    this.#starts.set(key, start);
    start.cancelTimer = this.#clock.schedule(MAX_HELD_MS, () => {
      start.hasSlot = false;
      start.cancelTimer = this.#clock.schedule(SLOW_AFTER_MS - MAX_HELD_MS, () => {
        this.#starts.delete(key);
        this.#onSlow?.(key);
      });
      this.#fill();
    });
    return start;
  }
}
