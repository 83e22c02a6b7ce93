import type { Code } from '../../errors/codes.js';
import type { BreakerState } from '../../upstream/health/circuit-breaker.js';
import type { Era, EraSource } from '../../upstream/server-era.js';
import type { ServerState } from '../dispatch/availability.js';

/**
 * Everything that the status tells. It is the structured content of `trunkline__status` for one server; for all servers
 * the content is the shorter `StatusOverview`. Times are seconds, latencies are milliseconds.
 */
export interface StatusReport {
  readonly version: string;
  readonly uptimeSeconds: number;
  /** The hub that serves the client. Null without one. */
  readonly hub: HubReport | null;
  /** Why the client has servers of its own although it should share them. Null if it shares them, or need not. */
  readonly aloneBecause: string | null;
  /** The revision of MCP that the client speaks which asks. Null if no client asks. */
  readonly clientRevision: string | null;
  /** The view of the configuration that the client has. Null if it sees everything. */
  readonly view: string | null;
  /** Why the view shows nothing. Null if the configuration has it. */
  readonly viewFault: string | null;
  readonly configFile: string | null;
  /** Problem with the current configuration file. */
  readonly configFault: string | null;
  readonly configFaultSeconds: number | null;
  /** Which configuration is in force: that of the current file, the previous one, or none. */
  readonly configInForce: 'current' | 'previous' | 'none';
  readonly configReloads: number;
  readonly configNeedsRestart: readonly string[];
  readonly tools: number;
  /** Advice to a person about Trunkline as a whole. Empty if there is nothing to do. */
  readonly advice: string;
  /** Limits that all servers and clients share. */
  readonly limits: {
    readonly waitingCalls: LimitReport;
    /** Bytes of unfinished messages on pipes. */
    readonly partialFrameBytes: LimitReport;
    /** Bytes of incomplete bodies of HTTP requests. */
    readonly requestBodyBytes: LimitReport;
  };
  /** The headers for whose names HTTP requests were refused. Empty if none was. */
  readonly refusedNames: readonly RefusedNameReport[];
  /** Number of internal errors, each of which failed one request. */
  readonly internalErrorCount: number;
  readonly eventLoop: EventLoopReport;
  readonly servers: readonly ServerReport[];
}

/** People notice a longer delay of the event loop, in milliseconds: the calls of all servers and clients wait meanwhile. */
export const HELD_MS = 500;

