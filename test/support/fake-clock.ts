// A clock for unit tests. Use it wherever a test is about time: deadlines, delays, intervals.
import type { Cancel, Clock } from '../../src/wire/timing/clock.js';

interface Scheduled {
  readonly at: number;
  readonly task: () => void;
}

/** A clock that stands still until a test moves it. */
export class FakeClock implements Clock {
  #now = 0;
  readonly #scheduled = new Set<Scheduled>();

  /** Number of scheduled tasks. */
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

  /** Moves the time forward and runs the tasks that fall due, in their order, including those scheduled meanwhile. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (let next = this.#nextBefore(until); next !== undefined; next = this.#nextBefore(until)) {
      this.#scheduled.delete(next);
      this.#now = next.at;
      next.task();
    }
    this.#now = until;
  }

  /** Moves the time forward as `advance` does, and lets `settle` pass after each task, for those that wait for I/O. */
  async advanceSlowly(ms: number, settle: () => Promise<void>): Promise<void> {
    const until = this.#now + ms;
    for (let next = this.#nextBefore(until); next !== undefined; next = this.#nextBefore(until)) {
      this.advance(next.at - this.#now);
      await settle();
    }
    this.advance(until - this.#now);
  }

  /** Moves the time forward at once, as after a sleep of the machine: the tasks that fell due run now, in their order. */
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
