import { serverStateOf } from '../../status/status.js';
import type { ServerFacts, StatusFacts } from '../../status/status-facts.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import type { ClusterFacts, FeatureHost } from '../feature.js';
import { expositionOf, type Labels, type Metrics, type Sample, type Samples } from './metrics.js';

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** States of a server, in the order of its life. */
const STATES = [
  ...['stopped', 'idle', 'installing', 'starting', 'ready', 'suspect', 'backoff', 'offline', 'blocked', 'parked'],
  ...['stopping', 'misconfigured', 'per user'],
];
const BREAKER_STATES = ['closed', 'half-open', 'open'];

/** Sentences about the metrics, by type and name. */
const HELP = {
  counter: {
    trunkline_calls_total: 'Tool calls that have ended, by outcome.',
    trunkline_server_restarts_total: 'Starts of a server that had run before.',
    trunkline_oauth_refresh_total: 'Renewals of the tokens of a login.',
    trunkline_refused_total: 'Calls, requests and messages that were refused or dropped.',
    trunkline_internal_errors_total: 'Errors in Trunkline itself.',
    trunkline_server_cpu_seconds_total: 'Processor time of the processes of the server, as of the scrapes.',
    trunkline_cluster_hops_total: 'Requests that were passed to other gateways, and from them.',
    process_cpu_seconds_total: 'Processor time of Trunkline.',
  },
  histogram: {
    trunkline_call_duration_seconds: 'Time from the arrival of a tool call to its answer.',
    trunkline_queue_wait_seconds:
      'Time of a tool call that it did not spend in the server: waits for a start or a slot.',
    mcp_server_operation_duration_seconds: 'Time to answer a request of a client.',
    mcp_client_operation_duration_seconds: 'Time in which a server answered a request, for each attempt.',
  },
  gauge: {
    trunkline_in_flight: 'Requests that the server has not answered yet.',
    trunkline_queued: 'Calls that wait for the server.',
    trunkline_breaker_state: 'Circuit breaker: 0 closed, 1 half open, 2 open.',
    trunkline_list_bytes: 'Size of the definitions of the listed tools.',
    trunkline_server_state: 'Whether the server is in this state: 1 for one of them, 0 for the others.',
    trunkline_tools: 'Tools of the server: shown, hidden by the configuration, quarantined, unapproved.',
    trunkline_server_resident_bytes: 'Resident memory of the processes of the server.',
    trunkline_server_processes: 'Processes of the server that run.',
    trunkline_sessions: 'Open sessions of clients.',
    trunkline_cluster_members: 'Gateways of the cluster that this one knows, with itself, by state.',
    trunkline_cluster_homes: 'Users and sessions that have their homes at this gateway.',
    trunkline_cluster_store_up: 'Whether the store of the cluster answers.',
    process_resident_memory_bytes: 'Resident memory of Trunkline.',
    process_start_time_seconds: 'Start of Trunkline since 1970.',
    nodejs_heap_size_used_bytes: 'Used heap of Trunkline.',
    trunkline_config_fault: 'Whether the configuration file has mistakes.',
    trunkline_build_info: 'Versions of Trunkline and of Node.',
  },
  summary: {
    nodejs_eventloop_lag_seconds: 'Delays of the event loop since the start; the quantile 1 is the longest.',
  },
};

/** Returns a function that reads all metrics as text for Prometheus. It adds up the processor time from scrape to scrape. */
export function createExposition(metrics: Metrics, host: FeatureHost): () => Promise<string> {
  const cpu = new ProcessorTime();
  return async () => {
    const usage = await host.usage.readAll();
    const facts = host.status();
    const cluster = host.features.first('cluster');
    return expositionOf(HELP, {
      ...ofCalls(metrics),
      ...ofServers(facts),
      ...ofUsage(facts, usage, cpu),
      ...ofEvents(metrics, facts),
      trunkline_sessions: sessions(host, facts),
      ...(cluster && ofCluster(cluster)),
      ...ofProcess(facts),
    });
  };
}

function labeled(label: string, numbers: Readonly<Record<string, number>>, others: Labels = {}): Sample[] {
  return Object.entries(numbers).map(([name, value]) => ({ labels: { ...others, [label]: name }, value }));
}

function one(value: number, labels: Labels = {}): Sample[] {
  return [{ labels, value }];
}

function ofCalls({ calls, durations, waits, clientRequests, serverRequests }: Metrics): Samples {
  return {
    trunkline_calls_total: calls.samples,
    trunkline_call_duration_seconds: durations.samples,
    trunkline_queue_wait_seconds: waits.samples,
    mcp_server_operation_duration_seconds: clientRequests.samples,
    mcp_client_operation_duration_seconds: serverRequests.samples,
  };
}

