import type { GlobalOptions } from '../../../app/global-options.js';
import { EXIT } from '../../../errors/usage-error.js';
import type { ProcessReport } from '../../../gateway/status/status.js';
import { duration, plural } from '../../../gateway/status/status-text.js';
import { isHubWanted } from '../../../hub/attach/attach.js';
import type { HubControl, NoControl } from '../../../hub/attach/control-client.js';
import type { ClientDescription, HubDescription } from '../../../hub/control.js';
import { hubNumbers, latestHub } from '../../../hub/hub-folder.js';
import { describeBytes, printable } from '../../../json/printable.js';
import {
  findHubSite,
  type HubClientForCommand,
  type HubSite,
  notedPid,
  openHubClient,
  reachHub,
} from '../../hub-client.js';
import { tell } from '../../output.js';
import { type Cell, type Look, PLAIN, stateCell, table } from '../../terminal.js';

/** The running hub, for a command. */
interface Reached {
  readonly site: HubSite;
  readonly control: HubControl;
}

/** Runs a command on the running hub and returns the exit code. Says so if no hub runs, or if it cannot be reached. */
export async function withHub(options: GlobalOptions, work: (reached: Reached) => Promise<number>): Promise<number> {
  const site = findHubSite(options);
  const control = await reachHub(site.folder);
  if (typeof control === 'string') {
    tell(explain(control, site));
    return control === 'not running' ? EXIT.noHub : EXIT.failed;
  }
  try {
    return await work({ site, control });
  } catch (error) {
    // The hub refuses the command in a sentence, or has ended.
    if (!(error instanceof Error)) throw error;
    tell(`trunkline: ${error.message}`);
    return EXIT.failed;
  } finally {
    control.close();
  }
}

/** Says why no hub can be reached. */
function explain(because: NoControl, { configFile, folder }: HubSite): string {
  switch (because) {
    case 'not running':
      return noHubText(configFile, isHubOn(configFile));
    case 'silent':
      return silentText(notedPid(folder));
    case 'refused':
      return REFUSED;
  }
}

/** A file that cannot be read keeps no client from starting a hub, which says what is wrong with it. */
export function isHubOn(configFile: string): boolean {
  try {
    return isHubWanted(configFile);
  } catch {
    return true;
  }
}

/** Describes the hub and the earlier hubs that still drain. `withUsage` adds memory and CPU of their processes. */
export async function describeHubs({ site, control }: Reached, withUsage: boolean): Promise<HubFacts> {
  const latest = latestHub(site.folder);
  const [hub, ...draining] = await Promise.all([
    describeHub(control, withUsage),
    ...hubNumbers(site.folder).map(async (number) => {
      // Most of the hubs before the one that clients find have ended.
      if (number === latest) return undefined;
      const earlier = await reachHub(site.folder, number);
      if (typeof earlier === 'string') return undefined;
      // It may end meanwhile, with its last client.
      const description = await describeHub(earlier, withUsage).catch(() => undefined);
      earlier.close();
      return description;
    }),
  ]);
  return { hub: hub as HubDescription, draining: draining.flatMap((each) => each ?? []) };
}

async function describeHub(control: HubControl, withUsage: boolean): Promise<HubDescription> {
  return (await control.request('describe', { withUsage })) as HubDescription;
}

/** Connects a command to the running hub. `undefined` if no hub runs, or if it refuses, which is reported on stderr. */
export async function runningHub(settings: GlobalOptions): Promise<HubClientForCommand | undefined> {
  const opened = await openHubClient(settings);
  if (opened.kind === 'opened') return opened.hub;
  if (opened.kind === 'refused')
    tell(
      `trunkline: the running hub cannot be used, because ${opened.because}; this command starts servers of its own`,
    );
  return undefined;
}

export interface HubFacts {
  readonly hub: HubDescription;
  /** Earlier hubs whose clients have not moved yet. */
  readonly draining: readonly HubDescription[];
}

/** Text of `trunkline hub status`. `version` is the version of this program. */
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
