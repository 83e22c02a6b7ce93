import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { HAS_GROUPS, type ListedProcess, listProcesses } from '../../host/process/processes.js';
import type { ResourceLimits } from '../../spec/server-rules.js';
import { describeBytes } from '../../wire/json/printable.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';

export interface GroupUsage {
  /** Resident memory. If the PSS was read, memory that several of the processes share counts once. */
  readonly memoryBytes: number;
  readonly processes: number;
  /** Processor time of the processes that run, on Linux also of their children that have ended, in milliseconds. */
  readonly cpuMs: number;
}

interface WatchedGroup {
  /** The pid of the leader, which is the id of the group. */
  readonly pid: number;
  limits(): ResourceLimits;
  /** Called when the group has exceeded a limit in two readings in a row. `reason` is a phrase with its usage. */
  onExceeded(reason: string): void;
}

interface UsageReading extends GroupUsage {
  /** Share of one processor since the reading before; can exceed 1. Absent after the first reading. */
  readonly cpuShare?: number;
}

interface ResourceWatchOptions {
  readonly clock: Clock;
  readonly readUsage: typeof readUsage;
  /** Called once if there are limits and the usage of the groups cannot be read. */
  readonly onUnreadable: (error: unknown) => void;
}

/** Time between two readings while a group has limits. */
const READ_EVERY_MS = 5_000;
/** Time for which a reading on request is used again, in milliseconds. */
const FRESH_MS = 1_000;
/** Age beyond which a reading is too old to compute a CPU share from, in milliseconds. */
const STALE_MS = 60_000;
/** Time between two readings that are made to compute a CPU share. */
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
 * Reads the usage of the process groups of servers, and reports the groups that exceed their limits.
 *
 * Reads a group on request, and all groups with limits together every 5 s.
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
    const never = Number.NEGATIVE_INFINITY;
    const watched: Watched = { group, reading: undefined, readAt: never, excesses: 0, refreshing: undefined };
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

  /** Usage of a group at the latest reading; `undefined` if it was not read yet. */
  readingOf(pid: number): UsageReading | undefined {
    return this.#watched.get(pid)?.reading;
  }

  /** Reads groups now, together, and twice if that is needed to know their use of the processor. Never rejects. */
  async refresh(...pids: readonly number[]): Promise<void> {
    const all = pids.flatMap((pid) => this.#watched.get(pid) ?? []);
    const others = all.filter(({ refreshing }) => refreshing === undefined);
    const reading = this.#refresh(others).finally(() => {
      for (const watched of others) watched.refreshing = undefined;
    });
    for (const watched of others) watched.refreshing = reading;
    await Promise.all(all.map(({ refreshing }) => refreshing));
  }

  /**
   * Reads all groups at once and keeps no reading. Memory that several processes share counts more than once, unless
   * `countsSharedOnce` is set, which costs as much as a reading on request. Never rejects.
   */
  async readAll({ countsSharedOnce = false } = {}): Promise<ReadonlyMap<number, GroupUsage>> {
    const lookCloselyAboveBytes = countsSharedOnce ? 0 : Number.POSITIVE_INFINITY;
    const requests = [...this.#watched.keys()].map((pid) => ({ pid, lookCloselyAboveBytes }));
    if (requests.length === 0) return NO_USAGE;
    return (await this.#options.readUsage(requests).catch(() => undefined)) ?? NO_USAGE;
  }

  async #refresh(all: readonly Watched[]): Promise<void> {
    const { clock } = this.#options;
    const now = clock.now();
    const old = all.filter(({ readAt }) => now - readAt >= FRESH_MS);
    const stale = old.filter(({ readAt }) => now - readAt > STALE_MS);
    if (stale.length > 0) {
      await this.#read(stale, true);
      await new Promise<void>((resolve) => void clock.schedule(PAIR_MS, resolve));
    }
    if (old.length > 0) await this.#read(old, true);
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
    try {
      for (const watched of await this.#read(this.#limited, false))
        if (this.#watched.get(watched.group.pid) === watched) judge(watched);
    } finally {
      this.#isChecking = false;
      this.#plan();
    }
  }

  /** Reads groups, closely or only above their limits. Returns the groups that could be read. */
  async #read(all: readonly Watched[], isClose: boolean): Promise<readonly Watched[]> {
    const { clock, readUsage, onUnreadable } = this.#options;
    const requests = all.map(({ group: { pid, limits } }) => {
      return { pid, lookCloselyAboveBytes: isClose ? 0 : (limits().memoryBytes ?? Number.POSITIVE_INFINITY) };
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
    return all.filter((watched) => {
      const usage = usages?.get(watched.group.pid);
      if (usage !== undefined) note(watched, usage, now);
      return usage !== undefined;
    });
  }
}

const NO_USAGE: ReadonlyMap<number, GroupUsage> = new Map();

function hasLimits({ memoryBytes, processes }: ResourceLimits): boolean {
  return memoryBytes !== undefined || processes !== undefined;
}

function note(watched: Watched, usage: GroupUsage, now: number): void {
  const { reading, readAt } = watched;
  // The time of a group shrinks when one of its processes ends.
  const usedMs = reading === undefined ? 0 : Math.max(0, usage.cpuMs - reading.cpuMs);
  const isComparable = reading !== undefined && now > readAt;
  watched.reading = isComparable ? { ...usage, cpuShare: usedMs / (now - readAt) } : usage;
  watched.readAt = now;
}

function judge(watched: Watched): void {
  const { group, reading } = watched;
  const excesses = reading === undefined ? [] : excessesOf(reading, group.limits());
  watched.excesses = excesses.length === 0 ? 0 : watched.excesses + 1;
  if (watched.excesses < READINGS_TO_EXCEED) return;
  watched.excesses = 0;
  group.onExceeded(excesses.join('; '));
}

function excessesOf({ memoryBytes, processes }: GroupUsage, limits: ResourceLimits): string[] {
  const { memoryBytes: maxBytes = Number.POSITIVE_INFINITY, processes: max = Number.POSITIVE_INFINITY } = limits;
  const memory = `it used ${describeBytes(memoryBytes)} of memory, limit ${describeBytes(maxBytes)}`;
  return [
    ...(memoryBytes > maxBytes ? [memory] : []),
    ...(processes > max ? [`it ran ${processes} processes, limit ${max}`] : []),
  ];
}

export interface UsageRequest {
  /** The pid of the leader, which is the id of the group. */
  readonly pid: number;
  /**
   * If several processes together have more resident memory than this, shared memory is counted once. That costs up
   * to 30 ms of processor time for each GiB.
   */
  readonly lookCloselyAboveBytes: number;
}

/**
 * Reads the usage of process groups; `undefined` if the system does not provide it. Leaves out groups that have ended. Rejects if this
 * program may not see it.
 */
export async function readUsage(
  requests: readonly UsageRequest[],
): Promise<ReadonlyMap<number, GroupUsage> | undefined> {
  if (!HAS_GROUPS) return undefined;
  const table = await listProcesses();
  if (table.every(({ cpuMs }) => cpuMs === undefined))
    throw new Error('`ps` does not tell this program how much memory processes use');
  const members = membersOfGroups(new Set(requests.map(({ pid }) => pid)), table);
  const usages = new Map<number, GroupUsage>();
  for (const { pid, lookCloselyAboveBytes } of requests) {
    const usage = await usageOf(members.get(pid) ?? [], lookCloselyAboveBytes);
    if (usage.processes > 0) usages.set(pid, usage);
  }
  return usages;
}

async function usageOf(members: readonly ListedProcess[], lookCloselyAboveBytes: number): Promise<GroupUsage> {
  const resident = await memoryOfAll(members, 'resident');
  const isShared = members.length > 1 && resident > lookCloselyAboveBytes;
  return {
    memoryBytes: isShared ? await memoryOfAll(members, 'proportional') : resident,
    processes: members.length,
    cpuMs: members.reduce((sum, { cpuMs = 0 }) => sum + cpuMs, 0),
  };
}

async function memoryOfAll(members: readonly ListedProcess[], kind: MemoryKind): Promise<number> {
  let sum = 0;
  for (const { pid, residentBytes } of members) {
    sum += residentBytes ?? (await memoryOfProcess(pid, kind)) ?? (await memoryOfProcess(pid, 'resident')) ?? 0;
  }
  return sum;
}

/**
 * Finds the processes of each group: its members, and their descendants that have left the group. A process that has
 * left the group is found only while its parent runs.
 */
export function membersOfGroups(
  pgids: ReadonlySet<number>,
  rows: readonly ListedProcess[],
): ReadonlyMap<number, readonly ListedProcess[]> {
  const byPid = new Map(rows.map((row) => [row.pid, row]));
  const groups = new Map<number, ListedProcess[]>([...pgids].map((pgid) => [pgid, []]));
  for (const row of rows) groups.get(groupOf(row, pgids, byPid) ?? -1)?.push(row);
  return groups;
}

/** The innermost of the groups that the process or one of its ancestors is in. */
function groupOf(
  row: ListedProcess,
  pgids: ReadonlySet<number>,
  byPid: ReadonlyMap<number, ListedProcess>,
): number | undefined {
  const seen = new Set<number>();
  // The table is not read at one instant, so a reused pid can make a cycle.
  for (
    let each: ListedProcess | undefined = row;
    each !== undefined && !seen.has(each.pid);
    each = byPid.get(each.ppid)
  ) {
    if (pgids.has(each.pgid)) return each.pgid;
    seen.add(each.pid);
  }
  return undefined;
}

/** Way to count the memory of one process. `proportional`: a page that several processes share counts in parts. */
type MemoryKind = 'resident' | 'proportional';

/**
 * The memory of a process on Linux; `undefined` elsewhere, after its end, or if it belongs to another user. For the
 * proportional memory the kernel visits each page, which takes 30 ms for 1 GiB, so the file is read off the event loop.
 */
export async function memoryOfProcess(pid: number, kind: MemoryKind): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined;
  const [file, pattern] = MEMORY[kind];
  try {
    const path = `/proc/${pid}/${file}`;
    // The kernel knows the resident memory at once, and a thread would cost more than the reading.
    return parseMemory(kind === 'resident' ? readFileSync(path, 'utf8') : await readFile(path, 'utf8'), pattern);
  } catch {
    // It has ended, belongs to another user, or the kernel is older than the file.
    return undefined;
  }
}

const MEMORY = {
  resident: ['status', /^VmRSS:\s+(\d+) kB$/m],
  proportional: ['smaps_rollup', /^Pss:\s+(\d+) kB$/m],
} as const;

function parseMemory(text: string, pattern: RegExp): number | undefined {
  const [, kib] = pattern.exec(text) ?? [];
  return kib === undefined ? undefined : Number(kib) * 1024;
}
