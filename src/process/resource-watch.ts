import { describeBytes } from '../json/describe-bytes.js';
import { exceeded, type GroupUsage, type ResourceLimits } from '../supervision/resource-limits.js';
import type { Cancel, Clock } from '../timing/clock.js';
import type { readUsage } from './group-usage.js';

/** A process group of a server. */
export interface WatchedGroup {
  /** The pid of the leader, which is the id of the group. */
  readonly pid: number;
  /** The limits that apply now. */
  limits(): ResourceLimits;
  /** The group has exceeded a limit in two readings in a row. Says what it used, as a phrase. */
  onExceeded(reason: string): void;
}

/** What a group used at the latest reading. */
export interface UsageReading extends GroupUsage {
  /** Share of one processor since the reading before; can exceed 1. Absent after the first reading. */
  readonly cpuShare?: number;
}

export interface ResourceWatchOptions {
  readonly clock: Clock;
  readonly readUsage: typeof readUsage;
  /** There are limits, and the system does not tell what the groups use. Called once. */
  readonly onUnreadable: (error: unknown) => void;
}

/** Time between two readings while a group has limits. */
const READ_EVERY_MS = 5_000;
/** A reading on request is good for this long. */
const FRESH_MS = 1_000;
/** An older reading says nothing about what the processor does now. */
const STALE_MS = 60_000;
/** Time between the two readings that show what the processor does now. */
const PAIR_MS = 100;
const READINGS_TO_EXCEED = 2;

interface Watched {
  readonly group: WatchedGroup;
  reading: UsageReading | undefined;
  readAt: number;
  /** Readings in a row that exceeded a limit. */
  excesses: number;
  /** The reading on request that is under way. */
  refreshing: Promise<void> | undefined;
}

/**
 * Knows what the process groups of servers use, and reports those that exceed their limits.
 *
 * Nothing is read unless somebody asks, or groups have limits: then these are read together every 5 s.
 */
export class ResourceWatch {
  readonly #options: ResourceWatchOptions;
  readonly #watched = new Map<number, Watched>();
  #cancel: Cancel | undefined;
  #isChecking = false;
  #wasUnreadable = false;

  constructor(options: ResourceWatchOptions) {
    this.#options = options;
  }

  /** Watches a group until the returned function is called. */
  add(group: WatchedGroup): () => void {
    const watched: Watched = {
      ...{ group, reading: undefined, readAt: Number.NEGATIVE_INFINITY },
      ...{ excesses: 0, refreshing: undefined },
    };
    this.#watched.set(group.pid, watched);
    this.#plan();
    return () => {
      if (this.#watched.get(group.pid) === watched) this.#watched.delete(group.pid);
      this.#plan();
    };
  }

  /** The limits of some groups may be different from now on. */
  limitsChanged(): void {
    this.#plan();
  }

  /** What a group used at the latest reading; `undefined` if it was not read yet. */
  readingOf(pid: number): UsageReading | undefined {
    return this.#watched.get(pid)?.reading;
  }

  /** Reads a group now, twice if that is needed to know its use of the processor. Never rejects. */
  async refresh(pid: number): Promise<void> {
    const watched = this.#watched.get(pid);
    if (watched === undefined) return;
    watched.refreshing ??= this.#refresh(watched).finally(() => {
      watched.refreshing = undefined;
    });
    await watched.refreshing;
  }

  async #refresh(watched: Watched): Promise<void> {
    const { clock } = this.#options;
    const age = clock.now() - watched.readAt;
    if (age < FRESH_MS) return;
    if (age > STALE_MS) {
      await this.#read([watched], () => 0);
      await new Promise<void>((resolve) => {
        clock.schedule(PAIR_MS, resolve);
      });
    }
    await this.#read([watched], () => 0);
  }

  get #limited(): Watched[] {
    return [...this.#watched.values()].filter(({ group }) => hasLimits(group.limits()));
  }

  /** Sets the timer if there are limits, and cancels it if there are none. */
  #plan(): void {
    // The check plans the next one at its end.
    if (this.#isChecking) return;
    if (this.#limited.length === 0) {
      this.#cancel?.();
      this.#cancel = undefined;
    } else {
      this.#cancel ??= this.#options.clock.schedule(READ_EVERY_MS, () => void this.#check());
    }
  }

  async #check(): Promise<void> {
    this.#cancel = undefined;
    this.#isChecking = true;
    const limited = this.#limited;
    const readBefore = new Map(limited.map((watched) => [watched, watched.readAt]));
    try {
      await this.#read(limited, ({ memoryBytes = Number.POSITIVE_INFINITY }) => memoryBytes);
      for (const watched of limited) {
        const isRead = watched.readAt !== readBefore.get(watched);
        if (isRead && this.#watched.get(watched.group.pid) === watched) judge(watched);
      }
    } finally {
      this.#isChecking = false;
      this.#plan();
    }
  }

  async #read(all: readonly Watched[], lookCloselyAbove: (limits: ResourceLimits) => number): Promise<void> {
    const { clock, readUsage, onUnreadable } = this.#options;
    const requests = all.map(({ group: { pid, limits } }) => {
      return { pid, lookCloselyAboveBytes: lookCloselyAbove(limits()) };
    });
    let unreadable: unknown;
    const usages = await readUsage(requests).catch((error: unknown) => {
      unreadable = error;
      return undefined;
    });
    if (usages === undefined && !this.#wasUnreadable && this.#limited.length > 0) {
      this.#wasUnreadable = true;
      onUnreadable(unreadable);
    }
    const now = clock.now();
    for (const watched of all) {
      const usage = usages?.get(watched.group.pid);
      if (usage !== undefined) note(watched, usage, now);
    }
  }
}

function hasLimits({ memoryBytes, processes }: ResourceLimits): boolean {
  return memoryBytes !== undefined || processes !== undefined;
}

function note(watched: Watched, usage: GroupUsage, now: number): void {
  const { reading, readAt } = watched;
  // Processes that have ended take their time with them.
  const usedMs = reading === undefined ? 0 : Math.max(0, usage.cpuMs - reading.cpuMs);
  const isComparable = reading !== undefined && now > readAt;
  watched.reading = isComparable ? { ...usage, cpuShare: usedMs / (now - readAt) } : usage;
  watched.readAt = now;
}

function judge(watched: Watched): void {
  const { group, reading } = watched;
  const limits = group.limits();
  const over = reading === undefined ? [] : exceeded(reading, limits);
  watched.excesses = over.length === 0 ? 0 : watched.excesses + 1;
  if (reading === undefined || watched.excesses < READINGS_TO_EXCEED) return;
  watched.excesses = 0;
  group.onExceeded(over.map((limit) => describeExcess(limit, reading, limits)).join('; '));
}

function describeExcess(limit: keyof ResourceLimits, usage: GroupUsage, limits: ResourceLimits): string {
  return limit === 'memoryBytes'
    ? `it used ${describeBytes(usage.memoryBytes)} of memory, limit ${describeBytes(limits.memoryBytes ?? 0)}`
    : `it ran ${usage.processes} processes, limit ${limits.processes}`;
}
