import { CODES, type Code } from '../../errors/codes.js';
import { ERROR_SIGNS } from '../../errors/error-text.js';
import type { FairMemory, SharedLimit } from '../../io/shared-limit.js';
import { printable, printableLines } from '../../json/printable.js';
import type { ListKind } from '../../mcp/methods.js';
import { isModernRevision } from '../../mcp/revisions.js';
import type { RefusedName } from '../../observe/events/events.js';
import type { EraSource } from '../../upstream/server-era.js';
import type { Catalogs, Shadowed } from '../catalog/catalog.js';
import type { ServerState } from '../dispatch/availability.js';
import type { Backend } from '../registry/backend.js';

export type StatusReport = ReturnType<typeof reportStatus>;
export type ServerReport = ReturnType<typeof reportServer>;
export type ListReport = ReturnType<typeof reportList>;
export type InstanceReport = ReturnType<typeof reportInstance>;
export type EraReport = ReturnType<typeof reportEra>;

/**
 * Reports everything about all servers, or about `server` alone with more log lines. Times are seconds, latencies are
 * milliseconds. Members that are unknown or do not apply are null.
 */
export function reportStatus(facts: StatusFacts, server?: string) {
  const chosen = facts.servers.filter(({ backend }) => server === undefined || backend.key === server);
  const logLines = server === undefined ? BRIEF_LOG_LINES : FULL_LOG_LINES;
  const tools = facts.catalogs.tools.size;
  return {
    version: facts.version,
    uptimeSeconds: seconds(facts.now - facts.startedAt),
    ...reportService(facts),
    /** The revision of MCP that the client speaks which asks. */
    clientRevision: facts.revision ?? null,
    view: facts.named?.name ?? null,
    viewFault: facts.named?.fault ?? null,
    ...reportConfig(facts),
    tools,
    /** Advice to a person about Trunkline as a whole. Empty if there is nothing to do. */
    advice: adviseOnToolCount(tools),
    /** Limits that all servers and clients share. `refused`: how often the limit refused a call, or made a message or a body be dropped. */
    limits: {
      waitingCalls: { now: facts.waiting.used, max: facts.waiting.max, refused: facts.waiting.refusals },
      partialFrameBytes: reportMemory(facts.partialFrames),
      requestBodyBytes: reportMemory(facts.requestBodies),
    },
    refusedNames: (facts.refusedNames ?? []).map((each) => reportRefusedName(each, facts.now)),
    internalErrorCount: facts.internalErrorCount,
    eventLoop: { p99Ms: facts.eventLoop.p99Ms, maxMs: facts.eventLoop.maxMs },
    servers: chosen.map((one) => reportServer(facts, one, logLines)),
  };
}

function reportService({ now, service, redact }: StatusFacts) {
  return {
    hub:
      service?.kind === 'hub'
        ? { pid: service.pid, uptimeSeconds: seconds(now - service.since), clients: service.clients }
        : null,
    /** Reason why the client has servers of its own although it should share them. */
    aloneBecause: service?.kind === 'alone' ? redact(service.because) : null,
  };
}

