/*
 * The status of a gateway. `reportStatus` below makes a report of the facts (`status-facts.ts`), and `status-text.ts` renders it as
 * text. `verdict.ts` judges a server of the report: the reason of its failure, and remarks. Extras, the hub, the page, the doctor and
 * the commands use this room. Begin with `StatusReport`.
 */
import type { Shadowed } from '../gateway/catalog/catalog.js';
import type { Backend } from '../gateway/registry/backend.js';
import { CODES } from '../host/errors/codes.js';
import type { ChildSnapshot, ServerState } from '../spec/server-state.js';
import type { EraSource } from '../upstream/server-era.js';
import type { FairMemory } from '../wire/io/shared-limit.js';
import { printable, printableLines } from '../wire/json/printable.js';
import { tokensOfList } from '../wire/mcp/entry-check.js';
import type { ListKind } from '../wire/mcp/methods.js';
import { isModernRevision } from '../wire/mcp/revisions.js';
import { CODE_OF, type CountedName } from './refused-names.js';
import { adviseOnToolCount, assess, shownState } from './status-advice.js';
import type { InstanceFacts, ServerFacts, SharedServer, StatusFacts, SupervisedInstance } from './status-facts.js';

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
  const refusedNames = facts.service?.kind === 'http' ? facts.service.refusedNames : [];
  return {
    version: facts.version,
    uptimeSeconds: seconds(facts.now - facts.startedAt),
    ...reportService(facts),
    /** The MCP revision of the client that asks for the status. */
    clientRevision: facts.revision ?? null,
    view: facts.named?.name ?? null,
    viewFault: facts.named?.fault ?? null,
    ...reportConfig(facts),
    tracing: reportTracing(facts),
    /** The servers that look at the messages of others. `fault` is the reason for which one cannot; null if it can. */
    interceptors: reportInterceptors(facts),
    tools,
    /** Estimated tokens of the list of all tools. */
    listTokens: tokensOfList(facts.catalogs.tools.entries),
    clientList: reportClientList(facts),
    questions: reportQuestions(facts),
    /** Advice to the user about Trunkline as a whole. Empty if there is nothing to do. */
    advice: [facts.decision?.mode === 'search' ? '' : adviseOnToolCount(tools), ...(facts.notices ?? [])]
      .filter((each) => each !== '')
      .join(' '),
    /** Limits that all servers and clients share. `refused` counts the refused calls, and the dropped messages or bodies. */
    limits: {
      waitingCalls: { now: facts.waiting.used, max: facts.waiting.max, refused: facts.waiting.refusals },
      partialFrameBytes: reportMemory(facts.partialFrames),
      requestBodyBytes: reportMemory(facts.requestBodies),
    },
    /** The large results that are kept for all clients; null if none is kept. */
    keptResults: facts.keptResults ?? null,
    refusedNames: refusedNames.map((each) => reportRefusedName(each, facts.now)),
    internalErrorCount: facts.internalErrorCount,
    eventLoop: { p99Ms: facts.eventLoop.p99Ms, maxMs: facts.eventLoop.maxMs },
    servers: chosen.map((one) => reportServer({ ...facts, catalogs: one.catalogs ?? facts.catalogs }, one, logLines)),
    /** Keys of the servers that have no process now, because each session starts one of its own. */
    startedBySessions: (facts.withoutInstance ?? []).filter((key) => server === undefined || key === server),
  };
}

/** The interceptors, to a client only those that guard something which it sees. */
function reportInterceptors({ interceptors = [], servers, named, withoutInstance, redact }: StatusFacts) {
  const isOperator = withoutInstance !== undefined;
  const seen = new Set(servers.map(({ backend }) => backend.key));
  return interceptors.flatMap(({ server, guards, views, failsOpen, fault }) => {
    const shown = guards.filter((key) => isOperator || seen.has(key));
    const ofViews = views
      .filter((view) => isOperator || view === named?.name)
      .map((view) => `clients of the view ${view}`);
    if (shown.length + ofViews.length === 0) return [];
    return [
      {
        server,
        guards: [...shown, ...ofViews],
        failsOpen,
        fault: fault === undefined ? null : printable(redact(fault)),
      },
    ];
  });
}

