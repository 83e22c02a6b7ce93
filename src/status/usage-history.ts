import type { CallFeed } from '../gateway/call-feed.js';
import type { EventSource } from '../host/observe/events/events.js';
import type { Cancel, Clock } from '../wire/timing/clock.js';

export const HISTORY_MINUTES = 60;
const MINUTE_MS = 60_000;

/** The last minutes of all servers, oldest first, but none from before the start of the gateway. */
export interface HistoryReport {
  /** Time of the report, in milliseconds since 1970. The last value of each server is for the minute of this time. */
  readonly at: number;
  readonly servers: readonly ServerHistory[];
}

/** One value for each minute. The values of the last minute are not final. */
export interface ServerHistory {
  readonly server: string;
  /** Calls that ended in the minute. */
  readonly calls: readonly number[];
  /** Memory of all processes of the server in bytes; null if it was not measured. */
  readonly memory: readonly (number | null)[];
  /** Percent of one processor, since the minute before; null if it was not measured. */
  readonly cpu: readonly (number | null)[];
}

interface Minute {
  calls: number;
  memory: number | null;
  cpu: number | null;
}

interface UsageHistoryOptions {
  /** Milliseconds since 1970, because the history includes the minutes in which the machine slept. */
  readonly now: () => number;
  readonly schedule: Clock['schedule'];
  /** The processes that run, each with the key of its server. */
  readonly processes: () => readonly { readonly server: string; readonly pid: number }[];
  readonly readUsage: () => Promise<
    ReadonlyMap<number, { readonly memoryBytes: number; readonly cpuMs: number }> | undefined
  >;
  readonly calls: CallFeed;
  readonly events: EventSource;
}

/**
 * Records calls, memory and processor usage of each server for the last hour, one value a minute, so that a page that is opened
 * later can show them.
 *
 * A call costs one addition. Memory and processor need a timer, because a server without calls may grow, too. The timer fires at
 * the start of each minute and reads all processes at once. It stops while no process runs. A server takes at most 60 small objects.
 */
export class UsageHistory {
  readonly #options: UsageHistoryOptions;
  readonly #servers = new Map<string, Map<number, Minute>>();
  /** Processor time of each process at the last measurement, and the time of the measurement. */
  #measured: { readonly at: number; readonly cpuMs: ReadonlyMap<number, number> } = { at: 0, cpuMs: new Map() };
  readonly #since: number;
  #cancel: Cancel | undefined;
  #isClosed = false;

  constructor(options: UsageHistoryOptions) {
    this.#options = options;
    this.#since = minuteOf(options.now());
    options.calls.observe(this);
    options.events.subscribe('server.changed', () => this.#processesChanged());
    this.#processesChanged();
  }

  ended({ server }: { readonly server: string | undefined }): void {
    if (server !== undefined) this.#minute(server, this.#options.now()).calls += 1;
  }

  begin(): this {
    return this;
  }

  /** Starts the timer if a process of a server runs. */
  #processesChanged(): void {
    if (this.#isClosed || this.#cancel !== undefined || this.#options.processes().length === 0) return;
    const { now, schedule } = this.#options;
    this.#cancel = schedule(MINUTE_MS - (now() % MINUTE_MS), () => void this.#measure());
  }

  /** Returns the history of these servers, and forgets all others. */
  report(servers: Iterable<string>): HistoryReport {
    const at = this.#options.now();
    const last = minuteOf(at);
    // The clock of the machine may have been set back.
    const first = Math.min(last, Math.max(this.#since, last - HISTORY_MINUTES + 1));
    const range = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const known = new Map(this.#servers);
    this.#servers.clear();
    const reports = [...servers].map((server) => {
      const minutes = known.get(server);
      if (minutes !== undefined) this.#servers.set(server, minutes);
      const all = range.map((minute) => minutes?.get(minute));
      const pick = (kind: 'memory' | 'cpu') => all.map((minute) => minute?.[kind] ?? null);
      return { server, calls: all.map((minute) => minute?.calls ?? 0), memory: pick('memory'), cpu: pick('cpu') };
    });
    return { at, servers: reports };
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #measure(): Promise<void> {
    const { now, processes, readUsage } = this.#options;
    const usages = await readUsage();
    const at = now();
    const before = this.#measured;
    const sums = new Map<string, { memory: number; cpu: number | null }>();
    for (const { server, pid } of processes()) {
      const usage = usages?.get(pid);
      if (usage === undefined) continue;
      const { memory = 0, cpu = null } = sums.get(server) ?? {};
      const cpuMs = before.cpuMs.get(pid);
      // The sum is lower than before if a process of the group has ended, because its processor time no longer counts.
      const share = cpuMs === undefined || at <= before.at ? null : Math.max(0, usage.cpuMs - cpuMs) / (at - before.at);
      sums.set(server, {
        memory: memory + usage.memoryBytes,
        cpu: share === null ? cpu : (cpu ?? 0) + Math.round(share * 100),
      });
    }
    for (const [server, sum] of sums) Object.assign(this.#minute(server, at), sum);
    this.#measured = { at, cpuMs: new Map([...(usages ?? [])].map(([pid, { cpuMs }]) => [pid, cpuMs])) };
    this.#cancel = undefined;
    this.#processesChanged();
  }

  #minute(server: string, now: number): Minute {
    const at = minuteOf(now);
    const minutes = this.#servers.get(server) ?? new Map<number, Minute>();
    this.#servers.set(server, minutes);
    const known = minutes.get(at);
    if (known !== undefined) return known;
    for (const other of minutes.keys()) if (other <= at - HISTORY_MINUTES || other > at) minutes.delete(other);
    const minute: Minute = { calls: 0, memory: null, cpu: null };
    minutes.set(at, minute);
    return minute;
  }
}

function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS);
}
