import type { ChildSnapshot } from '../../../supervision/child-state.js';
import { elapsed, type ProgressLine } from '../../progress-line.js';

/** Shows a progress line on a terminal: how many servers have started or are done, which are pending, and for how long. */
export class StartProgress {
  readonly #line: ProgressLine;
  readonly #total: number;
  readonly #done: string;
  readonly #installing = new Map<string, { readonly shown: string; readonly since: number }>();
  readonly #timer: NodeJS.Timeout;
  readonly #since = performance.now();
  #pending: readonly string[];

  /** `done` is the word for a server that is no longer pending. */
  constructor(line: ProgressLine, keys: readonly string[], { done = 'started' } = {}) {
    this.#line = line;
    this.#done = done;
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
    // Servers that need the same package wait for one installation.
    const packages = new Set([...this.#installing.values()].map(({ shown }) => shown));
    const [first] = this.#installing.values();
    const activity =
      first === undefined
        ? `waiting for ${shortened(this.#pending)}, ${elapsed(this.#since)}`
        : `installing ${shortened([...packages])}, ${elapsed(first.since)}`;
    this.#line.show(`${progressBar(done, this.#total)} ${done} of ${this.#total} ${this.#done}; ${activity}`);
  }
}

/** More names than this are counted, so that the time behind them stays on the line. */
const MAX_NAMES = 3;

function shortened(names: readonly string[]): string {
  const named = names.slice(0, MAX_NAMES).join(', ');
  return names.length > MAX_NAMES ? `${named} and ${names.length - MAX_NAMES} more` : named;
}

const BAR_WIDTH = 20;

export function progressBar(done: number, total: number): string {
  const filled = total === 0 ? BAR_WIDTH : Math.floor((BAR_WIDTH * done) / total);
  return `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`;
}
