import { serverStateOf } from '../../status/status.js';
import type { ServerFacts, StatusFacts } from '../../status/status-facts.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import type { ClusterFacts, FeatureHost } from '../feature.js';
import { type Counter, Exposition, type Metrics, OUTCOMES, type Series } from './metrics.js';

/** Media type of the text. */
export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

type Measured = Pick<FeatureHost, 'gateway' | 'status' | 'features' | 'usage'>;

/** States of a server, in the order of its life. */
const STATES = [
  ...['stopped', 'idle', 'installing', 'starting', 'ready', 'suspect', 'backoff', 'offline', 'blocked', 'parked'],
  ...['stopping', 'misconfigured', 'per user'],
];
const BREAKER_STATES = ['closed', 'half-open', 'open'];

/** Returns a function that reads all metrics as text for Prometheus. It adds up the processor time from scrape to scrape. */
export function createExposition(metrics: Metrics, host: Measured): () => Promise<string> {
  const cpu = new ProcessorTime();
  return async () => {
    const usage = await host.usage.readAll();
    const facts = host.status();
    const out = new Exposition();
    writeCalls(out, metrics);
    writeServers(out, facts);
    writeUsage(out, facts, usage, cpu);
    writeCounters(out, metrics, facts);
    writeSessions(out, host, facts);
    const { cluster } = host.features;
    if (cluster !== undefined) writeCluster(out, cluster);
    writeProcess(out, facts);
    return out.text;
  };
}

function writeCalls(out: Exposition, { servers, clientRequests, serverRequests }: Metrics): void {
  out.begin('trunkline_calls_total', 'counter', 'Tool calls that have ended, by outcome.');
  for (const [server, { tools }] of servers)
    for (const [tool, counts] of tools) out.add(counts.linesOf('trunkline_calls_total', { server, tool }, 'outcome'));
  const duration = 'trunkline_call_duration_seconds';
  out.begin(duration, 'histogram', 'Time from the arrival of a tool call to its answer.');
  for (const [server, { durations }] of servers)
    for (const [at, outcome] of OUTCOMES.entries())
      if (durations[at] !== undefined) out.add(durations[at].linesOf(duration, { server, outcome }));
  const wait = 'trunkline_queue_wait_seconds';
  out.begin(wait, 'histogram', 'Time of a tool call that it did not spend in the server: waits for a start or a slot.');
  for (const [server, { waits }] of servers) if (waits.count > 0) out.add(waits.linesOf(wait, { server }));
  for (const [name, series, help] of [
    ['mcp_server_operation_duration_seconds', clientRequests, 'Time to answer a request of a client.'],
    [
      'mcp_client_operation_duration_seconds',
      serverRequests,
      'Time in which a server answered a request, for each attempt.',
    ],
  ] as const) {
    out.begin(name, 'histogram', help);
    for (const { labels, value } of series.all.values()) out.add(value.linesOf(name, labels));
  }
}

function writeServers(out: Exposition, facts: StatusFacts): void {
  const { servers, catalogs } = facts;
  const gauge = (name: string, help: string, value: (server: ServerFacts) => number) => {
    out.begin(name, 'gauge', help);
    for (const each of servers) out.sample(name, { server: each.backend.key }, value(each));
  };
  gauge('trunkline_in_flight', 'Requests that the server has not answered yet.', (server) =>
    sum(server, ({ dispatcher }) => dispatcher.connection?.inFlight ?? 0),
  );
  gauge('trunkline_queued', 'Calls that wait for the server.', (server) =>
    sum(server, ({ dispatcher }) => dispatcher.admission.queued),
  );
  gauge('trunkline_breaker_state', 'Circuit breaker: 0 closed, 1 half open, 2 open.', ({ instances }) =>
    Math.max(0, ...instances.map(({ backend }) => BREAKER_STATES.indexOf(backend.dispatcher.breaker.state))),
  );
  gauge('trunkline_list_bytes', 'Size of the definitions of the listed tools.', ({ backend }) =>
    backend.listsAs('exposed').tools.entries.reduce((bytes, { entry }) => bytes + (entry?.length ?? 0), 0),
  );
  out.begin(
    'trunkline_server_state',
    'gauge',
    'Whether the server is in this state: 1 for one of them, 0 for the others.',
  );
  for (const server of servers) {
    const now = serverStateOf(server);
    const { backend } = server;
    for (const state of STATES)
      out.sample('trunkline_server_state', { server: backend.key, state }, state === now ? 1 : 0);
  }
  out.begin(
    'trunkline_tools',
    'gauge',
    'Tools of the server: shown, hidden by the configuration, quarantined, unapproved.',
  );
  for (const { backend } of servers) {
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
    for (const [kind, count] of Object.entries(counts)) out.sample('trunkline_tools', { server, kind }, count);
  }
}

function sum({ instances }: ServerFacts, read: (backend: ServerFacts['backend']) => number): number {
  return instances.reduce((total, { backend }) => total + read(backend), 0);
}

type Usage = Awaited<ReturnType<Measured['usage']['readAll']>>;

