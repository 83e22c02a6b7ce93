import type { SharedLimit } from '../../io/shared-limit.js';
import { printable, printableLines } from '../../json/printable.js';
import type { ListKind } from '../../mcp/lists.js';
import type { Catalogs } from '../catalog/catalogs.js';
import type { LifecycleState } from '../registry/availability.js';
import type { Backend } from '../registry/backend.js';
import { advise, stateOf } from './advice.js';
import type {
  ApprovalReport,
  InstanceReport,
  LimitReport,
  ListReport,
  ServerReport,
  StatusReport,
} from './status-report.js';
import { adviseOnToolCount } from './tool-count.js';

/** What supervision knows of a child. Times are milliseconds on the monotonic clock. */
export interface Lifecycle {
  readonly state: LifecycleState;
  readonly pid: number | undefined;
  readonly generation: number;
  readonly restarts: number;
  readonly consecutiveFailures: number;
  readonly readySince: number | undefined;
  readonly retryAt: number | undefined;
  readonly lastExit: { readonly code: number | null; readonly signal: string | null; readonly at: number } | undefined;
  readonly lastFailure: { readonly reason: string; readonly at: number; readonly isHostFault?: boolean } | undefined;
  /** The package that is not there yet. */
  readonly missing: string | undefined;
  readonly installingSince: number | undefined;
}

/** Everything there is to know about one server. */
export interface ServerFacts {
  readonly backend: Backend;
  /** Absent when the configuration of this server cannot work. */
  readonly lifecycle: Lifecycle | undefined;
  readonly problem: { readonly message: string; readonly hint: string } | undefined;
  /** The last lines of stderr and of what was no message on stdout, secrets removed, oldest first. */
  readonly logLines: readonly string[];
  /** Lines that are not among them because there were too many at once. */
  readonly droppedLogLines: number;
  /** All backends of this server, this one among them: clients that differ do not share one. */
  readonly instances: readonly InstanceFacts[];
}

/** One of the backends that a server has. */
export interface InstanceFacts {
  readonly backend: Backend;
  readonly lifecycle: Lifecycle | undefined;
  /** It waits for its first client. */
  readonly isUnclaimed: boolean;
}

/** What is to be said about the file that all this comes from. */
export interface ConfigFacts {
  readonly file: string | undefined;
  /** Why the file, as it is now, cannot be used, since when, and whether what it said before is in force instead. */
  readonly fault: { readonly report: string; readonly since: number; readonly isPreviousInForce: boolean } | undefined;
  /** How often another configuration was taken over. */
  readonly reloads: number;
  /** Settings that will be in force once we are started again. */
  readonly needsRestart: readonly string[];
}

export interface StatusFacts {
  readonly now: number;
  readonly startedAt: number;
  readonly version: string;
  readonly config: ConfigFacts;
  readonly catalogs: Catalogs;
  /** Takes secrets out of what servers say. */
  readonly redact: (text: string) => string;
  /** Calls that wait for their turn, of all servers. */
  readonly waiting: SharedLimit;
  /** Bytes of messages that are not complete, of all servers and clients. */
  readonly partialFrames: SharedLimit;
  /** Errors in Trunkline that failed one request each. */
  readonly internalErrorCount: number;
  readonly servers: readonly ServerFacts[];
  readonly canRestart: boolean;
}

/** The state of everything, or of `server` alone and then with more of its log. */
export function reportStatus(facts: StatusFacts, server?: string): StatusReport {
  const chosen = facts.servers.filter(({ backend }) => server === undefined || backend.key === server);
  const logLines = server === undefined ? BRIEF_LOG_LINES : FULL_LOG_LINES;
  const tools = facts.catalogs.tools.size;
  return {
    version: facts.version,
    uptimeSeconds: seconds(facts.now - facts.startedAt),
    ...reportConfig(facts),
    tools,
    advice: adviseOnToolCount(tools),
    limits: { waitingCalls: reportLimit(facts.waiting), partialFrameBytes: reportLimit(facts.partialFrames) },
    internalErrorCount: facts.internalErrorCount,
    servers: chosen.map((one) => reportServer(facts, one, logLines)),
  };
}

function reportLimit({ used, max, refusals }: SharedLimit): LimitReport {
  return { now: used, max, refused: refusals };
}

function reportConfig({ now, config: { file, fault, reloads, needsRestart } }: StatusFacts) {
  const activeConfig = fault?.isPreviousInForce === true ? 'previous' : 'none';
  return {
    configFile: file ?? null,
    configFault: fault?.report ?? null,
    configFaultSeconds: fault === undefined ? null : seconds(now - fault.since),
    configInForce: fault === undefined ? ('current' as const) : activeConfig,
    configReloads: reloads,
    configNeedsRestart: needsRestart,
  } as const;
}

