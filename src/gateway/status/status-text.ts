import type { InstanceReport, ListReport, ServerReport, StatusReport } from './status-report.js';

/** The report as a person or a model reads it: one line a server, and below it only what is not as it should be. */
export function renderStatus(report: StatusReport): string {
  const ready = report.servers.filter(({ state }) => state === 'ready').length;
  const lines = [
    `Trunkline ${report.version}, up ${duration(report.uptimeSeconds)}: ${ready} of ${report.servers.length} servers ready, ${report.tools} tools.`,
  ];
  lines.push(...renderConfig(report));
  const { waitingCalls, partialFrameBytes } = report.limits;
  if (waitingCalls.refused > 0) {
    lines.push(`Calls refused because ${waitingCalls.max} waited already, of all servers: ${waitingCalls.refused}.`);
  }
  if (partialFrameBytes.refused > 0) {
    lines.push(
      `Messages dropped because ${partialFrameBytes.max} bytes of incomplete ones were held already: ${partialFrameBytes.refused}.`,
    );
  }
  if (report.internalErrorCount > 0)
    lines.push(`Bugs of Trunkline that failed one request each: ${report.internalErrorCount}; its log tells more.`);
  if (report.advice !== '') lines.push(report.advice);
  for (const server of report.servers) lines.push(...renderServer(server));
  return lines.join('\n');
}

function renderConfig({ configFault, configFaultSeconds, configInForce, configNeedsRestart }: StatusReport): string[] {
  const lines: string[] = [];
  if (configFault !== null) {
    lines.push(
      configInForce === 'previous'
        ? `The configuration file cannot be used, for ${duration(configFaultSeconds ?? 0)} now; what it said before is in force: ${configFault}`
        : `The configuration cannot be used: ${configFault}`,
    );
  }
  if (configNeedsRestart.length > 0) {
    lines.push(`In force when Trunkline is started again: ${configNeedsRestart.join(', ')}.`);
  }
  return lines;
}

function renderServer(server: ServerReport): string[] {
  const facts = [
    server.state,
    `${server.tools.exposed.length} tools`,
    count(server.prompts, 'prompts'),
    count(server.resources, 'resources'),
    count(server.resourceTemplates, 'resource templates'),
    server.fromLastRun ? 'list from the last run' : '',
    server.pid === null ? '' : `pid ${server.pid}`,
    server.uptimeSeconds === null ? '' : `up ${duration(server.uptimeSeconds)}`,
    `generation ${server.generation}`,
    `restarts ${server.restarts}`,
    server.breaker === 'closed' ? '' : `breaker ${server.breaker}`,
    `in flight ${server.inFlight}`,
    `queued ${server.queued}`,
    `calls ${server.calls}`,
    `errors ${server.errors}`,
    `failures ${server.failures}`,
    server.latencyMs === null ? '' : `p50 ${server.latencyMs.p50} ms, p95 ${server.latencyMs.p95} ms`,
  ];
  const lines = [`- ${server.server}: ${facts.filter(Boolean).join(' · ')}`];
  const add = (label: string, text: string) => lines.push(`    ${label}: ${text}`);

  const isWell = server.state === 'idle' || (server.state === 'ready' && server.breaker === 'closed');
  if (server.installing !== null)
    add('installing', `${server.installing.package}, for ${duration(server.installing.forSeconds)} so far`);
  if (server.retryInSeconds !== null) add('next try', `in ${server.retryInSeconds} s`);
  const isToldByExit = server.lastFailure === 'exited';
  if (server.lastFailure !== null && !isToldByExit && !isWell) add('last failure', server.lastFailure);
  if (server.instances.length > 1) add('processes', server.instances.map(describeInstance).join('; '));
  if (server.lastExit !== null) add('last exit', describeExit(server.lastExit));
  for (const list of [server.tools, server.prompts, server.resources, server.resourceTemplates]) {
    for (const { name, reason } of list.quarantined) add('quarantined', `${name} (${reason})`);
    if (list.truncated !== null) add('list cut short', list.truncated);
    if (list.hiding.length > 0) add('hide characters in their description', list.hiding.join(', '));
  }
  if (server.approval?.firstUse === true) {
    add(
      'approval',
      `the ${server.approval.approved} tools that it offered first were approved, as they were the first`,
    );
  }
  if (server.approval !== null && server.approval.fault !== null) add('approval', server.approval.fault);
  if (server.tools.denied.length > 0) add('denied by configuration', server.tools.denied.join(', '));
  const dropped = Object.entries(server.dropped).filter(([, count]) => count > 0);
  if (dropped.length > 0) add('dropped', dropped.map(([kind, count]) => `${kind} ${count}`).join(', '));
  const reasons = Object.entries(server.failureReasons);
  if (reasons.length > 0) add('failures', reasons.map(([reason, count]) => `${reason} ${count}`).join(', '));
  if (server.droppedLogLines > 0) add('log lines dropped', `${server.droppedLogLines}, more than 1000 in a second`);
  if (!isWell) for (const line of server.log) add('log', line);
  if (server.advice !== '') add('what to do', server.advice);
  return lines;
}

function describeInstance({ id, state, pid, clients, isYours }: InstanceReport): string {
  const who = `${clients} ${clients === 1 ? 'client' : 'clients'}${isYours ? ', you among them' : ''}`;
  return `${id} ${state}${pid === null ? '' : ` (pid ${pid})`}, ${who}`;
}

function describeExit({ code, signal, secondsAgo }: NonNullable<ServerReport['lastExit']>): string {
  const how = signal === null ? `code ${code}` : `signal ${signal}`;
  return `${how}, ${duration(secondsAgo)} ago`;
}

function count({ exposed }: ListReport, what: string): string {
  return exposed.length === 0 ? '' : `${exposed.length} ${what}`;
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