function writeUsage(out: Exposition, { servers }: StatusFacts, usage: Usage, cpu: ProcessorTime): void {
  const rows = servers.map(({ backend, instances }) => {
    const groups = instances.flatMap(({ lifecycle }) => {
      const pid = lifecycle?.pid;
      const used = pid === undefined ? undefined : usage.get(pid);
      return pid === undefined || used === undefined ? [] : [{ pid, ...used }];
    });
    for (const { pid, cpuMs } of groups) cpu.note(backend.key, pid, cpuMs);
    return { server: backend.key, groups };
  });
  cpu.forget(usage);
  out.begin(
    'trunkline_server_cpu_seconds_total',
    'counter',
    'Processor time of the processes of the server, as of the scrapes.',
  );
  for (const { server } of rows) out.sample('trunkline_server_cpu_seconds_total', { server }, cpu.of(server) / 1_000);
  out.begin('trunkline_server_resident_bytes', 'gauge', 'Resident memory of the processes of the server.');
  for (const { server, groups } of rows) {
    const bytes = groups.reduce((total, { memoryBytes }) => total + memoryBytes, 0);
    out.sample('trunkline_server_resident_bytes', { server }, bytes);
  }
  out.begin('trunkline_server_processes', 'gauge', 'Processes of the server that run.');
  for (const { server, groups } of rows) {
    const count = groups.reduce((total, { processes }) => total + processes, 0);
    out.sample('trunkline_server_processes', { server }, count);
  }
}

/** Adds up the processor time of servers, which goes on growing when a process ends and the next one begins at 0. */
class ProcessorTime {
  readonly #totals = new Map<string, number>();
  readonly #latest = new Map<number, number>();

  of(server: string): number {
    return this.#totals.get(server) ?? 0;
  }

  note(server: string, pid: number, cpuMs: number): void {
    // Processes of the group that have ended take their time with them.
    const added = Math.max(0, cpuMs - (this.#latest.get(pid) ?? 0));
    this.#totals.set(server, this.of(server) + added);
    this.#latest.set(pid, cpuMs);
  }

  /** Forgets the groups that have ended. */
  forget(usage: Usage): void {
    for (const pid of this.#latest.keys()) if (!usage.has(pid)) this.#latest.delete(pid);
  }
}

function writeCounters(out: Exposition, { restarts, refused, renewals }: Metrics, facts: StatusFacts): void {
  const counters = (name: string, help: string, series: Series<Counter>) => {
    out.begin(name, 'counter', help);
    for (const { labels, value } of series.all.values()) out.sample(name, labels, value.value);
  };
  counters('trunkline_server_restarts_total', 'Starts of a server that had run before.', restarts);
  counters('trunkline_oauth_refresh_total', 'Renewals of the tokens of a login.', renewals);
  counters('trunkline_refused_total', 'Calls, requests and messages that were refused or dropped.', refused);
  for (const [where, { evictions }] of [
    ['unfinished_messages', facts.partialFrames],
    ['unfinished_bodies', facts.requestBodies],
  ] as const)
    out.sample('trunkline_refused_total', { where, reason: 'memory' }, evictions);
  out.begin('trunkline_internal_errors_total', 'counter', 'Errors in Trunkline itself.');
  out.sample('trunkline_internal_errors_total', {}, facts.internalErrorCount);
}

function writeSessions(out: Exposition, { gateway }: Measured, { service }: StatusFacts): void {
  const front = service === undefined || service.kind === 'alone' ? 'stdio' : service.kind;
  const counts = { legacy: 0, modern: 0 };
  for (const { revision } of gateway.clients)
    counts[revision !== undefined && isModernRevision(revision) ? 'modern' : 'legacy'] += 1;
  out.begin('trunkline_sessions', 'gauge', 'Open sessions of clients.');
  for (const [era, count] of Object.entries(counts)) out.sample('trunkline_sessions', { front, era }, count);
}

function writeCluster(out: Exposition, { members, homes, isStoreUp, hops, received }: ClusterFacts): void {
  out.begin(
    'trunkline_cluster_members',
    'gauge',
    'Gateways of the cluster that this one knows, with itself, by state.',
  );
  for (const [state, count] of Object.entries(members)) out.sample('trunkline_cluster_members', { state }, count);
  out.begin('trunkline_cluster_homes', 'gauge', 'Users and sessions that have their homes at this gateway.');
  out.sample('trunkline_cluster_homes', {}, homes);
  out.begin('trunkline_cluster_store_up', 'gauge', 'Whether the store of the cluster answers.');
  out.sample('trunkline_cluster_store_up', {}, isStoreUp ? 1 : 0);
  out.begin('trunkline_cluster_hops_total', 'counter', 'Requests that were passed to other gateways, and from them.');
  for (const [direction, counts] of [
    ['out', hops],
    ['in', received],
  ] as const)
    for (const [outcome, count] of Object.entries(counts))
      out.sample('trunkline_cluster_hops_total', { direction, outcome }, count);
}

function writeProcess(out: Exposition, { version, eventLoop, now, startedAt, config }: StatusFacts): void {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  const one = (name: string, type: 'counter' | 'gauge', help: string, value: number) => {
    out.begin(name, type, help);
    out.sample(name, {}, value);
  };
  one('process_cpu_seconds_total', 'counter', 'Processor time of Trunkline.', (user + system) / 1e6);
  one('process_resident_memory_bytes', 'gauge', 'Resident memory of Trunkline.', rss);
  one('process_start_time_seconds', 'gauge', 'Start of Trunkline since 1970.', (Date.now() - now + startedAt) / 1_000);
  one('nodejs_heap_size_used_bytes', 'gauge', 'Used heap of Trunkline.', heapUsed);
  const lag = 'nodejs_eventloop_lag_seconds';
  out.begin(lag, 'summary', 'Delays of the event loop since the start; the quantile 1 is the longest.');
  out.sample(lag, { quantile: '0.99' }, eventLoop.p99Ms / 1_000);
  out.sample(lag, { quantile: '1' }, eventLoop.maxMs / 1_000);
  one(
    'trunkline_config_fault',
    'gauge',
    'Whether the configuration file has mistakes.',
    config.fault === undefined ? 0 : 1,
  );
  out.begin('trunkline_build_info', 'gauge', 'Versions of Trunkline and of Node.');
  out.sample('trunkline_build_info', { version, node: process.version }, 1);
}
