import type { ChildSnapshot } from '../supervision/child-state.js';
import { elapsed, type ProgressLine } from './progress-line.js';

/** Shows on a terminal how many servers have started, and which package is being installed for how long. */
export class StartProgress {
  readonly #line: ProgressLine;
  readonly #total: number;
  readonly #installing = new Map<string, { readonly shown: string; readonly since: number }>();
  readonly #timer: NodeJS.Timeout;
  readonly #since = performance.now();
  #pending: readonly string[];

  constructor(line: ProgressLine, keys: readonly string[]) {
    this.#line = line;
    this.#total = keys.length;
    this.#pending = keys;
    this.#timer = setInterval(() => this.#show(), 1_000);
    this.#timer.unref();
  }

  moved(key: string, { missing, installingSince }: ChildSnapshot): void {
    if (missing === undefined || installingSince === undefined) this.#installing.delete(key);
    else this.#installing.set(key, { shown: missing, since: installingSince });
    this.#show();
  }

  /** Updates the keys of the servers that are still starting. */
  remaining(pending: readonly string[]): void {
    this.#pending = pending;
    this.#show();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#pending = [];
    this.#line.clear();
  }

  #show(): void {
    if (this.#pending.length === 0) {
      this.#line.clear();
      return;
    }
    const done = this.#total - this.#pending.length;
    const [first] = this.#installing.values();
    const activity =
      first === undefined
        ? `waiting for ${this.#pending.join(', ')}, ${elapsed(this.#since)}`
        : `installing ${first.shown}, ${elapsed(first.since)}`;
    this.#line.show(`${progressBar(done, this.#total)} ${done} of ${this.#total} started; ${activity}`);
  }
}

const BAR_WIDTH = 20;

export function progressBar(done: number, total: number): string {
  const filled = total === 0 ? BAR_WIDTH : Math.floor((BAR_WIDTH * done) / total);
  return `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`;
}
