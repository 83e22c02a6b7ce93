import { HELD_MS } from '../host/observe/events/events.js';
import { describeBytes, plural, someOf } from '../wire/json/printable.js';
import { isModernRevision } from '../wire/mcp/revisions.js';
import type { EraReport, InstanceReport, ListReport, ServerReport, StatusReport } from './status.js';
import { describeSaving, INSECURE, isExit, isTimeout, remarksOnLists, remarkText } from './verdict.js';

/** Shortest delay of the event loop that the text mentions, in milliseconds. */
const NOTABLE_DELAY_MS = 20;

/** Renders the report about all servers, those with a problem first. It is short, because a model pays for each byte. */
export function renderStatus(report: StatusReport): string {
  const [troubled, others] = splitByProblem(report.servers);
  return [
    ...renderInterceptors(report),
    `${renderHead(report)} ${countServers(report)}.`,
    ...report.questions.map(questionText),
    ...renderGeneral(report),
    ...troubled.flatMap(renderProblem),
    ...GROUPS.flatMap(({ label, includes }) => renderGroup(label, others.filter(includes))),
    ...renderSessions(report),
    ...renderModern(others),
    ...renderFirstUse(report.servers),
    ...others.flatMap(renderRemarks),
    ...adviseOnSharing(report.servers),
    ...(report.advice === '' ? [] : [report.advice]),
  ].join('\n');
}

/** Renders the report about one server, with everything that is known about it. */
export function renderOneServer(report: StatusReport): string {
  const { clientRevision, eventLoop } = report;
  const { p99Ms, maxMs } = eventLoop;
  // A client states its revision in each request, or once in `initialize`.
  const isModern = clientRevision !== null && isModernRevision(clientRevision);
  return [
    renderHead(report),
    clientRevision !== null && `This client speaks revision ${clientRevision} (${isModern ? 'modern' : 'legacy'} era).`,
    ...renderGeneral(report),
    maxMs >= NOTABLE_DELAY_MS && `Event loop: 99 % of the delays took up to ${p99Ms} ms; the longest ${maxMs} ms.`,
    ...report.servers.flatMap(renderServer),
    ...(report.startedBySessions ?? []).map(
      (server) => `- ${server}: started by each session for itself, and no session has a process of it now`,
    ),
  ]
    .filter(isText)
    .join('\n');
}

/** The interceptors that cannot look at anything now, because calls are refused or unguarded meanwhile. */
function renderInterceptors({ interceptors }: StatusReport): string[] {
  return interceptors.flatMap(({ server, guards, failsOpen, fault }) => {
    if (fault === null) return [];
    const effect = failsOpen ? 'passes unseen, as `interceptorFailOpen` says' : 'is refused';
    return [`Interceptor "${server}" has failed: ${fault}. What it has to look at (${someOf(guards)}) ${effect}.`];
  });
}

/** A call that waits for a person, as one line. */
export function questionText(question: StatusReport['questions'][number]): string {
  const { id, server, kind, name, arguments: args, client, user, say, secondsLeft } = question;
  const who = user === null ? client : `${client} of ${user}`;
  const how =
    id === null
      ? 'The user answers on the page of `trunkline web`, or with `trunkline allow`.'
      : `Answer within ${duration(secondsLeft)}: \`trunkline allow ${id}\` or \`trunkline deny ${id}\`.`;
  const why = say === null ? '' : ` (${say})`;
  const what = `${kind} ${name}${args === '' ? '' : ` with ${args}`}`;
  return `Waits for a yes: a call of ${server}${why}. ${how} It is the ${what}, called by ${who}.`;
}

function renderHead({ version, uptimeSeconds, tools, listTokens }: StatusReport): string {
  const size = tools === 0 ? '' : `, about ${plural(listTokens, 'token')}`;
  return `Trunkline ${version}, up ${duration(uptimeSeconds)}, ${plural(tools, 'tool')}${size}.`;
}