/** Delays of the event loop since the start. One long piece of work delays everything else. */
export interface EventLoopReport {
  /** 99 % of the measured delays were no longer. */
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** The process that serves all clients of one configuration. */
interface HubReport {
  readonly pid: number;
  readonly uptimeSeconds: number;
  readonly clients: number;
}

export interface LimitReport {
  readonly now: number;
  readonly max: number;
  /** How often the limit refused a call, or made a message or a body be dropped. */
  readonly refused: number;
}

export interface RefusedNameReport {
  readonly header: 'Host' | 'Origin';
  /** Number of refused requests, whatever name they had. */
  readonly count: number;
  /** The name that the last of them had. */
  readonly last: string;
  readonly secondsAgo: number;
  readonly code: Code;
  readonly advice: string;
}

export interface ApprovalReport {
  /** Number of approved tools, listed or not. */
  readonly approved: number;
  /** Whether the tools were approved in this run, because they were the first that this server offered. */
  readonly firstUse: boolean;
  /** Problem with the file of the approvals. */
  readonly fault: string | null;
}

/** Listed and withheld entries of a server in one of the merged lists. */
export interface ListReport {
  readonly exposed: readonly string[];
  readonly quarantined: readonly { readonly name: string; readonly reason: string }[];
  readonly denied: readonly string[];
  readonly truncated: string | null;
  /** Why the running server does not list these: the method and its words. The entries are the last known ones then. */
  readonly failure: string | null;
  /** Listed entries with invisible characters in their texts. */
  readonly hiding: readonly string[];
}

export interface ServerReport {
  readonly server: string;
  readonly state: ServerState | 'misconfigured';
  readonly pid: number | null;
  readonly uptimeSeconds: number | null;
  readonly generation: number;
  readonly restarts: number;
  /** The exact version of its package; null for a command. */
  readonly packageVersion: string | null;
  /** Usage of its processes; null if it was not read. `cpuPercent` is the present share of one processor. */
  readonly usage: UsageReport | null;
  /** Limits of its processes; null without a limit. */
  readonly resourceLimits: { readonly memoryBytes: number | null; readonly processes: number | null };
  readonly protocolVersion: string | null;
  /** The protocol era of this revision, and how it was found out. Null while no process is connected. */
  readonly era: EraReport | null;
  /** Whether the lists come from the cache of the last run, and no process of this run has confirmed them yet. */
  readonly fromLastRun: boolean;
  readonly breaker: BreakerState;
  readonly inFlight: number;
  readonly queued: number;
  readonly calls: number;
  readonly errors: number;
  readonly failures: number;
  /** Number of failures by reason. */
  readonly failureReasons: Readonly<Record<string, number>>;
  readonly cancelled: number;
  readonly repeated: number;
  readonly latencyMs: { readonly p50: number; readonly p95: number } | null;
  readonly tools: ListReport;
  /** Tools in the configuration that the server does not have. */
  readonly unshaped: readonly string[];
  /** State of the tool approvals; null if the tools need no approval. */
  readonly approval: ApprovalReport | null;
  readonly prompts: ListReport;
  readonly resources: ListReport;
  readonly resourceTemplates: ListReport;
  /** Messages of the server that were dropped since its last start, by kind. */
  readonly dropped: Readonly<Record<string, number>>;
  /** How long the output of its process was not read, because too much of it answered nothing, in all. */
  readonly pausedSeconds: number;
  readonly lastExit: {
    readonly code: number | null;
    readonly signal: string | null;
    readonly secondsAgo: number;
  } | null;
  /** Why the server failed last. Null again after the server was ready for `restart.stableAfter`. */
  readonly lastFailure: string | null;
  readonly retryInSeconds: number | null;
  /** The package that is being installed, and for how long, including the wait for other packages. */
  readonly installing: { readonly package: string; readonly forSeconds: number } | null;
  /** The lines of the output that name the cause of the latest failure. Empty while the server runs. */
  readonly cause: readonly string[];
  /** The last lines of the output. In a report of all servers, empty if there is a cause. */
  readonly log: readonly string[];
  /** Bytes of output that were dropped from the log because too many came at once. */
  readonly droppedLogBytes: number;
  /** The problem and its effect on the tools of the server. Empty if nothing is wrong with its process. */
  readonly problem: string;
  /** The stable code of the problem; null without one. */
  readonly code: Code | null;
  /** Advice to a person, or Trunkline's next step. Empty if there is nothing to do. */
  readonly advice: string;
  readonly instructions: string | null;
  /** The instances of this server: one per client profile, one per client, or one for all. */
  readonly instances: readonly InstanceReport[];
}

export interface EraReport {
  readonly name: Era;
  readonly foundBy: EraSource['kind'];
  /** Until when this is not asked again, as an ISO date; null if it counts until it proves wrong. */
  readonly cachedUntil: string | null;
}

export interface UsageReport {
  readonly memoryBytes: number;
  readonly processes: number;
  readonly cpuSeconds: number;
  readonly cpuPercent: number | null;
}

export interface InstanceReport {
  readonly id: string;
  readonly state: ServerReport['state'];
  readonly pid: number | null;
  /** Number of clients that use this instance. */
  readonly clients: number;
  readonly inFlight: number;
  readonly restarts: number;
  /** Whether the client that called `trunkline__status` uses this instance. */
  readonly isYours: boolean;
}

/**
 * Structured content of `trunkline__status` for all servers: what differs from a healthy gateway with healthy servers. A
 * member that is absent has the value that it has when all is well, or is told only in the report about one server.
 */
interface StatusOverview
  extends Pick<StatusReport, 'version'>,
    Partial<Omit<StatusReport, 'version' | 'limits' | 'servers'>> {
  /** Only the limits that refused something. */
  readonly limits?: Partial<StatusReport['limits']>;
  /** Those with a problem first. */
  readonly servers: readonly ServerOverview[];
}

type Counted = 'tools' | 'prompts' | 'resources' | 'resourceTemplates';

interface ServerOverview
  extends Pick<ServerReport, 'server' | 'state'>,
    Partial<Omit<ServerReport, 'server' | 'state' | Counted>> {
  readonly tools?: ListOverview;
  readonly prompts?: ListOverview;
  readonly resources?: ListOverview;
  readonly resourceTemplates?: ListOverview;
}

/** Numbers of entries that are not listed, or that hide characters; the report about one server names them. */
interface ListOverview {
  readonly quarantined?: number;
  readonly denied?: number;
  readonly hiding?: number;
  readonly truncated?: string;
  readonly failure?: string;
}

export function overviewOf(report: StatusReport): StatusOverview {
  const { version, uptimeSeconds, configFile, configInForce, limits, eventLoop, servers, ...others } = report;
  const refusing = Object.entries(limits).filter(([, { refused }]) => refused > 0);
  return {
    version,
    ...differing({
      ...others,
      uptimeSeconds,
      configInForce: configInForce === 'current' ? null : configInForce,
      configFile: report.configFault === null ? null : configFile,
      eventLoop: eventLoop.maxMs > HELD_MS ? eventLoop : null,
      limits: Object.fromEntries(refusing),
    }),
    servers: splitByProblem(servers).flat().map(overviewOfServer),
  };
}

/** The servers with a problem, and the others, each in the order of the configuration. */
export function splitByProblem(servers: readonly ServerReport[]): [troubled: ServerReport[], others: ServerReport[]] {
  return [servers.filter(hasProblem), servers.filter((server) => !hasProblem(server))];
}

/** Whether a person should look at this server: calls fail, or entries are not listed. */
function hasProblem(server: ServerReport): boolean {
  const { problem, approval, tools, prompts, resources, resourceTemplates, unshaped } = server;
  const hasGap = [tools, prompts, resources, resourceTemplates].some(
    ({ quarantined, truncated, failure }) => quarantined.length > 0 || truncated !== null || failure !== null,
  );
  return problem !== '' || hasGap || unshaped.length > 0 || (approval?.fault ?? null) !== null;
}

/** The share of a limit that is worth telling. */
const NEAR = 0.8;

/** Whether the processes of a server use most of what they may use. */
export function isNearLimits({ usage, resourceLimits: { memoryBytes, processes } }: ServerReport): boolean {
  if (usage === null) return false;
  const isNear = (used: number, limit: number | null) => limit !== null && used >= limit * NEAR;
  return isNear(usage.memoryBytes, memoryBytes) || isNear(usage.processes, processes);
}

/** The log lines of a server without those that only repeat its failure. */
export function outputOf({ log, lastFailure }: ServerReport): string[] {
  return log.filter((line) => line !== lastFailure);
}

function overviewOfServer(report: ServerReport): ServerOverview {
  const { server, state, breaker, approval, restarts, problem, code, lastExit, lastFailure } = report;
  // A server that was stopped because it was idle has exited, too.
  const hasFailed = problem !== '' || restarts > 0;
  return {
    server,
    state,
    ...differing({
      problem,
      code,
      advice: hasProblem(report) ? report.advice : '',
      lastFailure: hasFailed ? lastFailure : null,
      lastExit: hasFailed ? lastExit : null,
      cause: problem === '' ? [] : report.cause,
      log: problem === '' ? [] : outputOf(report),
      retryInSeconds: report.retryInSeconds,
      installing: report.installing,
      // Most servers were asked, or are known from the time when they were.
      era: report.era?.foundBy === 'configured' || report.era?.foundBy === 'exited' ? report.era : null,
      fromLastRun: report.fromLastRun,
      breaker: breaker === 'closed' ? null : breaker,
      restarts,
      usage: isNearLimits(report) ? report.usage : null,
      resourceLimits: isNearLimits(report) ? report.resourceLimits : null,
      queued: report.queued,
      failures: report.failures,
      failureReasons: report.failureReasons,
      tools: overviewOfList(report.tools),
      unshaped: report.unshaped,
      prompts: overviewOfList(report.prompts),
      resources: overviewOfList(report.resources),
      resourceTemplates: overviewOfList(report.resourceTemplates),
      approval: approval !== null && (approval.firstUse || approval.fault !== null) ? approval : null,
      dropped: Object.fromEntries(Object.entries(report.dropped).filter(([, count]) => count > 0)),
      droppedLogBytes: report.droppedLogBytes,
      pausedSeconds: report.pausedSeconds,
    }),
  };
}

function overviewOfList({ quarantined, denied, hiding, truncated, failure }: ListReport): ListOverview {
  return differing({
    quarantined: quarantined.length,
    denied: denied.length,
    hiding: hiding.length,
    truncated,
    failure,
  });
}

type Differing<T> = { readonly [K in keyof T]?: NonNullable<T[K]> };

/** Leaves out every member that says nothing: null, false, 0, and empty texts, lists and objects. */
function differing<T extends object>(members: T): Differing<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => saysSomething(value))) as Differing<T>;
}

function saysSomething(value: unknown): boolean {
  if (typeof value !== 'object') return Boolean(value);
  return value !== null && Object.keys(value).length > 0;
}
