import { isModernRevision } from '../../mcp/revisions.js';
import { describeOffer, duration, plural, renderProblem, renderRemarks, renderServer } from './server-text.js';
import { splitByProblem } from './status-overview.js';
import type { RefusedNameReport, ServerReport, StatusReport } from './status-report.js';

/**
 * Renders the report about all servers for people and models: the servers with a problem first, with what to do; the
 * others in groups. It is short, because a model pays for each byte.
 */
export function renderStatus(report: StatusReport): string {
  const [troubled, others] = splitByProblem(report.servers);
  return [
    `${renderHead(report)} ${countServers(report.servers)}.`,
    ...renderGeneral(report),
    ...troubled.flatMap(renderProblem),
    ...GROUPS.flatMap(({ label, includes }) => renderGroup(label, others.filter(includes))),
    ...renderModern(others),
    ...renderFirstUse(report.servers),
    ...others.flatMap(renderRemarks),
    ...(report.advice === '' ? [] : [report.advice]),
  ].join('\n');
}

/** Renders the report about one server, with all that is known of it. */
export function renderOneServer(report: StatusReport): string {
  return [
    renderHead(report),
    ...renderClient(report),
    ...renderGeneral(report),
    ...renderEventLoop(report),
    ...report.servers.flatMap(renderServer),
  ].join('\n');
}

function renderHead({ version, uptimeSeconds, tools }: StatusReport): string {
  return `Trunkline ${version}, up ${duration(uptimeSeconds)}, ${plural(tools, 'tool')}.`;
}

/** What the client itself has said: in each request, or once in `initialize`. */
function renderClient({ clientRevision }: StatusReport): string[] {
  if (clientRevision === null) return [];
  const era = isModernRevision(clientRevision) ? 'modern' : 'legacy';
  return [`This client speaks revision ${clientRevision} (${era} era).`];
}

function countServers(servers: readonly ServerReport[]): string {
  if (servers.length === 0) return 'No server is configured';
  const all = plural(servers.length, 'server');
  const [troubled, others] = splitByProblem(servers);
  const up = others.filter(({ state }) => state === 'ready').length;
  const starting = others.filter(({ state }) => state === 'starting' || state === 'installing').length;
  const counts: [number, string][] = [
    [troubled.length, 'with a problem'],
    [starting, 'starting'],
    [others.length - starting - up, 'not running'],
    [up, 'up'],
  ];
  const told = counts.filter(([count]) => count > 0);
  return up === servers.length ? `${all}, all up` : `${all}: ${told.map((each) => each.join(' ')).join(', ')}`;
}

/** What concerns Trunkline as a whole and is not as it should be. */
function renderGeneral(report: StatusReport): string[] {
  const { waitingCalls, partialFrameBytes, requestBodyBytes } = report.limits;
  const lines = [...renderService(report), ...renderView(report), ...renderConfig(report)];
  if (waitingCalls.refused > 0) {
    lines.push(
      `Calls refused: ${waitingCalls.refused}, because ${waitingCalls.max} calls were waiting already (limit \`gateway.maxQueued\`).`,
    );
  }
  if (partialFrameBytes.refused > 0) {
    lines.push(
      `Unfinished messages dropped: ${partialFrameBytes.refused}, the largest first, because all unfinished messages together reached ${partialFrameBytes.max} bytes (limit \`gateway.maxPartial\`).`,
    );
  }
  if (requestBodyBytes.refused > 0) {
    lines.push(
      `Request bodies refused: ${requestBodyBytes.refused}, the largest of the client that held the most first, because all incomplete bodies together reached ${requestBodyBytes.max} bytes (limit \`gateway.http.maxPartial\`).`,
    );
  }
  lines.push(...report.refusedNames.map(renderRefusedName), ...renderHolds(report));
  if (report.internalErrorCount > 0)
    lines.push(
      `Internal errors in Trunkline: ${report.internalErrorCount}. Each failed one request; the log has the details.`,
    );
  return lines;
}

function renderRefusedName({ header, count, last, secondsAgo, advice }: RefusedNameReport): string {
  return `HTTP requests refused for their ${header}: ${count}, the last ${duration(secondsAgo)} ago with ${last}. ${advice}`;
}