function countServers({ servers, startedBySessions = [] }: StatusReport): string {
  const count = servers.length + startedBySessions.length;
  if (count === 0) return 'No server is configured';
  const all = plural(count, 'server');
  const [troubled, others] = splitByProblem(servers);
  const up = others.filter(({ state }) => state === 'ready').length;
  const starting = others.filter(({ state }) => state === 'starting' || state === 'installing').length;
  const perUser = others.filter(({ state }) => state === 'per user').length;
  const counts: [number, string][] = [
    [troubled.length, 'with a problem'],
    [starting, 'starting'],
    [others.length - starting - up - perUser, 'not running'],
    [perUser, 'for users only'],
    [startedBySessions.length, 'started by each session'],
    [up, 'up'],
  ];
  const told = counts.filter(([count]) => count > 0);
  return up === count ? `${all}, all up` : `${all}: ${told.map((each) => each.join(' ')).join(', ')}`;
}

/** Names the servers with a process for each session. Empty for a client, because it sees only its own process. */
function renderSessions({ servers, startedBySessions = [], clientRevision }: StatusReport): string[] {
  if (clientRevision !== null) return [];
  const running = servers.flatMap(({ server, sharing, instances }) =>
    sharing?.mode === 'isolated' ? [`${server} (${instances.filter(({ clients }) => clients > 0).length} now)`] : [],
  );
  const all = [...running, ...startedBySessions.map((server) => `${server} (none now)`)];
  return all.length === 0 ? [] : [`With a process for each session: ${all.join(', ')}`];
}

/** Sentences about the service of the client, and about problems of Trunkline as a whole. */
function renderGeneral(report: StatusReport): string[] {
  const { hub, aloneBecause, view, viewFault, configFault, configNeedsRestart, keptResults, internalErrorCount } =
    report;
  const { waitingCalls, partialFrameBytes, requestBodyBytes } = report.limits;
  const { maxMs } = report.eventLoop;
  const rows: Row[] = [
    aloneBecause !== null && `Not shared: this client has servers of its own, because ${aloneBecause}.`,
    hub && `Served by the hub: pid ${hub.pid}, up ${duration(hub.uptimeSeconds)}, ${plural(hub.clients, 'client')}.`,
    clientListRow(report),
    view !== null && (viewFault ?? `View: ${view}. Servers and tools outside of it are not for this client.`),
    configFault !== null &&
      (report.configInForce === 'previous'
        ? `The configuration file has been unusable for ${duration(report.configFaultSeconds ?? 0)}, so the previous configuration stays in force: ${configFault}`
        : `The configuration cannot be used, so no server runs: ${configFault}`),
    configNeedsRestart.length > 0 &&
      `${hub ? 'Run `trunkline hub restart`' : 'Restart Trunkline'} to apply these changed settings: ${configNeedsRestart.join(', ')}.`,
    tracingRow(report),
    keptResults &&
      `${plural(keptResults.count, 'large result')} in memory for the clients to read: ${describeBytes(keptResults.bytes)}.`,
    waitingCalls.refused > 0 &&
      `Calls refused: ${waitingCalls.refused}, because ${waitingCalls.max} calls were waiting already (limit \`gateway.maxQueued\`).`,
    partialFrameBytes.refused > 0 &&
      `Unfinished messages dropped: ${partialFrameBytes.refused}, the largest first, because all unfinished messages together reached ${partialFrameBytes.max} bytes (limit \`gateway.maxPartial\`).`,
    requestBodyBytes.refused > 0 &&
      `Request bodies refused: ${requestBodyBytes.refused}, the largest of the client that held the most first, because all incomplete bodies together reached ${requestBodyBytes.max} bytes (limit \`gateway.http.maxPartial\`).`,
    ...report.refusedNames.map(
      ({ header, count, last, secondsAgo, advice }) =>
        `HTTP requests refused for their ${header}: ${count}, the last ${duration(secondsAgo)} ago with ${last}. ${advice}`,
    ),
    maxMs > HELD_MS && `Trunkline was held up for ${maxMs} ms at a time; all servers and clients waited meanwhile.`,
    internalErrorCount > 0 &&
      `Internal errors in Trunkline: ${internalErrorCount}. Each failed one request; the log has the details.`,
  ];
  return rows.filter(isText);
}