/**
 * The calls that wait for the yes of a person: to the operator all, to a client its own. A client does not learn the ids, so that no
 * model answers for the person, and it knows the arguments.
 */
function reportQuestions({ questions = [], reader, withoutInstance, now }: StatusFacts) {
  const isOperator = withoutInstance !== undefined;
  const shown = questions.filter(({ caller }) => isOperator || caller === reader);
  return shown.map(({ id, server, kind, name, arguments: args, client, user, rule, say, until }) => ({
    id: isOperator ? id : null,
    ...{ server, kind, name, client, rule },
    /** As JSON, cut if they are long; '' if there are none, or for a client. */
    arguments: isOperator ? args : '',
    user: user ?? null,
    say: say ?? null,
    /** Time until the question is dropped. */
    secondsLeft: seconds(Math.max(0, until - now)),
  }));
}

/** Form of the tool list for the calling client, and its reason; null if neither the configuration nor the client's name decided. */
function reportClientList({ decision, catalogs }: StatusFacts) {
  if (decision === undefined || decision.because === '') return null;
  const { mode, because } = decision;
  const entries = catalogs.tools.shownEntries(mode === 'search');
  return { mode, because, tools: entries.length, tokens: tokensOfList(entries) };
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

/** State of the tracing of calls; null if neither the configuration nor the environment asks for traces. */
function reportTracing({ now, tracing }: StatusFacts) {
  if (tracing === undefined) return null;
  if ('offBecause' in tracing) return { isOn: false as const, because: tracing.offBecause };
  const { failing, ...others } = tracing;
  return {
    isOn: true as const,
    ...others,
    /** Reason why the collector takes no spans; null while it takes them. */
    fault: failing?.fault ?? null,
    faultSeconds: failing === undefined ? null : seconds(now - failing.since),
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
  const { backend, lifecycle } = one;
  const sanitize = sanitizerFor(facts);
  const { counters, latencies, connection, breaker } = backend.dispatcher;
  const { forgottenSessions: _, ...dropped } = connection?.counters ?? {};
  const others = one.instances.flatMap((each) => (each.backend === backend ? [] : [each.backend.dispatcher.latencies]));
  const p50 = latencies.quantile(0.5, others);
  const p95 = latencies.quantile(0.95, others);
  const since = (at: number | undefined) => (at === undefined ? null : seconds(facts.now - at));
  const { lastExit, lastFailure, missing, installingSince, retryAt } = lifecycle ?? {};
  const instructions = backend.handshake?.instructions;
  return {
    server: backend.key,
    /** The project that the server belongs to, its key there, and whether clients of the project see it in place of one of the user. */
    project: one.layer ?? null,
    state: serverStateOf(one),
    /** Whether the server is behind a URL. Then `uptimeSeconds`, `generation` and `restarts` are those of its connection. */
    remote: one.isRemote === true,
    /** Whether its messages cross a network in plain text, as its entry allows. */
    insecure: one.isInsecure === true,
    pid: lifecycle?.pid ?? null,
    uptimeSeconds: since(lifecycle?.readySince),
    generation: lifecycle?.generation ?? 0,
    restarts: lifecycle?.restarts ?? 0,
    /** The exact version of its package; null for a command. */
    packageVersion: one.packageVersion ?? null,
    usage: reportUsage(facts, lifecycle),
    resourceLimits: { memoryBytes: one.limits?.memoryBytes ?? null, processes: one.limits?.processes ?? null },
    protocolVersion: connection?.revision ?? null,
    /** The protocol era of this revision, and how it was found. Null while no process is connected. */
    era: connection === undefined || one.era === undefined ? null : reportEra(connection.revision, one.era),
    /** Whether the lists come from the cache of the last run, and no process of this run has confirmed them yet. */
    fromLastRun: backend.isFromCache,
    breaker: breaker.state,
    inFlight: connection?.inFlight ?? 0,
    queued: backend.dispatcher.admission.queued,
    ...counters,
    failureReasons: Object.fromEntries(backend.dispatcher.failureReasons) as Readonly<Record<string, number>>,
    /** Latencies of the latest calls to all instances. */
    latencyMs: p50 === undefined || p95 === undefined ? null : { p50: Math.round(p50), p95: Math.round(p95) },
    tools: reportList(facts, backend, 'tools'),
    /** Estimated tokens of the listed tools. */
    toolTokens: tokensOfList(facts.catalogs.tools.entriesOf(backend.key)),
    unshaped: (backend.knownListsAs('exposed').tools.unshaped ?? []).map(sanitize),
    approval: reportApproval(backend),
    prompts: reportList(facts, backend, 'prompts'),
    resources: reportList(facts, backend, 'resources'),
    resourceTemplates: reportList(facts, backend, 'templates'),
    /** The first fault for each method of results that clients would have rejected, and that were repaired. `name` is the method. */
    repairedResults: [...backend.dispatcher.repairedResults].map(([name, reason]) => ({
      name,
      reason: sanitize(reason),
    })),
    /** Messages of the server that were dropped since its last start, by kind. */
    dropped: dropped as Readonly<Record<string, number>>,
    /** Number of sessions of the open connections of all instances that the remote server forgot, and that were replaced. */
    forgottenSessions: one.instances
      .map((each) => each.backend.dispatcher.connection?.counters.forgottenSessions ?? 0)
      .reduce((sum, count) => sum + count, 0),
    /** Total time in which the output of its process was not read, because most of it answered no call. */
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
    /** Remarks of the sandbox, such as its refusals. Null if the program is not confined. */
    sandbox: one.sandboxRemarks === undefined ? null : { remarks: one.sandboxRemarks.map(sanitize) },
    instructions: instructions === undefined ? null : printableLines(facts.redact(instructions)),
    sharing: reportSharing(one),
    /** The instances of this server: one per client profile, one per client, or one for all. */
    instances: one.instances.map((instance) => reportInstance(facts, instance, backend)),
  };
}

function reportEra(revision: string, { kind, until }: EraSource) {
  return {
    name: isModernRevision(revision) ? ('modern' as const) : ('legacy' as const),
    foundBy: kind,
    /** ISO date until which the era is not asked for again; null if it holds until it proves wrong. */
    cachedUntil: until ?? null,
  };
}

/** Usage of the processes at the latest reading. `cpuPercent` is the present share of one processor. */
function reportUsage({ usageOf }: StatusFacts, lifecycle: ChildSnapshot | undefined) {
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

/** Returns the state of a server or an instance. An instance is also `misconfigured` if its clients lack a variable that others have. */
export function serverStateOf({
  backend,
  lifecycle,
  problem,
  isPerUser,
}: SupervisedInstance): ServerState | 'misconfigured' | 'per user' {
  if (isPerUser === true) return 'per user';
  return problem === undefined ? shownState(backend, lifecycle) : 'misconfigured';
}

/** The clients that share a process, the rule, and its reason; null if that is not known. */
function reportSharing({ sharing: decided, instances }: SharedServer) {
  if (decided === undefined) return null;
  const { sharing, rule, because } = decided;
  if (sharing !== 'auto') return { mode: sharing, rule, because };
  const revision = instances.map(({ backend }) => backend.openConnection?.revision).find((each) => each !== undefined);
  return revision !== undefined && isModernRevision(revision)
    ? { mode: 'profile' as const, rule: 'revision' as const, because: `revision ${revision} has no sessions` }
    : { mode: 'isolated' as const, rule, because };
}

function reportInstance(facts: StatusFacts, instance: InstanceFacts, yours: Backend) {
  const { backend, lifecycle } = instance;
  return {
    id: backend.id,
    state: serverStateOf(instance),
    pid: lifecycle?.pid ?? null,
    clients: backend.clients.size,
    inFlight: backend.dispatcher.connection?.inFlight ?? 0,
    restarts: lifecycle?.restarts ?? 0,
    memoryBytes: reportUsage(facts, lifecycle)?.memoryBytes ?? null,
    /** Whether the client that called `trunkline__status` uses this instance. */
    isYours: facts.decision !== undefined && backend === yours,
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
  const { withheld, repaired, denied, truncated, withHiddenCharacters } = backend.listsAs('exposed')[kind];
  const failure = listFailures.find((each) => each.kind === kind);
  const skills = kind === 'resources' ? reportSkills(facts, key) : [];
  const isSkill = new Set(skills.map(({ name }) => name));
  const shadowed = catalogs[kind].shadowed.filter(
    (entry) => entry.key === key && !isSkill.has(sanitize(entry.exposed)),
  );
  const sanitized = ({ name, reason }: (typeof withheld)[number]) => ({
    name: sanitize(name),
    reason: sanitize(reason),
  });
  return {
    exposed: (catalogs[kind].listed.get(key) ?? []).map(sanitize),
    quarantined: [
      ...withheld.map(sanitized),
      ...shadowed.map((entry) => ({ name: sanitize(entry.exposed), reason: explainShadowed(entry, kind) })),
      ...skills,
    ],
    /** Entries that are listed without their malformed parts. */
    repaired: repaired.map(sanitized),
    denied: denied.map(sanitize),
    truncated: truncated ?? null,
    /** Number of consecutive announcements of a change after which the list was as before. */
    unchanged: backend.lists.unchangedReads(kind),
    /** Reason why the running server does not list these: the method and the server's words. The last known entries stay. */
    failure: failure === undefined ? null : sanitize(failure.reason),
    hiding: withHiddenCharacters.map(sanitize),
  };
}

/** Reports skills that are not listed. Skills are resources, but have a list of their own. */
function reportSkills(facts: StatusFacts, key: string) {
  const own = (facts.shadowedSkills ?? []).filter((entry) => entry.key === key);
  return own.map(({ exposed, owner }) => ({
    name: sanitizerFor(facts)(exposed),
    reason: `server "${owner}" has a skill with this URI already; a client that shows only server "${key}" lists this one`,
  }));
}

/** Says why a name is not listed a second time, and how to list both entries. */
export function explainShadowed({ owner, prefix }: Shadowed, kind: ListKind): string {
  if (owner === 'trunkline') return "names that begin with trunkline__ are reserved for Trunkline's own tools";
  if (prefix !== undefined) return `names that begin with ${prefix}__ are reserved for server "${owner}"`;
  const taken = `server "${owner}" has this name already`;
  const isPrefixed = kind === 'tools' || kind === 'prompts';
  return isPrefixed ? `${taken}; to list both, remove \`prefix: ""\` from one of the two servers` : taken;
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}

/** One instance of a server, and the usage of its processes. Unknown values are null. */
export interface ProcessReport {
  readonly server: string;
  /** Unique, also among the instances of one server. */
  readonly id: string;
  readonly state: ReturnType<typeof serverStateOf>;
  readonly pid: number | null;
  /** The revision of MCP that the process speaks. Absent in answers of older versions. */
  readonly revision?: string | null;
  readonly memoryBytes: number | null;
  /** The clients that share the process, and the rule. Absent in answers of older versions. */
  readonly sharing?: { readonly mode: string; readonly rule: string } | null;
  /** Present share of one processor. */
  readonly cpuPercent: number | null;
  readonly processes: number | null;
  readonly calls: number;
  readonly inFlight: number;
  readonly clients: number;
}

/** All instances of all servers, in the order of the configuration. */
export function processReports(facts: StatusFacts): ProcessReport[] {
  return facts.servers.flatMap((server) => {
    const { instances } = server;
    const { key } = server.backend;
    const sharing = reportSharing(server);
    return instances.map((instance) => {
      const { backend, lifecycle } = instance;
      const { counters, connection } = backend.dispatcher;
      const { memoryBytes = null, cpuPercent = null, processes = null } = reportUsage(facts, lifecycle) ?? {};
      return {
        server: key,
        id: backend.id,
        state: serverStateOf(instance),
        pid: lifecycle?.pid ?? null,
        revision: connection?.revision ?? null,
        sharing,
        memoryBytes,
        cpuPercent,
        processes,
        calls: counters.calls,
        inFlight: connection?.inFlight ?? 0,
        clients: backend.clients.size,
      };
    });
  });
}