function reportMemory({ used, max, evictions }: FairMemory) {
  return { now: used, max, refused: evictions };
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

function reportRefusedName({ header, count, last, at }: CountedName, now: number) {
  const code = CODE_OF[header];
  return { header, count, last, secondsAgo: seconds(now - at), code, advice: CODES[code].remedy };
}

const BRIEF_LOG_LINES = 3;

const FULL_LOG_LINES = 20;

function reportServer(facts: StatusFacts, one: ServerFacts, logLines: number) {
  const { backend, lifecycle, problem } = one;
  const sanitize = sanitizerFor(facts);
  const { counters, latencies, connection, breaker } = backend.dispatcher;
  const p50 = latencies.quantile(0.5);
  const p95 = latencies.quantile(0.95);
  const since = (at: number | undefined) => (at === undefined ? null : seconds(facts.now - at));
  const { lastExit, lastFailure, missing, installingSince, retryAt } = lifecycle ?? {};
  const instructions = backend.handshake?.instructions;
  return {
    server: backend.key,
    state: problem === undefined ? stateOf(backend, lifecycle) : ('misconfigured' as const),
    pid: lifecycle?.pid ?? null,
    uptimeSeconds: since(lifecycle?.readySince),
    generation: lifecycle?.generation ?? 0,
    restarts: lifecycle?.restarts ?? 0,
    /** The exact version of its package; null for a command. */
    packageVersion: one.packageVersion ?? null,
    usage: reportUsage(facts, lifecycle),
    resourceLimits: { memoryBytes: one.limits?.memoryBytes ?? null, processes: one.limits?.processes ?? null },
    protocolVersion: connection?.revision ?? null,
    /** The protocol era of this revision, and how it was found out. Null while no process is connected. */
    era: connection === undefined || one.era === undefined ? null : reportEra(connection.revision, one.era),
    /** Whether the lists come from the cache of the last run, and no process of this run has confirmed them yet. */
    fromLastRun: backend.isFromCache,
    breaker: breaker.state,
    inFlight: connection?.inFlight ?? 0,
    queued: backend.dispatcher.admission.queued,
    ...counters,
    failureReasons: Object.fromEntries(backend.dispatcher.failureReasons) as Readonly<Record<string, number>>,
    latencyMs: p50 === undefined || p95 === undefined ? null : { p50: Math.round(p50), p95: Math.round(p95) },
    tools: reportList(facts, backend, 'tools'),
    unshaped: (backend.knownListsAs('exposed').tools.unshaped ?? []).map(sanitize),
    approval: reportApproval(backend),
    prompts: reportList(facts, backend, 'prompts'),
    resources: reportList(facts, backend, 'resources'),
    resourceTemplates: reportList(facts, backend, 'templates'),
    /** Messages of the server that were dropped since its last start, by kind. */
    dropped: { ...connection?.counters } as Readonly<Record<string, number>>,
    /** Total time in which the output of its process was not read, because too much of it answered nothing. */
    pausedSeconds: seconds(connection?.pausedMs ?? 0),
    lastExit:
      lastExit === undefined
        ? null
        : { code: lastExit.code, signal: lastExit.signal, secondsAgo: seconds(facts.now - lastExit.at) },
    /** Reason of the last failure. Null again after the server was ready for `restart.stableAfter`. */
    lastFailure: lastFailure === undefined ? null : sanitize(lastFailure.reason),
    retryInSeconds: retryAt === undefined ? null : Math.ceil(Math.max(0, retryAt - facts.now) / 1000),
    /** The package that is being installed, and for how long, including the wait for other packages. */
    installing:
      missing === undefined || installingSince === undefined
        ? null
        : { package: sanitize(missing), forSeconds: seconds(facts.now - installingSince) },
    /** The lines of the output that name the cause of the latest failure. Empty while the server runs. */
    cause: one.cause.slice(0, logLines).map(sanitize),
    /** The last lines of the output. In a report of all servers, empty if there is a cause. */
    log: (logLines === BRIEF_LOG_LINES && one.cause.length > 0 ? [] : one.logLines.slice(-logLines)).map(sanitize),
    /** Bytes of output that were dropped from the log because too many came at once. */
    droppedLogBytes: one.droppedLogBytes,
    ...assess(facts, one),
    instructions: instructions === undefined ? null : printableLines(facts.redact(instructions)),
    /** The instances of this server: one per client profile, one per client, or one for all. */
    instances: one.instances.map((instance) => reportInstance(instance, backend)),
  };
}

function reportEra(revision: string, { kind, until }: EraSource) {
  return {
    name: isModernRevision(revision) ? ('modern' as const) : ('legacy' as const),
    foundBy: kind,
    /** Until when this is not asked again, as an ISO date; null if it counts until it proves wrong. */
    cachedUntil: until ?? null,
  };
}

/** Usage of the processes at the latest reading. `cpuPercent` is the present share of one processor. */
function reportUsage({ usageOf }: StatusFacts, lifecycle: ProcessFacts | undefined) {
  const usage = lifecycle?.pid === undefined ? undefined : usageOf(lifecycle.pid);
  if (usage === undefined) return null;
  const { memoryBytes, processes, cpuMs, cpuShare } = usage;
  const cpuPercent = cpuShare === undefined ? null : Math.round(cpuShare * 100);
  return { memoryBytes, processes, cpuSeconds: seconds(cpuMs), cpuPercent };
}

/** State of the tool approvals; null if the tools need no approval. */
function reportApproval({ approval }: Backend) {
  if (approval === undefined) return null;
  const { tools, isFirstUse, fault } = approval;
  return { approved: tools, firstUse: isFirstUse, fault: fault ?? null };
}

function reportInstance(instance: InstanceFacts, yours: Backend) {
  const { backend, lifecycle } = instance;
  return {
    id: backend.id,
    state: instanceStateOf(instance),
    pid: lifecycle?.pid ?? null,
    clients: backend.clients.size,
    inFlight: backend.dispatcher.connection?.inFlight ?? 0,
    restarts: lifecycle?.restarts ?? 0,
    /** Whether the client that called `trunkline__status` uses this instance. */
    isYours: backend === yours,
  };
}

/** Makes texts of servers safe to show: one line, without secrets, and with control characters escaped. */
function sanitizerFor({ redact }: StatusFacts): (text: string) => string {
  return (text) => printable(redact(text));
}

/** Listed and withheld entries of a server in one of the merged lists. */
function reportList(facts: StatusFacts, backend: Backend, kind: ListKind) {
  const { catalogs } = facts;
  const sanitize = sanitizerFor(facts);
  const { key, listFailures } = backend;
  const { withheld, denied, truncated, withHiddenCharacters } = backend.listsAs('exposed')[kind];
  const failure = listFailures.find((each) => each.kind === kind);
  const skills = kind === 'resources' ? reportSkills(facts, key) : [];
  const isSkill = new Set(skills.map(({ name }) => name));
  const shadowed = catalogs[kind].shadowed.filter(
    (entry) => entry.key === key && !isSkill.has(sanitize(entry.exposed)),
  );
  return {
    exposed: (catalogs[kind].listed.get(key) ?? []).map(sanitize),
    quarantined: [
      ...withheld.map(({ name, reason }) => ({ name: sanitize(name), reason: sanitize(reason) })),
      ...shadowed.map((entry) => ({ name: sanitize(entry.exposed), reason: explainShadowed(entry, kind) })),
      ...skills,
    ],
    denied: denied.map(sanitize),
    truncated: truncated ?? null,
    /** Reason why the running server does not list these: the method and its words. The entries are the last known ones then. */
    failure: failure === undefined ? null : sanitize(failure.reason),
    hiding: withHiddenCharacters.map(sanitize),
  };
}

/** Skills are resources, and are listed apart. */
function reportSkills(facts: StatusFacts, key: string) {
  const own = (facts.shadowedSkills ?? []).filter((entry) => entry.key === key);
  return own.map(({ exposed, owner }) => ({
    name: sanitizerFor(facts)(exposed),
    reason: `server "${owner}" has a skill with this URI already; a client that shows only server "${key}" lists this one`,
  }));
}

/** Says why a name is not listed a second time, and how to list both entries. */
function explainShadowed({ owner }: Shadowed, kind: ListKind): string {
  if (owner === 'trunkline') return "names that begin with trunkline__ are reserved for Trunkline's own tools";
  const taken = `server "${owner}" has this name already`;
  const isPrefixed = kind === 'tools' || kind === 'prompts';
  return isPrefixed ? `${taken}; to list both, remove \`prefix: ""\` from one of the two servers` : taken;
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
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

/** One instance of a server, and what its processes use. What is not known is null. */
export interface ProcessReport {
  readonly server: string;
  /** Unique, also among the instances of one server. */
  readonly id: string;
  readonly state: ReturnType<typeof instanceStateOf>;
  readonly pid: number | null;
  /** The revision of MCP that the process speaks. Absent in answers of older versions. */
  readonly revision?: string | null;
  readonly memoryBytes: number | null;
  /** Present share of one processor. */
  readonly cpuPercent: number | null;
  readonly processes: number | null;
  readonly calls: number;
  readonly inFlight: number;
  readonly clients: number;
}

/** All instances of all servers, in the order of the configuration. */
export function listProcesses(facts: StatusFacts): ProcessReport[] {
  return facts.servers.flatMap(({ backend: { key }, instances }) =>
    instances.map(({ backend, lifecycle }) => {
      const { counters, connection } = backend.dispatcher;
      const { memoryBytes = null, cpuPercent = null, processes = null } = reportUsage(facts, lifecycle) ?? {};
      return {
        server: key,
        id: backend.id,
        state: instanceStateOf({ backend, lifecycle }),
        pid: lifecycle?.pid ?? null,
        revision: connection?.revision ?? null,
        ...{ memoryBytes, cpuPercent, processes },
        calls: counters.calls,
        inFlight: connection?.inFlight ?? 0,
        clients: backend.clients.size,
      };
    }),
  );
}

/** State of a server's process, from the supervisor. Times are milliseconds on the monotonic clock. */
export interface ProcessFacts {
  readonly state: ServerState;
  readonly pid: number | undefined;
  readonly generation: number;
  readonly restarts: number;
  readonly consecutiveFailures: number;
  readonly readySince: number | undefined;
  readonly retryAt: number | undefined;
  readonly lastExit: { readonly code: number | null; readonly signal: string | null; readonly at: number } | undefined;
  readonly lastFailure: { readonly reason: string; readonly at: number; readonly isHostFault?: boolean } | undefined;
  /** The package that is not installed yet. */
  readonly missing: string | undefined;
  readonly installingSince: number | undefined;
}

export interface ServerFacts {
  readonly backend: Backend;
  /** Absent if the configuration of this server is wrong. */
  readonly lifecycle: ProcessFacts | undefined;
  /** Problem with the configuration of this server, and its remedy. */
  readonly problem: { readonly message: string; readonly hint: string } | undefined;
  /** Limits of all processes of one instance together. Absent if nothing is limited. */
  readonly limits?: { readonly memoryBytes?: number; readonly processes?: number } | undefined;
  readonly era?: EraSource | undefined;
  /** The exact version of the server's package. Absent if the server runs a command, or the package is not installed. */
  readonly packageVersion?: string | undefined;
  /** The last lines of stderr, and of stdout lines that were not messages. Without secrets, oldest first. */
  readonly logLines: readonly string[];
  /** The lines that name the cause of the latest failure. Without secrets. Empty while the server runs. */
  readonly cause: readonly string[];
  /** Bytes of output that were dropped from the log because too many came at once. */
  readonly droppedLogBytes: number;
  /** All instances of this server, including this one. Clients with different profiles use different instances. */
  readonly instances: readonly InstanceFacts[];
}

export interface InstanceFacts {
  readonly backend: Backend;
  /** Absent if the server cannot run with the variables of its clients. */
  readonly lifecycle: ProcessFacts | undefined;
  /** Whether the instance waits for its first client. */
  readonly isUnclaimed: boolean;
}

/** Usage of the process group of a server at the latest reading. */
interface UsageFacts {
  readonly memoryBytes: number;
  readonly processes: number;
  readonly cpuMs: number;
  /** Share of one processor in the time before. Absent if there is only one reading. */
  readonly cpuShare?: number;
}

export interface ConfigFacts {
  readonly file: string | undefined;
  /** Problem with the current file, since when it exists, and whether the previous configuration is in force instead. */
  readonly fault: { readonly report: string; readonly since: number; readonly isPreviousInForce: boolean } | undefined;
  readonly reloads: number;
  /** Settings that take effect only after a restart of Trunkline. */
  readonly needsRestart: readonly string[];
}

/** The way in which clients are served. Times are milliseconds on the monotonic clock. */
export type ServiceFacts =
  | { readonly kind: 'hub'; readonly pid: number; readonly since: number; readonly clients: number }
  | { readonly kind: 'http' }
  /** The client should share servers with others, and cannot. `because` is a sentence without a period. */
  | { readonly kind: 'alone'; readonly because: string };

export interface VisibleBackends {
  readonly backends: ReadonlyMap<string, Backend>;
  readonly catalogs: Catalogs;
  /** Skills that are not listed, because another server has a skill with the same URI. */
  readonly shadowedSkills?: readonly Shadowed[] | undefined;
  /** The view of the configuration that the client has; absent if it sees everything. `fault` is a sentence. */
  readonly named?: { readonly name: string; readonly fault?: string | undefined } | undefined;
  readonly revision?: string | undefined;
}

export interface StatusFacts extends Omit<VisibleBackends, 'backends'> {
  readonly now: number;
  readonly startedAt: number;
  readonly version: string;
  readonly config: ConfigFacts;
  /** Absent if the client asked for servers of its own. */
  readonly service?: ServiceFacts | undefined;
  /** Removes secrets from texts of servers. */
  readonly redact: (text: string) => string;
  /** Calls that wait for admission, over all servers. */
  readonly waiting: SharedLimit;
  /** Bytes of unfinished messages, over the pipes of all servers and clients. */
  readonly partialFrames: FairMemory;
  /** Bytes of incomplete request bodies, over all HTTP clients. */
  readonly requestBodies: FairMemory;
  /** The names for which HTTP requests were refused. Absent without HTTP. */
  readonly refusedNames?: readonly CountedName[] | undefined;
  /** Number of internal errors, each of which failed one request. */
  readonly internalErrorCount: number;
  readonly servers: readonly ServerFacts[];
  /** Delays of the event loop since the start, in milliseconds: the longest of 99 % of the measurements, and of all. */
  readonly eventLoop: { readonly p99Ms: number; readonly maxMs: number };
  /** Usage of the process group with this pid at the latest reading; `undefined` if it was not read. */
  readonly usageOf: (pid: number) => UsageFacts | undefined;
  readonly canRestart: boolean;
  /** The command with which a person restarts a server of the hub. */
  readonly restartCommand?: ((server: string) => string) | undefined;
}

/** Returns the state for the status. A server that waits for a start slot counts as starting, not as stopped. */
function stateOf({ isStartSettled }: Backend, lifecycle: ProcessFacts | undefined): ServerState {
  const { state } = lifecycle ?? { state: 'stopped' };
  return state === 'stopped' && lifecycle !== undefined && !isStartSettled ? 'starting' : state;
}

/** The same for one of several instances: the server may be unable to run with the variables of some clients only. */
export function instanceStateOf({
  backend,
  lifecycle,
}: Pick<InstanceFacts, 'backend' | 'lifecycle'>): ServerState | 'misconfigured' {
  return lifecycle === undefined ? 'misconfigured' : stateOf(backend, lifecycle);
}

export interface CountedName {
  readonly header: RefusedName['header'];
  readonly count: number;
  readonly last: string;
  /** Time of that request, in milliseconds on the clock of the caller. */
  readonly at: number;
}

/** The code for a refused request, which the doctor and the status share. */
export const CODE_OF = { Host: 'TL-HTTP-HOST-REFUSED', Origin: 'TL-HTTP-ORIGIN-REFUSED' } as const;

/** Counts the HTTP requests that were refused for a name that is not allowed: at most one entry for each header. */
export class RefusedNames {
  readonly #counted = new Map<RefusedName['header'], CountedName>();

  get all(): readonly CountedName[] {
    return [...this.#counted.values()];
  }

  count({ header, name }: RefusedName, at: number): void {
    const { count } = this.#counted.get(header) ?? { count: 0 };
    this.#counted.set(header, { header, count: count + 1, last: name, at });
  }
}

/** Sentences of the status about one server. Each is empty if there is nothing to say. */
interface Assessment {
  /** The problem and its effect on the tools. */
  readonly problem: string;
  /** The stable code of the problem; null without one. */
  readonly code: Code | null;
  /** Advice to a person, or Trunkline's own next step. */
  readonly advice: string;
}

/** Says what is wrong with a server, what that means, and what to do about it. */
function assess(facts: StatusFacts, server: ServerFacts): Assessment {
  const { problem, code, advice } = assessState(facts, server);
  const tools = assessTools(server.backend);
  return {
    problem: problem === '' ? tools.problem : problem,
    code: code ?? tools.code,
    advice: [advice, tools.advice, adviseOnNetwork(server), adviseOnApproval(server.backend)].filter(Boolean).join(' '),
  };
}

function assessState(facts: StatusFacts, { backend, lifecycle, problem, instances }: ServerFacts): Assessment {
  if (problem !== undefined) return assessConfiguration(problem);
  const next = describeWait(facts.now, lifecycle?.retryAt);
  const restart = howToRestart(facts, backend.key);
  switch (stateOf(backend, lifecycle)) {
    case 'installing':
      return fine(
        'Its package is being installed, which may take a minute or more. Its tools appear when it is ready.',
      );
    case 'parked':
      if (lifecycle?.missing !== undefined)
        return {
          code: 'TL-SERVER-NOT-INSTALLED',
          problem: 'Its package could not be installed, so it does not run and its tools are not listed.',
          advice: `Fix the cause, then ${restart}, or run \`trunkline install\`. Without that, Trunkline tries again ${next}.`,
        };
      return {
        code: 'TL-SERVER-PARKED',
        problem: `It is parked, because it failed ${times(lifecycle?.consecutiveFailures ?? 0)} in a row: ${itsTools(backend)} not listed.`,
        advice: `Fix the cause, then ${restart}. Without that, Trunkline tries again ${next}, and when one of its tools is called.`,
      };
    case 'backoff': {
      const problem = `It failed. ${untilItRuns(backend)}`;
      if (lifecycle?.lastFailure?.isHostFault === true)
        return { problem: `${problem} ${SHORT_OF_RESOURCES}`, code: 'TL-SERVER-RESOURCES', advice: FREE_RESOURCES };
      const advice = `Trunkline restarts it automatically, ${next}. ${IF_IT_FAILS_AGAIN}`;
      return { problem, code: 'TL-SERVER-RESTARTING', advice };
    }
    case 'starting':
      if (instances.some((instance) => instance.backend === backend && instance.isUnclaimed))
        return fine('Its process runs. The MCP handshake follows when the first client connects.');
      if ((lifecycle?.consecutiveFailures ?? 0) > 0)
        return {
          code: 'TL-SERVER-RESTARTING',
          problem: `It failed and is being started again. ${untilItRuns(backend)}`,
          advice: IF_IT_FAILS_AGAIN,
        };
      return fine(`It is still starting. ${untilItRuns(backend)}`);
    case 'suspect':
      return {
        code: 'TL-SERVER-UNRESPONSIVE',
        problem: 'It has stopped answering, so new calls wait.',
        advice: 'Trunkline probes it, and restarts it if it does not answer.',
      };
    case 'idle':
      return fine('It does not run because no client needs it now. A call of one of its tools starts it.');
    case 'ready':
      if (backend.dispatcher.breaker.state === 'closed') return fine('');
      return {
        code: 'TL-SERVER-BREAKER-OPEN',
        problem: 'It runs, but too many of its recent calls failed, so Trunkline refuses calls to it.',
        advice: `Trunkline accepts calls again when it answers a test request. To restart it now, ${restart}.`,
      };
    case 'stopped':
    case 'stopping':
      return fine('');
  }
}

/** A hub, and a Trunkline that serves over HTTP, outlive their clients. */
function howToRestart({ canRestart, service, restartCommand }: StatusFacts, server: string): string {
  if (canRestart) return `call trunkline__restart with server "${server}"`;
  if (service?.kind === 'hub' && restartCommand !== undefined) return `run \`${restartCommand(server)}\``;
  if (service?.kind === 'hub' || service?.kind === 'http') return 'restart Trunkline';
  return 'restart the client, which restarts Trunkline';
}

/** Message and hint are phrases without a capital letter and without a period. */
function assessConfiguration({ message, hint }: NonNullable<ServerFacts['problem']>): Assessment {
  return {
    code: 'TL-SERVER-MISCONFIGURED',
    problem: `Its configuration is wrong: ${message}. It cannot run, so its tools are not listed.`,
    advice: `To fix it, ${hint}.`,
  };
}

function adviseOnNetwork({ lifecycle, logLines }: ServerFacts): string {
  const { state, consecutiveFailures = 0 } = lifecycle ?? {};
  const isFailing = state === 'parked' || state === 'backoff' || (state === 'starting' && consecutiveFailures > 0);
  const trouble = isFailing ? findNetworkTrouble(logLines) : undefined;
  return trouble === undefined ? '' : `Its log shows ${trouble.problem}: ${trouble.cure}.`;
}

/** A server that runs, but cannot list its tools. */
function assessTools({ listFailures, approval }: Backend): Assessment {
  if (!listFailures.some(({ kind }) => kind === 'tools')) return fine('');
  const calls =
    approval === undefined
      ? 'Calls of its tools by name are sent to it'
      : 'Its tools need approval, so none is called before it lists them';
  return {
    code: 'TL-SERVER-LISTS',
    problem: 'It runs, but it does not list its tools.',
    advice: `${calls}. Its answer may say what it lacks, such as the network. Trunkline asks for the list again.`,
  };
}

function fine(advice: string): Assessment {
  return { problem: '', code: null, advice };
}

const SHORT_OF_RESOURCES = 'This machine lacks what a new process needs; the server is not to blame.';

const FREE_RESOURCES =
  'Close other programs, or raise the limit that the last failure names (`ulimit -n` for open files). Trunkline retries every 5 s.';

const IF_IT_FAILS_AGAIN = 'If it keeps failing, its log lines show why.';

function adviseOnApproval(backend: Backend): string {
  const { approval } = backend;
  const verdicts = [...(backend.listsAs('exposed').tools.verdicts?.values() ?? [])];
  const withheld = verdicts.filter((verdict) => verdict !== 'approved').length;
  if (approval === undefined || withheld === 0) return '';
  return `${withheld} of its tools ${withheld === 1 ? 'waits' : 'wait'} for approval. ${approval.advice}`;
}

/** Effect on tools and calls until the next process is ready. */
function untilItRuns(backend: Backend): string {
  const count = toolCount(backend);
  if (count === 0) return 'Its tools appear when it is ready.';
  return `Its ${count === 1 ? 'tool stays' : `${count} tools stay`} listed, and calls wait until it is ready.`;
}

function itsTools(backend: Backend): string {
  const count = toolCount(backend);
  if (count === 0) return 'its tools are';
  return count === 1 ? 'its tool is' : `its ${count} tools are`;
}

/** Number of tools that are listed while the server is available. */
function toolCount(backend: Backend): number {
  return backend.knownListsAs('exposed').tools.entries.filter(({ entry }) => entry !== undefined).length;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function describeWait(now: number, at: number | undefined): string {
  const seconds = at === undefined ? 0 : Math.ceil((at - now) / 1000);
  if (seconds <= 0) return 'soon';
  return seconds < 120 ? `in ${seconds} s` : `in ${Math.round(seconds / 60)} min`;
}

/** Number of the last lines that count, because older ones can belong to an earlier start. */
const LAST_LINES = 20;

const WHERE = 'in the environment that starts Trunkline, or in `defaults.env` of the configuration';

/** Only the text that matches is shown again, since a line may say anything. */
const SIGNS: readonly (readonly [sign: RegExp, kind: string, cure: string])[] = [
  [
    ERROR_SIGNS.certificate.text,
    'certificate',
    `behind a private certificate authority, set \`NODE_EXTRA_CA_CERTS\` (for Python, \`SSL_CERT_FILE\`) to the file with its certificates, ${WHERE}`,
  ],
  [ERROR_SIGNS.network.text, 'network', `check the network connection; behind a proxy, set \`HTTPS_PROXY\`, ${WHERE}`],
];

/** Finds a certificate error, else a network error, in the end of a log. Both texts are phrases of a sentence. */
export function findNetworkTrouble(lines: readonly string[]): { problem: string; cure: string } | undefined {
  const last = lines.slice(-LAST_LINES).join('\n');
  for (const [sign, kind, cure] of SIGNS) {
    const found = sign.exec(last)?.[0];
    if (found !== undefined) return { problem: `a ${kind} error (${found})`, cure };
  }
  return undefined;
}