/** Form of the tool list for this client, unless it is the default. */
function clientListRow({ clientList }: StatusReport): Row {
  if (clientList === null) return undefined;
  const { mode, because, tools, tokens } = clientList;
  const list = `Its list has ${plural(tools, 'tool')}, about ${plural(tokens, 'token')}`;
  const rest = mode === 'search' ? '; trunkline__find_tools finds the others' : '';
  return `This client is in ${mode} mode, because ${because}. ${list}${rest}.`;
}

/** The endpoint for the spans of calls, or the reason why tracing is off. In a hub, its own environment decides. */
function tracingRow({ tracing, hub }: StatusReport): Row {
  if (tracing === null) return undefined;
  if (!tracing.isOn) return `Traces are off, because ${tracing.because}.`;
  const { endpoint, sampler, from, exported, dropped, fault, faultSeconds } = tracing;
  const source = from.startsWith('OTEL_') ? `${from} in the environment of ${hub ? 'the hub' : 'Trunkline'}` : from;
  const lost = dropped === 0 ? '' : `, ${dropped} dropped`;
  const rest = `${plural(exported, 'span')} sent${lost}`;
  const failing = `The collector has taken no spans for ${duration(faultSeconds ?? 0)} (${fault}). Calls are served as usual`;
  return `Traces: to ${endpoint} (${source}), sampler ${sampler}; ${rest}.${fault === null ? '' : ` ${failing}.`}`;
}

interface Group {
  readonly label: string;
  readonly includes: (server: ServerReport) => boolean;
}

/** Groups of servers without a problem. Servers that clients cannot use yet come first. */
const GROUPS: readonly Group[] = [
  {
    label: 'Packages are being installed, which may take a minute or more. Then the tools appear',
    includes: ({ state }) => state === 'installing',
  },
  {
    label: 'Starting. The tools appear when the server is ready',
    includes: ({ state, fromLastRun }) => state === 'starting' && !fromLastRun,
  },
  {
    label: 'Starting, with the tools of the last run. Calls wait until the server is ready',
    includes: ({ state, fromLastRun }) => state === 'starting' && fromLastRun,
  },
  { label: 'For users over HTTP only, who need variables of their own', includes: ({ state }) => state === 'per user' },
  { label: 'Not running', includes: ({ state }) => state === 'stopping' || state === 'stopped' },
  { label: 'Not running until a call needs them', includes: ({ state }) => state === 'idle' },
  { label: 'Up', includes: ({ state }) => state === 'ready' },
];

function renderGroup(label: string, servers: readonly ServerReport[]): string[] {
  if (servers.length === 0) return [];
  return [`${label}: ${servers.map((server, index) => describeMember(server, index === 0)).join(', ')}`];
}

/** Describes a server by the number of its tools. Only the first member of a group has the noun. */
function describeMember(server: ServerReport, isFirst: boolean): string {
  const { state, tools, installing } = server;
  const count = tools.exposed.length;
  const facts = [
    installing !== null && `${installing.package}, for ${duration(installing.forSeconds)}`,
    count > 0 && (isFirst ? plural(count, 'tool') : String(count)),
    // A ready server without tools may have prompts or resources.
    count === 0 && state === 'ready' && describeOffer(server),
    tools.denied.length > 0 && `${tools.denied.length} denied`,
  ].filter(Boolean);
  return facts.length === 0 ? server.server : `${server.server} (${facts.join(', ')})`;
}

/** Largest number of servers that one line of the text about all servers names. */
const MAX_NAMES = 3;

function renderModern(servers: readonly ServerReport[]): string[] {
  const modern = servers.filter(({ era }) => era?.name === 'modern').map(({ server }) => server);
  if (modern.length === 0) return [];
  const more = modern.length > MAX_NAMES ? ` and ${modern.length - MAX_NAMES} more` : '';
  return [`Modern era: ${modern.slice(0, MAX_NAMES).join(', ')}${more}`];
}

/** Names the servers whose first tools were approved automatically in this run. */
function renderFirstUse(servers: readonly ServerReport[]): string[] {
  const first = servers.filter(({ approval }) => approval?.firstUse === true);
  if (first.length === 0) return [];
  const counts = first.map(({ server, approval }) => `${server} (${approval?.approved})`);
  return [`Tools that were approved automatically, because they were the first of the server: ${counts.join(', ')}`];
}

