import type { CallFeed } from '../gateway/call-feed.js';
import type { EventSource } from '../host/observe/events/events.js';
import { backgroundClock } from '../host/observe/system-clock.js';
import type { ResourceWatch } from '../servers/process/resource-watch.js';
import { type HistoryReport, UsageHistory } from '../status/usage-history.js';
import type { SupervisedBackends } from './supervised-backends.js';

/** Memory, processes and processor time of all servers, measured on request. */
export class ServerUsage {
  readonly #instances: SupervisedBackends;
  readonly #calls: CallFeed;
  readonly #events: EventSource;
  #resources: ResourceWatch | undefined;
  #history: UsageHistory | undefined;

  constructor(instances: SupervisedBackends, calls: CallFeed, events: EventSource) {
    this.#instances = instances;
    this.#calls = calls;
    this.#events = events;
  }

  /** Sets the watch that measures. Call this before the first server process starts. */
  measureWith(resources: ResourceWatch): void {
    this.#resources = resources;
  }

  /** The latest measurement of the process group with this pid. */
  of(pid: number): ReturnType<ResourceWatch['readingOf']> {
    return this.#resources?.readingOf(pid);
  }

  /** Measures these process groups, or those of all servers, for the next status. */
  async refresh(...pids: readonly number[]): Promise<void> {
    const all = pids.length === 0 ? this.#instances.running.map(({ pid }) => pid) : pids;
    await this.#resources?.refresh(...all);
  }

  /** Measures all servers. Resolves with the measurements by the pid of the process group. */
  async readAll(): ReturnType<ResourceWatch['readAll']> {
    return (await this.#resources?.readAll()) ?? new Map();
  }

  /**
   * Calls and use of these servers in the last hour. The record begins with the first request, because only gateways that have loaded the
   * commands of `trunkline web` need it.
   */
  history(servers: Iterable<string>): HistoryReport {
    this.#history ??= new UsageHistory({
      now: Date.now,
      schedule: backgroundClock.schedule,
      processes: () => this.#instances.running,
      readUsage: async () => await this.#resources?.readAll({ countsSharedOnce: true }),
      calls: this.#calls,
      events: this.#events,
    });
    return this.#history.report(servers);
  }

  close(): void {
    this.#history?.close();
  }
}
