import type { ProcessReport } from '../../../gateway/status/status.js';
import { duration, plural } from '../../../gateway/status/status-text.js';
import type { ClientDescription, HubDescription } from '../../../hub/hub-answers.js';
import { describeBytes } from '../../../json/describe-bytes.js';
import { printable } from '../../../json/printable.js';
import { type Cell, table } from '../../table.js';
import { type Look, PLAIN, stateCell } from '../../terminal.js';

export interface HubFacts {
  readonly hub: HubDescription;
  /** Earlier hubs whose clients have not moved yet. */
  readonly draining: readonly HubDescription[];
}

/** Text of `trunkline hub status`. `version` is that of this command. */
export function hubText({ hub, draining }: HubFacts, version: string): string {
  const lines = [
    `The hub of ${hub.configFile} runs.`,
    `  pid      ${hub.pid}, up ${duration(hub.uptimeSeconds)}`,
    `  version  ${hub.version}, number ${hub.number}`,
    `  clients  ${hub.clients.length}`,
    `  servers  ${hub.hasStarted ? new Set(hub.servers.map(({ server }) => server)).size : NOT_STARTED}`,
    `  log      ${hub.logFile}`,
    ...draining.map(
      (earlier) =>
        `An earlier hub (pid ${earlier.pid}, version ${earlier.version}, number ${earlier.number}) still serves ${plural(earlier.clients.length, 'client')}, until nothing of theirs is in flight.`,
    ),
  ];
  if (hub.version !== version)
    lines.push(`This command has version ${version}. \`trunkline hub restart\` starts a hub of this version.`);
  return lines.join('\n');
}

const NOT_STARTED = 'none yet: the hub waits for its first client';

/** Text of `trunkline ps`. */
export function processText({ hub, draining }: HubFacts, look: Look = PLAIN): string {
  const hubs = [hub, ...draining];
  const sections: Cell[][][] = [
    [
      ['HUB', 'VERSION', 'UP', 'CONFIGURATION'],
      ...hubs.map((each) => [
        String(each.pid),
        each.version,
        duration(each.uptimeSeconds),
        each === hub ? each.configFile : 'an earlier hub, which still serves clients',
      ]),
    ],
    [
      ['CLIENT', 'VERSION', 'PID', 'REVISION', 'ATTACHED FOR', 'IN FLIGHT'],
      ...hubs.flatMap(({ clients }) => clients.map(clientRow)),
    ],
    [
      ['SERVER', 'STATE', 'PID', 'REVISION', 'MEMORY', 'CPU', 'PROCESSES', 'CALLS', 'CLIENTS'],
      ...hubs.flatMap(({ servers }) => servers.map((server) => serverRow(server, look))),
    ],
  ];
  return sections.map((rows) => table(rows, look)).join('\n\n');
}

function clientRow({ name, version, pid, revision, uptimeSeconds, inFlight }: ClientDescription): string[] {
  const told = [name ?? '(has not introduced itself)', version ?? UNKNOWN].map(printable);
  return [...told, String(pid), revision ?? UNKNOWN, duration(uptimeSeconds), String(inFlight)];
}

function serverRow(server: ProcessReport, look: Look): Cell[] {
  const { id, state, pid, revision, memoryBytes, cpuPercent, processes, calls, clients } = server;
  return [
    id,
    stateCell(state, look),
    orUnknown(pid),
    revision ?? UNKNOWN,
    memoryBytes === null ? UNKNOWN : describeBytes(memoryBytes),
    cpuPercent === null ? UNKNOWN : `${cpuPercent} %`,
    orUnknown(processes),
    String(calls),
    String(clients),
  ];
}

const UNKNOWN = '-';

function orUnknown(value: number | null): string {
  return value === null ? UNKNOWN : String(value);
}

/** The message when no hub runs, with the reason why that is no fault. `isHubOn`: whether clients look for one. */
export function noHubText(configFile: string, isHubOn: boolean): string {
  if (isHubOn)
    return `No hub runs for ${configFile}. The next client that connects starts one; \`trunkline check\` starts the servers once without it.`;
  return `No hub runs for ${configFile}: each client starts servers of its own, because the file does not have \`gateway: { hub: auto }\`. Ask your client to call \`trunkline__status\`; \`trunkline check\` starts the servers once.`;
}

/** The message about a hub whose process runs and does not answer. */
export function silentText(pid: number | undefined): string {
  const which = pid === undefined ? 'The hub' : `The hub (pid ${pid})`;
  const resume = pid === undefined ? 'resume its process' : `\`kill -CONT ${pid}\` resumes it`;
  return `${which} does not answer. If it was suspended, ${resume}; \`trunkline hub stop\` ends it and its servers.`;
}

export const REFUSED =
  'The hub does not take commands of this version of Trunkline. `trunkline hub stop` of the other version ends it.';