/** Largest number of withheld entries that the text about all servers names. The text about one server has all names. */
const BRIEF_NAMES = 5;

/** The sharing mode of a process, and the rule that decided it, such as `isolated (unknown)`. */
export function describeSharing({ mode, rule }: { readonly mode: string; readonly rule: string }): string {
  return `${mode} (${rule})`;
}

/** Advice on the servers that may run fewer processes. Empty if there are none. */
export function adviseOnSharing(servers: readonly ServerReport[]): string[] {
  const all = servers.flatMap((server) => {
    const saving = describeSaving(server);
    return saving === undefined ? [] : [`${server.server} (${saving})`];
  });
  if (all.length === 0) return [];
  const more = all.length > MAX_NAMES ? ` and ${all.length - MAX_NAMES} more` : '';
  return [
    `A process for each session, because it is not known whether the server keeps state: ${all.slice(0, MAX_NAMES).join(', ')}${more}. If a server keeps none, write \`sharing: profile\` in its entry.`,
  ];
}

/** Describes a server with a problem: the problem, its reason, and what to do. */
function renderProblem(server: ServerReport): string[] {
  return block(server, [
    ...failureRows(server),
    !isDown(server) && restartRow(server),
    ...remarksOnLists(server).map((each) => remarkText(each, BRIEF_NAMES)),
    ...troubleRows(server),
    ...(server.problem === '' ? [] : outputRows(server)),
    adviceRow(server),
  ]);
}

/** Remarks on a server without a problem. Empty if there are none. */
function renderRemarks(server: ServerReport): string[] {
  const rows = [
    restartRow(server),
    isNearLimits(server) && usageRow(server),
    ...troubleRows(server),
    ...remarksOnLists(server).flatMap((each) => (each.code === null ? [] : [remarkText(each, BRIEF_NAMES)])),
    ...(server.sandbox?.remarks ?? []).map((remark) => row('sandbox', remark)),
  ];
  return rows.some(isText) ? block(server, rows) : [];
}

/** Rows about faults and waits that a running server may have, too. */
function troubleRows(server: ServerReport): Row[] {
  const insecure = server.insecure && row('insecure', INSECURE);
  return [...callRows(server), unfinishedRow(server), pausedRow(server), sessionRow(server), insecure];
}

function renderServer(server: ServerReport): string[] {
  const { approval, instances, installing } = server;
  return block(server, [
    installing && row('package', `${installing.package}, for ${duration(installing.forSeconds)} so far`),
    ...failureRows(server),
    server.fromLastRun && row('lists', 'those of the last run, until the server sends its own'),
    server.toolTokens > 0 && row('list of its tools', `about ${plural(server.toolTokens, 'token')}`),
    ...remarksOnLists(server).map((each) => remarkText(each)),
    server.tools.denied.length > 0 && row('denied by configuration', server.tools.denied.join(', ')),
    approval?.firstUse === true &&
      row('approval', `its first ${wereApproved(approval.approved)} approved automatically`),
    server.project && row('project', describeProject(server.project)),
    server.packageVersion !== null && row('version', server.packageVersion),
    processRow(server),
    server.era !== null && row('era', describeEra(server.era)),
    usageRow(server),
    !isDown(server) && restartRow(server),
    (server.sandbox ?? null) !== null &&
      row('sandbox', 'confined; `trunkline sandbox` with its name shows what is open'),
    server.sharing !== null && row('sharing', `${describeSharing(server.sharing)}, because ${server.sharing.because}`),
    instances.length > 1 &&
      row(server.remote ? 'connections' : 'processes', instances.map(describeInstance).join('; ')),
    trafficRow(server),
    ...troubleRows(server),
    repairedRow(server),
    droppedRow(server),
    server.droppedLogBytes > 0 &&
      row('output dropped from the log', `${server.droppedLogBytes} bytes (too much at once)`),
    ...outputRows(server),
    adviceRow(server),
  ]);
}

function describeProject({ file, key, hides }: NonNullable<ServerReport['project']>): string {
  return `${file}, for clients in its folder${hides ? `, in place of your server ${key}` : ''}`;
}

