import type { Cancel, Clock } from '../../src/timing/clock.js';

interface Scheduled {
  readonly at: number;
  readonly task: () => void;
}

/** A clock that stands still until a test moves it. */
export class FakeClock implements Clock {
  #now = 0;
  readonly #scheduled = new Set<Scheduled>();

  /** How many tasks are still to run. */
  get pending(): number {
    return this.#scheduled.size;
  }

  now(): number {
    return this.#now;
  }

  schedule(delayMs: number, task: () => void): Cancel {
    const entry = { at: this.#now + Math.max(0, delayMs), task };
    this.#scheduled.add(entry);
    return () => this.#scheduled.delete(entry);
  }

  /** Moves on, running what falls due in its order, including what is scheduled on the way. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (let next = this.#nextBefore(until); next !== undefined; next = this.#nextBefore(until)) {
      this.#scheduled.delete(next);
      this.#now = next.at;
      next.task();
    }
    this.#now = until;
  }

  /** Is `ms` later all at once, as after a sleep of the machine: what fell due meanwhile runs now, in its order. */
  jump(ms: number): void {
    this.#now += ms;
    for (let next = this.#nextBefore(this.#now); next !== undefined; next = this.#nextBefore(this.#now)) {
      this.#scheduled.delete(next);
      next.task();
    }
  }

  #nextBefore(until: number): Scheduled | undefined {
    let first: Scheduled | undefined;
    for (const entry of this.#scheduled) {
      if (entry.at <= until && (first === undefined || entry.at < first.at)) first = entry;
    }
    return first;
  }
}
