import type { GlobalOptions } from '../../../app/global-options.js';
import type { ConfigError } from '../../../config/file/config-error.js';
import { ConfigLocation } from '../../../config/file/find-config.js';
import { errorMessage } from '../../../host/errors/error-text.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { folderOfHub, isHubWanted } from '../../../hub/attach/attach.js';
import { type HubControl, type NoControl, openControl } from '../../../hub/attach/control-client.js';
import type { ClientDescription, GatewayKind, HubDescription } from '../../../hub/control.js';
import { hubLog, hubNumbers, inspectHubFolder } from '../../../hub/hub-folder.js';
import { userDataFolder, userHubsFolder } from '../../../state/user-files.js';
import type { ProcessReport, StatusReport } from '../../../status/status.js';
import { describeSharing, duration } from '../../../status/status-text.js';
import { VERSION } from '../../../version.js';
import { capitalized, describeBytes, plural, printable } from '../../../wire/json/printable.js';
import { note, tell } from '../../output.js';
import { type Cell, type Look, PLAIN, stateCell, table } from '../../terminal.js';
import {
  choiceText,
  chooseGateway,
  configurationOf,
  configurationText,
  findRunning,
  type GatewayChoice,
  gatewayTable,
  howToEnd,
  nameOf,
  type RunningGateway,
} from './running.js';

export interface OpenGateway {
  readonly gateway: RunningGateway;
  readonly control: HubControl;
  /** Whether it has started its servers. A hub waits for its first client. */
  readonly hasStarted: boolean;
  /** Asks for the report about all servers, or about one with more log lines. */
  report(params?: { readonly server?: string; readonly withUsage?: boolean }): Promise<StatusReport>;
}

/** The reason why a command has no gateway, as sentences, and its exit code. */
interface NoGateway {
  readonly kind: NoControl;
  readonly because: string;
  readonly code: number;
}

/**
 * Finds the gateway that a command is about, and connects to it. `says` is when to tell the user which gateway that is: if the
 * configuration has several (`if alike`), or unless a hub is the only gateway (`if several`). With `only`, refuses a gateway that is no
 * hub, because it does not know the command.
 */
export async function openGateway(
  settings: GlobalOptions,
  { says, only }: { readonly says?: 'if alike' | 'if several'; readonly only?: 'hub' } = {},
): Promise<OpenGateway | NoGateway> {
  const { choice, configuration } = await findGateway(settings);
  const { chosen } = choice;
  if (chosen === undefined) return absence(choice, configuration);
  if (only === 'hub' && chosen.kind !== 'hub') {
    const which = `${capitalized(nameOf(chosen))} serves ${configurationText(chosen)}, without a hub.`;
    const because = `${which} \`trunkline status\` shows it, and ${howToEnd(chosen)}.`;
    return { kind: 'not running', because, code: EXIT.noHub };
  }
  const text =
    says === undefined || (says === 'if alike' && choice.alike.length === 0) ? undefined : choiceText(choice);
  if (text !== undefined) note(text);
  return await connectTo(chosen);
}

export async function connectTo(gateway: RunningGateway): Promise<OpenGateway | NoGateway> {
  const { folder, name, answer, pid, kind } = gateway;
  const control = typeof answer === 'string' ? answer : await openControl(folder, VERSION, name);
  if (typeof control === 'string') {
    const because = control === 'refused' ? REFUSED : silentText(pid, kind);
    return { kind: control, because, code: EXIT.failed };
  }
  return {
    gateway,
    control,
    hasStarted: typeof answer !== 'string' && answer.hasStarted,
    report: async (params = {}) => (await control.request('report', { ...params })) as StatusReport,
  };
}

/**
 * Runs a command on the gateway that it is about, and returns the exit code. Tells the user which gateway that is, unless a hub is the only
 * one, or `only` is set. Prints a message if none runs or if it cannot be reached.
 */
export async function withGateway(
  settings: GlobalOptions,
  work: (open: OpenGateway) => Promise<number>,
  only?: 'hub',
): Promise<number> {
  const open = await openGateway(settings, only === undefined ? { says: 'if several' } : { only });
  if ('because' in open) {
    tell(open.because);
    return open.code;
  }
  try {
    return await work(open);
  } catch (error) {
    // The gateway refuses the command in a sentence, or has ended.
    if (!(error instanceof Error)) throw error;
    tell(`trunkline: ${error.message}`);
    return EXIT.failed;
  } finally {
    open.control.close();
  }
}

/** Finds the gateway that a command is about. Throws a `UsageError` if `--gateway` names none that runs. */
export async function findGateway(settings: GlobalOptions) {
  const configuration = configurationOf(settings);
  const { file } = configuration;
  const place = { dataFolder: userDataFolder(), hubsFolder: userHubsFolder() };
  const folder = file === undefined ? undefined : inspectHubFolder({ configFile: file, ...place }).folder;
  const running = await findRunning({ file, folder });
  return { configuration, running, choice: chooseGateway(running, { named: settings.gateway, file, folder }) };
}

