import type { ListReport, ServerReport, StatusReport } from './status.js';

/** People notice a longer delay of the event loop, in milliseconds: the calls of all servers and clients wait meanwhile. */
export const HELD_MS = 500;

/**
 * Structured content of `trunkline__status` for all servers: what differs from a healthy gateway with healthy servers. A
 * member that is absent has the value that it has when all is well, or is told only in the report about one server.
 * Lists have the numbers of entries that are not listed, or that hide characters; the report about one server names them.
 */
export function overviewOf(report: StatusReport) {
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

function overviewOfServer(report: ServerReport) {
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

function overviewOfList({ quarantined, denied, hiding, truncated, failure }: ListReport) {
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