/** Entries of a server that clients can use, such as `12 tools, 1 prompt`. */
function describeOffer({ tools, prompts, resources, resourceTemplates }: ServerReport): string {
  const offer = [
    count(tools.exposed.length, 'tool'),
    count(prompts.exposed.length, 'prompt'),
    count(resources.exposed.length, 'resource'),
    count(resourceTemplates.exposed.length, 'resource template'),
  ].filter(isText);
  return offer.length === 0 ? 'no tools' : offer.join(', ');
}

export function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

function count(count: number, noun: string): Row {
  return count > 0 && plural(count, noun);
}

type Row = string | false | null | undefined;

function block(server: ServerReport, rows: readonly Row[]): string[] {
  const head = server.problem === '' ? `${STATE_WORDS[server.state]}, ${describeOffer(server)}` : server.problem;
  return [`- ${server.server}: ${head}`, ...rows.filter(isText).map((text) => `    ${text}`)];
}

function isText(text: Row): text is string {
  return typeof text === 'string' && text !== '';
}

function row(label: string, text: string): string {
  return `${label}: ${text}`;
}

export const STATE_WORDS: Readonly<Record<ServerReport['state'], string>> = {
  ready: 'up',
  idle: 'not running until a call needs it',
  starting: 'starting',
  installing: 'being installed',
  suspect: 'silent',
  backoff: 'failed',
  offline: 'unreachable',
  blocked: 'credentials refused',
  parked: 'parked',
  misconfigured: 'misconfigured',
  'per user': 'for users over HTTP only',
  stopping: 'being stopped',
  stopped: 'not running',
};

/** Whether the last failure is the reason of the problem. If the server runs, its problem has another reason. */
function isDown({ problem, state }: ServerReport): boolean {
  return problem !== '' && state !== 'ready' && state !== 'suspect';
}

/** The reason why a server is down, and the fault of its approvals, if it has these. */
function failureRows(server: ServerReport): Row[] {
  const { lastFailure, approval } = server;
  return [
    isDown(server) && lastFailure !== null && row('why', describeFailure(server, lastFailure)),
    approval !== null && approval.fault !== null && row('approval', approval.fault),
  ];
}

function wereApproved(count: number): string {
  return `${plural(count, 'tool')} ${count === 1 ? 'was' : 'were'}`;
}

function describeFailure({ lastExit }: ServerReport, failure: string): string {
  if (isExit(failure)) return lastExit === null ? 'it ended' : `it ended with ${describeExit(lastExit)}`;
  return isTimeout(failure) ? 'it was not ready in time (setting `startTimeout`)' : failure;
}

function describeExit({ code, signal, secondsAgo }: NonNullable<ServerReport['lastExit']>): string {
  return `${signal === null ? `exit code ${code}` : `signal ${signal}`}, ${duration(secondsAgo)} ago`;
}

function outputRows(server: ServerReport): Row[] {
  return [...server.cause.map((line) => row('cause', line)), ...outputOf(server).map((line) => row('log', line))];
}

function adviceRow({ advice }: ServerReport): Row {
  return advice !== '' && row('what to do', advice);
}

/** Counts the restarts. Has the reason of the last failure until the server is stable. */
function restartRow(server: ServerReport): Row {
  const { remote, restarts, lastExit, lastFailure } = server;
  if (restarts === 0) return undefined;
  const why =
    lastFailure === null || isExit(lastFailure) ? '' : `; last failure: ${describeFailure(server, lastFailure)}`;
  const end = lastExit === null ? '' : `; the last process ended with ${describeExit(lastExit)}`;
  return row(remote ? 'connected again' : 'restarted', `${restarts === 1 ? 'once' : `${restarts} times`}${why}${end}`);
}

function usageRow({ usage, resourceLimits: { memoryBytes, processes } }: ServerReport): Row {
  if (usage === null) return undefined;
  const { cpuPercent } = usage;
  const uses = [
    `${describeBytes(usage.memoryBytes)} of memory${memoryBytes === null ? '' : ` (limit ${describeBytes(memoryBytes)})`}`,
    cpuPercent !== null && `${cpuPercent} % of a processor`,
    `${duration(usage.cpuSeconds)} of processor time in all`,
    `${usage.processes} ${usage.processes === 1 ? 'process' : 'processes'}${processes === null ? '' : ` (limit ${processes})`}`,
  ];
  return row('uses', uses.filter(isText).join(', '));
}