/** Says that no gateway of the configuration runs, and which others run. */
function absence(
  { others }: GatewayChoice,
  { file = '', fault }: { readonly file: string | undefined; readonly fault?: ConfigError },
): NoGateway {
  const none = fault?.report ?? noGatewayText(file, isHubOn(file));
  const more = others.length > 0 && `Gateways of other configurations run. To name one, add:\n${gatewayTable(others)}`;
  const because = [none, more].filter(Boolean).join('\n');
  return { kind: 'not running', because, code: fault === undefined ? EXIT.noHub : EXIT.usage };
}

/** Says that the page of `trunkline web` is without a gateway, if it is. */
export async function tellWithoutGateway(settings: GlobalOptions): Promise<void> {
  const { choice, configuration } = await findGateway(settings);
  if (choice.chosen !== undefined) return;
  const { because } = absence({ ...choice, others: [] }, configuration);
  tell(`${because}\nThe page shows a gateway as soon as one runs, without a reload.`);
}

/** Whether the hub is on. True if the file cannot be read, because the client's hub then reports the fault. */
export function isHubOn(configFile: string): boolean {
  try {
    return isHubWanted(configFile);
  } catch {
    return true;
  }
}

/** Describes a gateway and, if it is a hub, the earlier hubs that still drain. `withUsage` adds memory and CPU of their processes. */
export async function describeHubs({ gateway, control }: OpenGateway, withUsage: boolean): Promise<RunningHubs> {
  const { kind, folder, name } = gateway;
  const earlier = kind === 'hub' ? hubNumbers(folder).filter((number) => number !== name) : [];
  const [hub, ...draining] = await Promise.all([
    describeHub(control, withUsage),
    ...earlier.map(async (number) => {
      // Most of the earlier hubs have ended.
      const earlier = await connectToHub(folder, number);
      if (typeof earlier === 'string') return undefined;
      // The earlier hub may end meanwhile, with its last client.
      const description = await describeHub(earlier, withUsage).catch(() => undefined);
      earlier.close();
      return description;
    }),
  ]);
  return { hub: hub as HubDescription, draining: draining.flatMap((each) => each ?? []) };
}

export async function describeHub(control: HubControl, withUsage = false): Promise<HubDescription> {
  return (await control.request('describe', { withUsage })) as HubDescription;
}

export interface RunningHubs {
  readonly hub: HubDescription;
  /** Earlier hubs whose clients have not moved yet. */
  readonly draining: readonly HubDescription[];
}

/** Text of `trunkline hub status`. `version` is the version of this program. */
export function hubText({ hub, draining }: RunningHubs, version: string): string {
  const lines = [
    `The hub of ${hub.configFile} runs.`,
    `  pid      ${hub.pid}, up ${duration(hub.uptimeSeconds)}`,
    `  version  ${hub.version}, number ${hub.number}`,
    `  clients  ${hub.clients.length}`,
    `  servers  ${hub.hasStarted ? new Set(hub.servers.map(({ server }) => server)).size : NOT_STARTED}`,
    `  log      ${hub.logFile}`,
    ...draining.map(({ pid, version, number, clients }) => {
      const which = `An earlier hub (pid ${pid}, version ${version}, number ${number})`;
      return `${which} still serves ${plural(clients.length, 'client')}, until they have no call in flight.`;
    }),
  ];
  if (hub.version !== version)
    lines.push(`This command has version ${version}. \`trunkline hub restart\` starts a hub of this version.`);
  return lines.join('\n');
}

const NOT_STARTED = 'none yet, because the hub waits for its first client';

const HEADS: Readonly<Record<GatewayKind, string>> = { hub: 'HUB', http: 'GATEWAY', stdio: 'GATEWAY' };

