import type { SharedLimit } from '../../io/shared-limit.js';
import { printable, printableLines } from '../../json/printable.js';
import type { ListKind } from '../../mcp/lists.js';
import type { ServerState } from '../dispatch/availability.js';
import type { Backend } from '../registry/backend.js';
import type { InstanceFacts, ProcessFacts, ServerFacts, StatusFacts } from './status-facts.js';
import type {
  ApprovalReport,
  InstanceReport,
  LimitReport,
  ListReport,
  ServerReport,
  StatusReport,
} from './status-report.js';

/** Reports the state of all servers, or of `server` alone with more log lines. */
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
  const sanitize = sanitizerFor(facts);
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
    fromLastRun: backend.isFromCache,
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
    lastFailure: lifecycle?.lastFailure === undefined ? null : sanitize(lifecycle.lastFailure.reason),
    retryInSeconds:
      lifecycle?.retryAt === undefined ? null : Math.ceil(Math.max(0, lifecycle.retryAt - facts.now) / 1000),
    installing:
      lifecycle?.missing === undefined || lifecycle.installingSince === undefined
        ? null
        : { package: sanitize(lifecycle.missing), forSeconds: seconds(facts.now - lifecycle.installingSince) },
    cause: one.cause.slice(0, logLines).map(sanitize),
    log: (logLines === BRIEF_LOG_LINES && one.cause.length > 0 ? [] : one.logLines.slice(-logLines)).map(sanitize),
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

/** Makes texts of servers safe to show: one line, without secrets, and with control characters escaped. */
function sanitizerFor({ redact }: StatusFacts): (text: string) => string {
  return (text) => printable(redact(text));
}

function reportList(facts: StatusFacts, { key, lists }: Backend, kind: ListKind): ListReport {
  const { catalogs } = facts;
  const sanitize = sanitizerFor(facts);
  const { withheld, denied, truncated, withHiddenCharacters } = lists[kind];
  const shadowed = catalogs[kind].shadowed.filter((entry) => entry.key === key);
  return {
    exposed: (catalogs[kind].listed.get(key) ?? []).map(sanitize),
    quarantined: [
      ...withheld.map(({ name, reason }) => ({ name: sanitize(name), reason: sanitize(reason) })),
      ...shadowed.map(({ exposed, owner }) => ({ name: sanitize(exposed), reason: `taken by "${owner}"` })),
    ],
    denied: denied.map(sanitize),
    truncated: truncated ?? null,
    hiding: withHiddenCharacters.map(sanitize),
  };
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}

/** Returns what a person should do about a server, as sentences. Empty if there is nothing to do. */
function advise(facts: StatusFacts, server: ServerFacts): string {
  return [adviseOnState(facts, server), adviseOnApproval(server.backend)].filter(Boolean).join(' ');
}

function adviseOnApproval({ lists, approval }: Backend): string {
  const verdicts = [...(lists.tools.verdicts?.values() ?? [])];
  const withheld = verdicts.filter((verdict) => verdict !== 'approved').length;
  if (approval === undefined || withheld === 0) return '';
  return `${withheld} of its tools ${withheld === 1 ? 'waits' : 'wait'} for approval. ${approval.advice}`;
}

function adviseOnState({ canRestart }: StatusFacts, { backend, lifecycle, problem, instances }: ServerFacts): string {
  if (problem !== undefined) return adviseOnProblem(problem);
  const { key } = backend;
  const restart = canRestart
    ? `call trunkline__restart with server "${key}"`
    : 'restart the client, which restarts Trunkline';
  switch (stateOf(backend, lifecycle)) {
    case 'installing':
      return 'Its package is being installed, which may take a minute or more. Its tools appear when it is ready.';
    case 'parked':
      if (lifecycle?.missing !== undefined)
        return `Its package could not be installed. Fix the cause (check the network), then ${restart}, or run \`trunkline install\`. Trunkline also retries from time to time.`;
      return `It failed too often. Read the log lines, fix the cause, then ${restart}. Trunkline also retries from time to time, and when one of its tools is called.`;
    case 'backoff':
      if (lifecycle?.lastFailure?.isHostFault === true) return SHORT_OF_RESOURCES;
      return 'Trunkline restarts it automatically. If it keeps failing, the log lines show why.';
    case 'starting':
      if (instances.some((instance) => instance.backend === backend && instance.isUnclaimed))
        return 'Its process runs. The MCP handshake follows when the first client connects.';
      if ((lifecycle?.consecutiveFailures ?? 0) > 0) return 'It is being started again.';
      return backend.isFromCache
        ? 'It is still starting. Calls wait until it is ready.'
        : 'It is still starting. Its tools appear when it is ready.';
    case 'suspect':
      return 'It has stopped answering. Trunkline probes it, and restarts it if it does not answer.';
    case 'idle':
      return 'It does not run because no client needs it now. A call of one of its tools starts it.';
    case 'ready':
      if (backend.dispatcher.breaker.state === 'closed') return '';
      return `It runs, but too many of its recent calls failed. Trunkline refuses calls to it until it answers a test request. To restart it now, ${restart}.`;
    default:
      return '';
  }
}

const SHORT_OF_RESOURCES =
  'This machine lacks what a new process needs; the server is not to blame. Trunkline retries every 5 s. Close other programs, or raise the limit that the last failure names (`ulimit -n` for open files).';

/** Message and hint are phrases without a capital letter and without a period. */
function adviseOnProblem({ message, hint }: NonNullable<ServerFacts['problem']>): string {
  return `Its configuration is wrong: ${message}. To fix it, ${hint}.`;
}

/** Returns the state for the status. A server that waits for a start slot counts as starting, not as stopped. */
function stateOf({ isStartSettled }: Backend, lifecycle: ProcessFacts | undefined): ServerState {
  const { state } = lifecycle ?? { state: 'stopped' };
  return state === 'stopped' && lifecycle !== undefined && !isStartSettled ? 'starting' : state;
}

/** Tool counts that some clients accept at most. They differ between clients and their versions. */
const CLIENT_LIMITS = [40, 80, 128];

/** Returns the largest client limit that this many tools reach, or 0. */
function reachedLimit(count: number): number {
  return CLIENT_LIMITS.findLast((limit) => count >= limit) ?? 0;
}

/** Returns advice for a person about this many tools. Empty if there are few. */
export function adviseOnToolCount(count: number): string {
  const limit = reachedLimit(count);
  if (limit === 0) return '';
  return `${count} tools are listed. Some clients accept no more than ${limit}, and models choose worse among many tools. To list fewer, set \`tools.allow\` or \`tools.deny\` of a server.`;
}

/** Returns a function that takes the current tool count and calls `warn` once for each client limit that it reaches. */
export function createToolCountWarning(warn: (advice: string) => void): (count: number) => void {
  let warnedAt = 0;
  return (count) => {
    const limit = reachedLimit(count);
    if (limit <= warnedAt) return;
    warnedAt = limit;
    warn(adviseOnToolCount(count));
  };
}