function processRow({ remote, pid, uptimeSeconds, generation, protocolVersion }: ServerReport): Row {
  if (remote)
    return uptimeSeconds !== null && row('connection', `up ${duration(uptimeSeconds)}, protocol ${protocolVersion}`);
  if (pid === null) return undefined;
  const age = uptimeSeconds === null ? '' : `, up ${duration(uptimeSeconds)}`;
  const version = protocolVersion === null ? '' : `, protocol ${protocolVersion}`;
  return row('process', `pid ${pid}${age}${version}${generation > 1 ? `, start ${generation}` : ''}`);
}

const ERA_SOURCES: Readonly<Record<EraReport['foundBy'], string>> = {
  configured: '`era` of its entry says so',
  transport: '`transport: sse` of its entry has no other',
  asked: 'it was asked when it started',
  cached: 'cached until it proves wrong',
  exited: 'it exits when it is asked',
};

/** The protocol era of a server and its source, such as `legacy, cached until 2026-11-24 08:10 UTC`. */
export function describeEra({ name, foundBy, cachedUntil }: EraReport): string {
  const isLimited = foundBy === 'cached' && cachedUntil !== null;
  const until = isLimited ? `cached until ${cachedUntil.slice(0, 16).replace('T', ' ')} UTC` : ERA_SOURCES[foundBy];
  return `${name}, ${until}`;
}

/** Counts the calls that failed since Trunkline started, and the calls that wait now. */
function callRows({ calls, failures, failureReasons, inFlight, queued }: ServerReport): Row[] {
  const reasons = Object.entries(failureReasons).map(([reason, count]) => `${reason.replaceAll('_', ' ')} ${count}`);
  const because = reasons.length === 0 ? '' : ` (${reasons.join(', ')})`;
  return [
    failures > 0 && row('failed calls', `${failures} of ${calls}${because}`),
    queued > 0 && row('waiting calls', `${queued}, behind ${inFlight} in flight`),
  ];
}

function trafficRow({ calls, errors, inFlight, cancelled, repeated, latencyMs }: ServerReport): Row {
  if (calls === 0) return undefined;
  const kinds = [
    inFlight > 0 && `${inFlight} in flight`,
    errors > 0 && `${errors} answered with an error`,
    cancelled > 0 && `${cancelled} cancelled`,
    repeated > 0 && `${repeated} repeated`,
    latencyMs && `half took up to ${latencyMs.p50} ms, 95 % up to ${latencyMs.p95} ms`,
  ];
  return row('calls', [String(calls), ...kinds.filter(isText)].join(', '));
}

function unfinishedRow({ dropped: { evicted = 0 } }: ServerReport): Row {
  const why = `${evicted} as the largest when the limit \`gateway.maxPartial\` was reached`;
  return evicted > 0 && row('unfinished messages dropped', why);
}

function repairedRow({ dropped: { repaired = 0 } }: ServerReport): Row {
  const why = 'they had bytes that are not UTF-8, or an id that was missing or null';
  return repaired > 0 && row('repaired messages', `${repaired}, because ${why}`);
}

function droppedRow({ dropped: { evicted, repaired, ...dropped } }: ServerReport): Row {
  const kinds = Object.entries(dropped).filter(([, count]) => count > 0);
  return kinds.length > 0 && row('dropped messages', kinds.map(([kind, count]) => `${kind} ${count}`).join(', '));
}

/** Reports lost sessions from `MANY_SESSIONS` on, because a single session may be lost at any time. */
function sessionRow({ forgottenSessions }: ServerReport): Row {
  if (forgottenSessions < MANY_SESSIONS) return false;
  return row(
    'sessions',
    `the server forgot ${forgottenSessions} sessions since Trunkline connected to it; Trunkline opened others. A balancer in front of it may send each request to another machine`,
  );
}

const MANY_SESSIONS = 3;