export function processText({ hub, draining }: RunningHubs, look: Look = PLAIN): string {
  const hubs = [hub, ...draining];
  const { kind = 'hub', url } = hub;
  const hubRows = hubs.map((each) => {
    const about = each === hub ? configurationText(each) : 'an earlier hub, which still serves clients';
    const address = url === undefined ? [] : [url];
    return [String(each.pid), each.version, duration(each.uptimeSeconds), ...address, about];
  });
  const hasUsers = hubs.some(({ clients }) => clients.some(({ user }) => user));
  const clientRows = hubs.flatMap(({ clients }) => clients.map((client) => clientRow(client, hasUsers)));
  const serverRows = hubs.flatMap(({ servers }) => servers.map((server) => serverRow(server, look)));
  const sections: Cell[][][] = [
    [[HEADS[kind], 'VERSION', 'UP', ...(url === undefined ? [] : ['URL']), 'CONFIGURATION'], ...hubRows],
    [
      ['CLIENT', 'VERSION', ...(hasUsers ? ['USER'] : []), 'PID', 'REVISION', 'ATTACHED FOR', 'IN FLIGHT'],
      ...clientRows,
    ],
    [
      ['SERVER', 'STATE', 'PID', 'REVISION', 'MEMORY', 'CPU', 'PROCESSES', 'CALLS', 'CLIENTS', 'SHARING'],
      ...serverRows,
    ],
  ];
  const advice = hubs.flatMap(({ advice = [] }) => advice);
  return [...sections.map((rows) => table(rows, look)), ...advice.map(printable)].join('\n\n');
}

function clientRow(
  { name, version, user, pid, revision, uptimeSeconds, inFlight }: ClientDescription,
  hasUsers: boolean,
): string[] {
  const own = hasUsers ? [user ?? UNKNOWN] : [];
  const told = [clientName(name), version ?? UNKNOWN, ...own].map(printable);
  return [...told, String(pid ?? UNKNOWN), revision ?? UNKNOWN, duration(uptimeSeconds), String(inFlight)];
}

function serverRow(server: ProcessReport, look: Look): Cell[] {
  const { id, state, pid, revision, memoryBytes, cpuPercent, processes, calls, clients, sharing } = server;
  const memory = memoryBytes === null ? UNKNOWN : describeBytes(memoryBytes);
  const cpu = cpuPercent === null ? UNKNOWN : `${cpuPercent} %`;
  const numbers = [String(processes ?? UNKNOWN), String(calls), String(clients)];
  const shared = sharing ? describeSharing(sharing) : UNKNOWN;
  return [id, stateCell(state, look), String(pid ?? UNKNOWN), revision ?? UNKNOWN, memory, cpu, ...numbers, shared];
}

export const UNKNOWN = '-';

export function clientName(name: string | null): string {
  return name ?? '(has not introduced itself)';
}

/** Returns the message that no gateway runs, and why this is normal. `isHubOn` is whether clients start one. */
export function noGatewayText(configFile: string, isHubOn: boolean): string {
  return `No gateway runs for ${configFile}. ${howToStart(isHubOn)}`;
}

/** Returns sentences about the start of a gateway. */
export function howToStart(isHubOn: boolean): string {
  if (isHubOn) return 'The next client that connects starts one; `trunkline check` starts the servers once without it.';
  return 'Each client starts servers of its own, because the hub is off there, and none runs now; `gateway: { hub: auto }` in the file makes clients share a hub. `trunkline check` starts the servers once.';
}

/** Returns the message about a gateway that runs but does not answer. `platform` is as in `process.platform`. */
export function silentText(
  pid: number | undefined,
  kind: GatewayKind = 'hub',
  platform: string = process.platform,
): string {
  const name = kind === 'hub' ? 'The hub' : 'The gateway';
  const which = pid === undefined ? name : `${name} (pid ${pid})`;
  const hasSignals = platform !== 'win32';
  const resume = pid === undefined || !hasSignals ? 'resume its process' : `\`kill -CONT ${pid}\` resumes it`;
  const kill = hasSignals ? `kill -KILL ${pid}` : `taskkill /F /PID ${pid}`;
  const end = kind === 'hub' ? '`trunkline hub stop` ends it and its servers' : `\`${kill}\` ends it`;
  return `${which} does not answer. If it was suspended, ${resume}; ${end}.`;
}

export const REFUSED =
  'The hub does not take commands of this version of Trunkline. `trunkline hub stop` of the other version ends it.';

/** The folder and log of the hub of a configuration, whether it runs or not. */
export interface HubSite {
  readonly configFile: string;
  readonly folder: string;
  /** The file of `--log-file`, or else the default log of a hub. */
  readonly logFile: string;
}

/** Finds the folder and log of the hub. Throws a `ConfigError` without a configuration, a `UsageError` without a folder. */
export function findHubSite(options: GlobalOptions): HubSite {
  const configFile = new ConfigLocation(options).file;
  try {
    const folder = folderOfHub(configFile);
    return { configFile, folder, logFile: options.logFile ?? hubLog(folder) };
  } catch (cause) {
    const hint = 'name a folder that only you can enter in the variable TRUNKLINE_HUB_DIR';
    throw new UsageError(`no hub can run: ${errorMessage(cause)}`, hint, { cause });
  }
}

/** Connects to the hub with this number, or to the latest hub. Starts none. */
export async function connectToHub(folder: string, number?: number): Promise<HubControl | NoControl> {
  return await openControl(folder, VERSION, number);
}