/** The event loop, if it was held so long that people notice. */
function renderHolds({ eventLoop: { holds, longest } }: StatusReport): string[] {
  if (holds === 0 || longest === null) return [];
  const worst = `${longest.ms} ms, ${duration(longest.secondsAgo)} ago, by ${longest.work}`;
  return [
    `Trunkline was held up for more than 500 ms ${holds === 1 ? 'once' : `${holds} times`}; all servers and clients waited meanwhile. The longest was ${worst}.`,
  ];
}

/** How long the pieces of Trunkline's own work took, if one of them is worth a name. */
function renderEventLoop({ eventLoop: { p99Ms, longest } }: StatusReport): string[] {
  if (longest === null) return [];
  return [
    `Event loop: 99 % of the work took up to ${p99Ms} ms at a time; the longest ${longest.ms} ms (${longest.work}).`,
  ];
}

/** How the client is served, unless it asked for servers of its own. */
function renderService({ hub, aloneBecause }: StatusReport): string[] {
  if (aloneBecause !== null) return [`Not shared: this client has servers of its own, because ${aloneBecause}.`];
  if (hub === null) return [];
  return [`Served by the hub: pid ${hub.pid}, up ${duration(hub.uptimeSeconds)}, ${plural(hub.clients, 'client')}.`];
}

/** What part of the configuration the client sees. */
function renderView({ view, viewFault }: StatusReport): string[] {
  if (view === null) return [];
  return [viewFault ?? `View: ${view}. Servers and tools outside of it are not for this client.`];
}

function renderConfig({ configFault, configFaultSeconds, configInForce, configNeedsRestart }: StatusReport): string[] {
  const lines: string[] = [];
  if (configFault !== null) {
    lines.push(
      configInForce === 'previous'
        ? `The configuration file has been unusable for ${duration(configFaultSeconds ?? 0)}, so the previous configuration stays in force: ${configFault}`
        : `The configuration cannot be used, so no server runs: ${configFault}`,
    );
  }
  if (configNeedsRestart.length > 0) {
    lines.push(`Restart Trunkline to apply these changed settings: ${configNeedsRestart.join(', ')}.`);
  }
  return lines;
}

interface Group {
  readonly label: string;
  readonly includes: (server: ServerReport) => boolean;
}

/** Each server without a problem is in one of these groups. Those that clients cannot use yet come first. */
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
  { label: 'Not running', includes: ({ state }) => state === 'stopping' || state === 'stopped' },
  { label: 'Not running until a call needs them', includes: ({ state }) => state === 'idle' },
  { label: 'Up', includes: ({ state }) => state === 'ready' },
];

function renderGroup(label: string, servers: readonly ServerReport[]): string[] {
  if (servers.length === 0) return [];
  return [`${label}: ${servers.map((server, index) => describeMember(server, index === 0)).join(', ')}`];
}

/** A server and the number of its tools; the first of a group has the noun. */
function describeMember(server: ServerReport, isFirst: boolean): string {
  const { state, tools, installing } = server;
  const count = tools.exposed.length;
  const facts = [
    installing !== null && `${installing.package}, for ${duration(installing.forSeconds)}`,
    count > 0 && (isFirst ? plural(count, 'tool') : String(count)),
    // A server that is up and has no tools may have something else.
    count === 0 && state === 'ready' && describeOffer(server),
    tools.denied.length > 0 && `${tools.denied.length} denied`,
  ].filter(Boolean);
  return facts.length === 0 ? server.server : `${server.server} (${facts.join(', ')})`;
}

/** More names than this are counted. */
const MODERN_NAMES = 3;

/** The servers of the modern era, which most are not. */
function renderModern(servers: readonly ServerReport[]): string[] {
  const modern = servers.filter(({ era }) => era?.name === 'modern').map(({ server }) => server);
  if (modern.length === 0) return [];
  const more = modern.length > MODERN_NAMES ? ` and ${modern.length - MODERN_NAMES} more` : '';
  return [`Modern era: ${modern.slice(0, MODERN_NAMES).join(', ')}${more}`];
}

/** The servers whose tools nobody has looked at. */
function renderFirstUse(servers: readonly ServerReport[]): string[] {
  const first = servers.filter(({ approval }) => approval?.firstUse === true);
  if (first.length === 0) return [];
  const counts = first.map(({ server, approval }) => `${server} (${approval?.approved})`);
  return [`Tools that were approved automatically, because they were the first of the server: ${counts.join(', ')}`];
}