function ofServers({ servers, catalogs }: StatusFacts): Samples {
  const ofEach = (value: (server: ServerFacts) => number) =>
    servers.flatMap((each) => one(value(each), { server: each.backend.key }));
  return {
    trunkline_in_flight: ofEach((server) => sum(server, ({ dispatcher }) => dispatcher.connection?.inFlight ?? 0)),
    trunkline_queued: ofEach((server) => sum(server, ({ dispatcher }) => dispatcher.admission.queued)),
    trunkline_breaker_state: ofEach(({ instances }) =>
      Math.max(0, ...instances.map(({ backend }) => BREAKER_STATES.indexOf(backend.dispatcher.breaker.state))),
    ),
    trunkline_list_bytes: ofEach(({ backend }) =>
      backend.listsAs('exposed').tools.entries.reduce((bytes, { entry }) => bytes + (entry?.length ?? 0), 0),
    ),
    trunkline_server_state: servers.flatMap((server) => {
      const now = serverStateOf(server);
      return STATES.flatMap((state) => one(state === now ? 1 : 0, { server: server.backend.key, state }));
    }),
    trunkline_tools: servers.flatMap(({ backend }) => {
      const { key: server } = backend;
      const { denied, withheld, verdicts } = backend.listsAs('exposed').tools;
      const shadowed = catalogs.tools.shadowed.filter(({ key }) => key === server).length;
      const unapproved = [...(verdicts?.values() ?? [])].filter((verdict) => verdict !== 'approved').length;
      const counts = {
        shown: catalogs.tools.listed.get(server)?.length ?? 0,
        hidden: denied.length,
        quarantined: Math.max(0, withheld.length + shadowed - unapproved),
        unapproved,
      };
      return labeled('kind', counts, { server });
    }),
  };
}

function sum({ instances }: ServerFacts, read: (backend: ServerFacts['backend']) => number): number {
  return instances.reduce((total, { backend }) => total + read(backend), 0);
}

type Usage = Awaited<ReturnType<FeatureHost['usage']['readAll']>>;

function ofUsage({ servers }: StatusFacts, usage: Usage, cpu: ProcessorTime): Samples {
  const used = servers.map(({ backend: { key: server }, instances }) => {
    const total = { labels: { server }, memoryBytes: 0, processes: 0 };
    for (const { lifecycle } of instances) {
      const { pid = 0 } = lifecycle ?? {};
      const group = usage.get(pid);
      if (group === undefined) continue;
      cpu.note(server, pid, group.cpuMs);
      total.memoryBytes += group.memoryBytes;
      total.processes += group.processes;
    }
    return total;
  });
  cpu.forget(usage);
  return {
    trunkline_server_cpu_seconds_total: used.flatMap(({ labels }) => one(cpu.of(labels.server) / 1_000, labels)),
    trunkline_server_resident_bytes: used.flatMap(({ memoryBytes, labels }) => one(memoryBytes, labels)),
    trunkline_server_processes: used.flatMap(({ processes, labels }) => one(processes, labels)),
  };
}

/** Adds up the processor time of servers. The sum goes on growing when a process ends and the next one begins at 0. */
class ProcessorTime {
  readonly #totals = new Map<string, number>();
  readonly #latest = new Map<number, number>();

  of(server: string): number {
    return this.#totals.get(server) ?? 0;
  }

  note(server: string, pid: number, cpuMs: number): void {
    // Adds nothing if the time of a group shrinks, because one of its processes has ended.
    const added = Math.max(0, cpuMs - (this.#latest.get(pid) ?? 0));
    this.#totals.set(server, this.of(server) + added);
    this.#latest.set(pid, cpuMs);
  }

  forget(usage: Usage): void {
    for (const pid of this.#latest.keys()) if (!usage.has(pid)) this.#latest.delete(pid);
  }
}

function ofEvents({ restarts, refused, renewals }: Metrics, facts: StatusFacts): Samples {
  return {
    trunkline_server_restarts_total: restarts.samples,
    trunkline_oauth_refresh_total: renewals.samples,
    trunkline_refused_total: [
      ...refused.samples,
      ...one(facts.partialFrames.evictions, { where: 'unfinished_messages', reason: 'memory' }),
      ...one(facts.requestBodies.evictions, { where: 'unfinished_bodies', reason: 'memory' }),
    ],
    trunkline_internal_errors_total: one(facts.internalErrorCount),
  };
}

function sessions({ gateway }: FeatureHost, { service }: StatusFacts): Sample[] {
  const front = service === undefined || service.kind === 'alone' ? 'stdio' : service.kind;
  const counts = { legacy: 0, modern: 0 };
  for (const { revision } of gateway.clients)
    counts[revision !== undefined && isModernRevision(revision) ? 'modern' : 'legacy'] += 1;
  return labeled('era', counts, { front });
}

function ofCluster({ members, homes, isStoreUp, hops, received }: ClusterFacts): Samples {
  return {
    trunkline_cluster_members: labeled('state', members),
    trunkline_cluster_homes: one(homes),
    trunkline_cluster_store_up: one(isStoreUp ? 1 : 0),
    trunkline_cluster_hops_total: [
      ...labeled('outcome', hops, { direction: 'out' }),
      ...labeled('outcome', { ...received }, { direction: 'in' }),
    ],
  };
}

function ofProcess({ version, eventLoop, now, startedAt, config }: StatusFacts): Samples {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return {
    process_cpu_seconds_total: one((user + system) / 1e6),
    process_resident_memory_bytes: one(rss),
    process_start_time_seconds: one((Date.now() - now + startedAt) / 1_000),
    nodejs_heap_size_used_bytes: one(heapUsed),
    nodejs_eventloop_lag_seconds: [
      ...one(eventLoop.p99Ms / 1_000, { quantile: '0.99' }),
      ...one(eventLoop.maxMs / 1_000, { quantile: '1' }),
    ],
    trunkline_config_fault: one(config.fault === undefined ? 0 : 1),
    trunkline_build_info: one(1, { version, node: process.version }),
  };
}
