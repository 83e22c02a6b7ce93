import type { InstanceReport, ListReport, ServerReport, StatusReport } from './status-report.js';

/** Renders the report for people and models: one line per server, and below it only what needs attention. */
export function renderStatus(report: StatusReport): string {
  const ready = report.servers.filter(({ state }) => state === 'ready').length;
  const lines = [
    `Trunkline ${report.version}, up ${duration(report.uptimeSeconds)}: ${ready} of ${plural(report.servers.length, 'server')} ready, ${plural(report.tools, 'tool')}.`,
  ];
  lines.push(...renderConfig(report));
  const { waitingCalls, partialFrameBytes } = report.limits;
  if (waitingCalls.refused > 0) {
    lines.push(
      `Calls refused: ${waitingCalls.refused}, because ${waitingCalls.max} calls were waiting already (limit \`gateway.maxQueued\`).`,
    );
  }
  if (partialFrameBytes.refused > 0) {
    lines.push(
      `Messages dropped: ${partialFrameBytes.refused}, because incomplete messages took up ${partialFrameBytes.max} bytes already (limit \`gateway.maxPartial\`).`,
    );
  }
  if (report.internalErrorCount > 0)
    lines.push(
      `Internal errors in Trunkline: ${report.internalErrorCount}. Each failed one request; the log has the details.`,
    );
  if (report.advice !== '') lines.push(report.advice);
  for (const server of report.servers) lines.push(...renderServer(server));
  return lines.join('\n');
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

function renderServer(server: ServerReport): string[] {
  const facts = [
    server.state,
    plural(server.tools.exposed.length, 'tool'),
    count(server.prompts, 'prompt'),
    count(server.resources, 'resource'),
    count(server.resourceTemplates, 'resource template'),
    server.fromLastRun ? 'cached lists' : '',
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

  const isHealthy = server.state === 'idle' || (server.state === 'ready' && server.breaker === 'closed');
  if (server.installing !== null)
    add('installing', `${server.installing.package} (for ${duration(server.installing.forSeconds)})`);
  if (server.retryInSeconds !== null) add('next start', `in ${server.retryInSeconds} s`);
  // The line "last exit" says more than the failure "exited".
  const hasOtherFailure = server.lastFailure !== null && server.lastFailure !== 'exited';
  if (hasOtherFailure && !isHealthy) add('last failure', server.lastFailure);
  if (server.instances.length > 1) add('processes', server.instances.map(describeInstance).join('; '));
  if (server.lastExit !== null) add('last exit', describeExit(server.lastExit));
  for (const list of [server.tools, server.prompts, server.resources, server.resourceTemplates]) {
    for (const { name, reason } of list.quarantined) add('quarantined', `${name} (${reason})`);
    if (list.truncated !== null) add('list cut short', list.truncated);
    if (list.hiding.length > 0) add('invisible characters in the description', list.hiding.join(', '));
  }
  if (server.approval?.firstUse === true) {
    add(
      'approval',
      `its first ${plural(server.approval.approved, 'tool')} ${server.approval.approved === 1 ? 'was' : 'were'} approved automatically`,
    );
  }
  if (server.approval !== null && server.approval.fault !== null) add('approval', server.approval.fault);
  if (server.tools.denied.length > 0) add('denied by configuration', server.tools.denied.join(', '));
  const dropped = Object.entries(server.dropped).filter(([, count]) => count > 0);
  if (dropped.length > 0) add('dropped', dropped.map(([kind, count]) => `${kind} ${count}`).join(', '));
  const reasons = Object.entries(server.failureReasons);
  if (reasons.length > 0) add('failures', reasons.map(([reason, count]) => `${reason} ${count}`).join(', '));
  if (server.droppedLogLines > 0) add('log lines dropped', `${server.droppedLogLines} (more than 1000 in one second)`);
  if (!isHealthy) {
    for (const line of server.cause) add('cause', line);
    for (const line of server.log) add('log', line);
  }
  if (server.advice !== '') add('what to do', server.advice);
  return lines;
}

function describeInstance({ id, state, pid, clients, isYours }: InstanceReport): string {
  const users = `${plural(clients, 'client')}${isYours ? ', including you' : ''}`;
  return `${id} ${state}${pid === null ? '' : ` (pid ${pid})`}, ${users}`;
}

function describeExit({ code, signal, secondsAgo }: NonNullable<ServerReport['lastExit']>): string {
  const how = signal === null ? `code ${code}` : `signal ${signal}`;
  return `${how}, ${duration(secondsAgo)} ago`;
}

function count({ exposed }: ListReport, noun: string): string {
  return exposed.length === 0 ? '' : plural(exposed.length, noun);
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