function pausedRow({ pausedSeconds }: ServerReport): Row {
  return (
    pausedSeconds > 0 &&
    row('flood', `its output was not read for ${duration(pausedSeconds)} in all; it answers no call`)
  );
}

function describeInstance({ id, state, pid, clients, isYours }: InstanceReport): string {
  const users = `${plural(clients, 'client')}${isYours ? ', including you' : ''}`;
  return `${id} ${state}${pid === null ? '' : ` (pid ${pid})`}, ${users}`;
}

/**
 * Structured content of `trunkline__status` for all servers, reduced to the differences from healthy servers. It only
 * counts the entries that are not listed or that hide characters. The report about one server names them.
 */
export function overviewOf(report: StatusReport) {
  const {
    version,
    uptimeSeconds,
    configFile,
    configInForce,
    limits,
    eventLoop,
    servers,
    startedBySessions,
    ...others
  } = report;
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
    servers: [
      ...splitByProblem(servers).flat().map(overviewOfServer),
      ...startedBySessions.map((server) => ({ server, state: 'idle' as const, startedBySessions: true as const })),
    ] as readonly ServerOverview[],
  };
}

/** Returns the servers with a problem, and the others, each in the order of the configuration. */
function splitByProblem(servers: readonly ServerReport[]): [troubled: ServerReport[], others: ServerReport[]] {
  return [servers.filter(hasProblem), servers.filter((server) => !hasProblem(server))];
}

/** Whether the user should look at this server, because calls fail or entries are not listed. */
function hasProblem(server: ServerReport): boolean {
  const { problem, approval, tools, prompts, resources, resourceTemplates, unshaped } = server;
  const hasGap = [tools, prompts, resources, resourceTemplates].some(
    ({ quarantined, truncated, failure }) => quarantined.length > 0 || truncated !== null || failure !== null,
  );
  return problem !== '' || hasGap || unshaped.length > 0 || (approval?.fault ?? null) !== null;
}

/** Share of a limit from which on the usage is mentioned. */
const NEAR = 0.8;

export function isNear(used: number, limit: number | null): boolean {
  return limit !== null && used >= limit * NEAR;
}

/** Whether the usage of a server's processes comes near to their limits. */
function isNearLimits({ usage, resourceLimits: { memoryBytes, processes } }: ServerReport): boolean {
  if (usage === null) return false;
  return isNear(usage.memoryBytes, memoryBytes) || isNear(usage.processes, processes);
}

/** The log lines of a server without those that only repeat its failure. */
function outputOf({ log, lastFailure }: ServerReport): string[] {
  return log.filter((line) => line !== lastFailure);
}

interface ServerOverview extends ReturnType<typeof overviewOfServer> {
  /** Whether the server has no process now, because each session starts one of its own. */
  readonly startedBySessions?: true;
}

function overviewOfServer(report: ServerReport) {
  const { server, state, breaker, approval, restarts, problem, code, lastExit, lastFailure } = report;
  // A server that was stopped as idle has exited too, so the exit alone shows no failure.
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
      // Leaves out the usual ways of finding the era.
      era: report.era?.foundBy === 'configured' || report.era?.foundBy === 'exited' ? report.era : null,
      sandbox: (report.sandbox?.remarks ?? []).length > 0 ? report.sandbox : null,
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
      repairedResults: report.repairedResults,
      dropped: Object.fromEntries(Object.entries(report.dropped).filter(([, count]) => count > 0)),
      droppedLogBytes: report.droppedLogBytes,
      pausedSeconds: report.pausedSeconds,
    }),
  };
}

function overviewOfList({ quarantined, repaired, denied, hiding, truncated, failure }: ListReport) {
  return differing({
    quarantined: quarantined.length,
    repaired: repaired.length,
    denied: denied.length,
    hiding: hiding.length,
    truncated,
    failure,
  });
}

type Differing<T> = { readonly [K in keyof T]?: NonNullable<T[K]> };

/** Leaves out every member without information: null, false, 0, and empty texts, lists and objects. */
function differing<T extends object>(members: T): Differing<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isNotable(value))) as Differing<T>;
}

function isNotable(value: unknown): boolean {
  if (typeof value !== 'object') return Boolean(value);
  return value !== null && Object.keys(value).length > 0;
}