const BRIEF_LOG_LINES = 3;
const FULL_LOG_LINES = 20;

function reportServer(facts: StatusFacts, one: ServerFacts, logLines: number): ServerReport {
  const { backend, lifecycle, problem } = one;
  const shown = showing(facts);
  const { counters, latencies, connection, breaker } = backend.dispatcher;
  const p50 = latencies.quantile(0.5);
  const p95 = latencies.quantile(0.95);
  const since = (at: number | undefined) => (at === undefined ? null : seconds(facts.now - at));
  const lastExit = lifecycle?.lastExit;
  return {
    server: backend.key,
    state: problem === undefined ? stateOf(backend, lifecycle) : 'misconfigured',
    pid: lifecycle?.pid ?? null,
    uptimeSeconds: since(lifecycle?.readySince),
    generation: lifecycle?.generation ?? 0,
    restarts: lifecycle?.restarts ?? 0,
    protocolVersion: connection?.revision ?? null,
    fromLastRun: backend.isFromLastRun,
    breaker: breaker.state,
    inFlight: connection?.inFlight ?? 0,
    queued: backend.dispatcher.queued,
    ...counters,
    failureReasons: Object.fromEntries(backend.dispatcher.failureReasons),
    latencyMs: p50 === undefined || p95 === undefined ? null : { p50: tenths(p50), p95: tenths(p95) },
    tools: reportList(facts, backend, 'tools'),
    approval: reportApproval(backend),
    prompts: reportList(facts, backend, 'prompts'),
    resources: reportList(facts, backend, 'resources'),
    resourceTemplates: reportList(facts, backend, 'templates'),
    dropped: { ...connection?.counters },
    lastExit:
      lastExit === undefined
        ? null
        : { code: lastExit.code, signal: lastExit.signal, secondsAgo: seconds(facts.now - lastExit.at) },
    lastFailure: lifecycle?.lastFailure === undefined ? null : shown(lifecycle.lastFailure.reason),
    retryInSeconds:
      lifecycle?.retryAt === undefined ? null : Math.ceil(Math.max(0, lifecycle.retryAt - facts.now) / 1000),
    installing:
      lifecycle?.missing === undefined || lifecycle.installingSince === undefined
        ? null
        : { package: shown(lifecycle.missing), forSeconds: seconds(facts.now - lifecycle.installingSince) },
    log: one.logLines.slice(-logLines).map(shown),
    droppedLogLines: one.droppedLogLines,
    advice: advise(facts, one),
    instructions:
      backend.handshake?.instructions === undefined
        ? null
        : printableLines(facts.redact(backend.handshake.instructions)),
    instances: one.instances.map((instance) => reportInstance(instance, backend)),
  };
}

function reportApproval({ approval }: Backend): ApprovalReport | null {
  if (approval === undefined) return null;
  const { tools, isFirstUse, fault } = approval;
  return { approved: tools, firstUse: isFirstUse, fault: fault ?? null };
}

function reportInstance({ backend, lifecycle }: InstanceFacts, yours: Backend): InstanceReport {
  return {
    id: backend.id,
    state: stateOf(backend, lifecycle),
    pid: lifecycle?.pid ?? null,
    clients: backend.clients.size,
    inFlight: backend.dispatcher.connection?.inFlight ?? 0,
    restarts: lifecycle?.restarts ?? 0,
    isYours: backend === yours,
  };
}

/** Whatever a server says, on one line that hides nothing but secrets. */
function showing({ redact }: StatusFacts): (text: string) => string {
  return (text) => printable(redact(text));
}

function reportList(facts: StatusFacts, { key, lists }: Backend, kind: ListKind): ListReport {
  const { catalogs } = facts;
  const shown = showing(facts);
  const { withheld, denied, truncated, hiding } = lists[kind];
  const shadowed = catalogs[kind].shadowed.filter((entry) => entry.key === key);
  return {
    exposed: (catalogs[kind].listed.get(key) ?? []).map(shown),
    quarantined: [
      ...withheld.map(({ name, reason }) => ({ name: shown(name), reason: shown(reason) })),
      ...shadowed.map(({ exposed, owner }) => ({ name: shown(exposed), reason: `taken by "${owner}"` })),
    ],
    denied: denied.map(shown),
    truncated: truncated ?? null,
    hiding: hiding.map(shown),
  };
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
