// Proves that a test has left nothing behind.
import { readdirSync, readlinkSync } from 'node:fs';
import { guardiansOf, PATIENCE_MS, processesOf, until } from './processes.js';

/**
 * Finds what a test has left behind: processes, guardians, file descriptors, timers and other handles, listeners on `process`, and whatever
 * the test counts besides.
 *
 * Create it before the test starts anything. Call `check` when everything was ended; it waits for what still ends by itself.
 */
export class NothingLeft {
  /** Part of the command lines of all processes of the test. */
  readonly #mark: string;
  readonly #counts: [what: string, read: () => number][] = [];
  readonly #descriptors = descriptors();
  readonly #handles = handles();
  readonly #listeners = listeners();
  readonly #timers = new WatchedTimers();

  constructor(mark: string) {
    this.#mark = mark;
  }

  /** Adds a count that has to be 0 in the end. */
  count(what: string, read: () => number): void {
    this.#counts.push([what, read]);
  }

  /** Fails with a list of what is left when it does not disappear within `withinMs`. */
  async check(withinMs = PATIENCE_MS): Promise<void> {
    let left: string[] = [];
    const isNothing = () => {
      left = this.#left();
      return left.length === 0;
    };
    await until('nothing is left', isNothing, withinMs).catch(() => {
      throw new Error(`Left behind:\n${left.join('\n')}`);
    });
    this.#timers.stop();
  }

  #left(): string[] {
    const within = this.#leftWithin();
    // Listing processes takes longer, so it comes last.
    return within.length > 0 ? within : this.#leftOutside();
  }

  #leftWithin(): string[] {
    return [
      ...more('handle', handles(), this.#handles),
      ...more('listener', listeners(), this.#listeners),
      ...more('descriptor', descriptors(), this.#descriptors),
      ...(this.#timers.pending === 0 ? [] : [`timers: ${this.#timers.pending}`]),
      ...this.#counts.flatMap(([what, read]) => (read() === 0 ? [] : [`${what}: ${read()}`])),
    ];
  }

  #leftOutside(): string[] {
    return [
      ...processesOf(this.#mark).map((pid) => `process ${pid}`),
      ...guardiansOf(process.pid).map(({ pid }) => `guardian ${pid}`),
    ];
  }
}

type Tally = ReadonlyMap<string, number>;

function tally(names: readonly string[]): Tally {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function more(kind: string, now: Tally, before: Tally): string[] {
  return [...now].flatMap(([name, count]) => {
    const surplus = count - (before.get(name) ?? 0);
    return surplus > 0 ? [`${kind} ${name}: ${surplus} more`] : [];
  });
}

/** The handles that keep the event loop alive, by kind. `WatchedTimers` counts timers, since the runner has some. */
function handles(): Tally {
  return tally(process.getActiveResourcesInfo().filter((kind) => kind !== 'Timeout'));
}

function listeners(): Tally {
  return tally(process.eventNames().flatMap((name) => process.listeners(name as 'exit').map(() => String(name))));
}

/** The open file descriptors by their target. Only Linux lists them. */
function descriptors(): Tally {
  if (process.platform !== 'linux') return new Map();
  const folder = '/proc/self/fd';
  return tally(readdirSync(folder).flatMap((fd) => targetOf(`${folder}/${fd}`)));
}

function targetOf(link: string): string[] {
  try {
    return [readlinkSync(link)];
  } catch {
    // This is the descriptor with which the folder was read; it is closed by now.
    return [];
  }
}

/**
 * Counts the timers that were made since the construction and have neither fired nor been cleared. Timers of the test
 * runner are not counted, since it holds the original functions.
 */
class WatchedTimers {
  readonly #pending = new Set<unknown>();
  readonly #setTimeout = globalThis.setTimeout;
  readonly #clearTimeout = globalThis.clearTimeout;

  constructor() {
    const watched = (task: (...args: unknown[]) => void, delayMs?: number, ...args: unknown[]) => {
      const timer = this.#setTimeout(() => {
        this.#pending.delete(timer);
        task(...args);
      }, delayMs);
      this.#pending.add(timer);
      return timer;
    };
    // The copy has the properties of the original, such as its promisified form.
    globalThis.setTimeout = Object.assign(watched, this.#setTimeout) as typeof setTimeout;
    globalThis.clearTimeout = (timer) => {
      this.#pending.delete(timer);
      this.#clearTimeout(timer);
    };
  }

  get pending(): number {
    return this.#pending.size;
  }

  /** Restores the original functions. Timers that were counted may still fire. */
  stop(): void {
    globalThis.setTimeout = this.#setTimeout;
    globalThis.clearTimeout = this.#clearTimeout;
  }
}
