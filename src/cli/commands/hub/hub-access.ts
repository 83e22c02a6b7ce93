import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import type { GlobalOptions } from '../../../app/global-options.js';
import { ConfigLocation } from '../../../config/file/find-config.js';
import { errorMessage } from '../../../errors/error-text.js';
import { EXIT, UsageError } from '../../../errors/usage-error.js';
import type { ProcessReport, StatusReport } from '../../../gateway/status/status.js';
import { describeSharing, duration, plural } from '../../../gateway/status/status-text.js';
import type { ViewTools } from '../../../gateway/status/tool-report.js';
import { folderOfHub, helloOf, isHubWanted } from '../../../hub/attach/attach.js';
import { type HubControl, type NoControl, openControl } from '../../../hub/attach/control-client.js';
import { attachTo, type HubConnection, whyRefused } from '../../../hub/attach/find-hub.js';
import type { ClientDescription, HubDescription } from '../../../hub/control.js';
import { hubFiles, hubLog, hubNumbers, latestHub } from '../../../hub/hub-folder.js';
import { FrameReader } from '../../../hub/wire.js';
import { describeBytes, printable } from '../../../json/printable.js';
import { RPC_CODES, RpcError } from '../../../jsonrpc/message.js';
import { createScan } from '../../../mcp/envelope.js';
import { VERSION } from '../../../version.js';
import { type ClientConnection, LocalClient, type ToldProfile } from '../../local-client.js';
import { tell } from '../../output.js';
import { type Cell, type Look, PLAIN, stateCell, table } from '../../terminal.js';

/** The running hub, for a command. */
interface Reached {
  readonly site: HubSite;
  readonly control: HubControl;
}

/** Runs a command on the running hub and returns the exit code. Prints a message if the hub cannot be reached. */
export async function withHub(options: GlobalOptions, work: (reached: Reached) => Promise<number>): Promise<number> {
  const site = findHubSite(options);
  const control = await reachHub(site.folder);
  if (typeof control === 'string') {
    if (control === 'not running') tell(noHubText(site.configFile, isHubOn(site.configFile)));
    else tell(control === 'silent' ? silentText(notedPid(site.folder)) : REFUSED);
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

/** Whether the hub is on. True if the file cannot be read, because the client's hub then reports the fault. */
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
      // Most of the earlier hubs have ended.
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

/** Asks a hub to describe itself. */
export async function describeHub(control: HubControl, withUsage = false): Promise<HubDescription> {
  return (await control.request('describe', { withUsage })) as HubDescription;
}

/** Connects a command to the running hub, if there is one. Reports a refusal of the hub on stderr. */
export async function runningHub(settings: GlobalOptions): Promise<HubClientForCommand | undefined> {
  const opened = await openHubClient(settings);
  if (typeof opened !== 'string') return opened;
  tell(`trunkline: the running hub cannot be used, because ${opened}; this command starts servers of its own`);
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

/** Text of `trunkline ps`. */
export function processText({ hub, draining }: HubFacts, look: Look = PLAIN): string {
  const hubs = [hub, ...draining];
  const hubRows = hubs.map((each) => {
    const about = each === hub ? each.configFile : 'an earlier hub, which still serves clients';
    return [String(each.pid), each.version, duration(each.uptimeSeconds), about];
  });
  const clientRows = hubs.flatMap(({ clients }) => clients.map(clientRow));
  const serverRows = hubs.flatMap(({ servers }) => servers.map((server) => serverRow(server, look)));
  const sections: Cell[][][] = [
    [['HUB', 'VERSION', 'UP', 'CONFIGURATION'], ...hubRows],
    [['CLIENT', 'VERSION', 'PID', 'REVISION', 'ATTACHED FOR', 'IN FLIGHT'], ...clientRows],
    [
      ['SERVER', 'STATE', 'PID', 'REVISION', 'MEMORY', 'CPU', 'PROCESSES', 'CALLS', 'CLIENTS', 'SHARING'],
      ...serverRows,
    ],
  ];
  const advice = hubs.flatMap(({ advice = [] }) => advice);
  return [...sections.map((rows) => table(rows, look)), ...advice.map(printable)].join('\n\n');
}

function clientRow({ name, version, pid, revision, uptimeSeconds, inFlight }: ClientDescription): string[] {
  const told = [name ?? '(has not introduced itself)', version ?? UNKNOWN].map(printable);
  return [...told, String(pid), revision ?? UNKNOWN, duration(uptimeSeconds), String(inFlight)];
}

function serverRow(server: ProcessReport, look: Look): Cell[] {
  const { id, state, pid, revision, memoryBytes, cpuPercent, processes, calls, clients, sharing } = server;
  const memory = memoryBytes === null ? UNKNOWN : describeBytes(memoryBytes);
  const cpu = cpuPercent === null ? UNKNOWN : `${cpuPercent} %`;
  const numbers = [String(processes ?? UNKNOWN), String(calls), String(clients)];
  const shared = sharing ? describeSharing(sharing) : UNKNOWN;
  return [id, stateCell(state, look), String(pid ?? UNKNOWN), revision ?? UNKNOWN, memory, cpu, ...numbers, shared];
}

const UNKNOWN = '-';

/** Returns the message that no hub runs, and why this is normal. `isHubOn` is whether clients start one. */
export function noHubText(configFile: string, isHubOn: boolean): string {
  return `No hub runs for ${configFile}${isHubOn ? '.' : ':'} ${howToStart(isHubOn, 'each client')}`;
}

/** Returns sentences about the start of a hub. `each` begins the one about clients without a hub. */
export function howToStart(isHubOn: boolean, each = 'Each client'): string {
  if (isHubOn) return 'The next client that connects starts one; `trunkline check` starts the servers once without it.';
  return `${each} starts servers of its own, because the hub is off there; \`gateway: { hub: auto }\` in the file turns it on. Ask your client to call \`trunkline__status\`; \`trunkline check\` starts the servers once.`;
}

/** Returns the message about a hub that runs but does not answer. */
export function silentText(pid: number | undefined): string {
  const which = pid === undefined ? 'The hub' : `The hub (pid ${pid})`;
  const resume = pid === undefined ? 'resume its process' : `\`kill -CONT ${pid}\` resumes it`;
  return `${which} does not answer. If it was suspended, ${resume}; \`trunkline hub stop\` ends it and its servers.`;
}

export const REFUSED =
  'The hub does not take commands of this version of Trunkline. `trunkline hub stop` of the other version ends it.';

/** A client of the running hub, for one command. */
export interface HubClientForCommand {
  readonly client: LocalClient;
  /** Asks the hub for the reports of its servers. */
  report(): Promise<StatusReport>;
  /** Asks the hub for the tools that each view shows and hides. */
  views(): Promise<readonly ViewTools[]>;
  close(): void;
}

/**
 * Connects a command to the hub of its configuration as a client. Starts none, and returns `undefined` if none runs. If the
 * hub refuses the client, returns the reason as a sentence without a period.
 */
export async function openHubClient(options: GlobalOptions): Promise<HubClientForCommand | string | undefined> {
  if (process.env.TRUNKLINE_HUB === 'off') return undefined;
  const { configFile, folder } = findHubSite(options);
  const control = await reachHub(folder);
  if (control === 'not running') return undefined;
  if (control === 'silent') return 'it does not answer';
  if (control === 'refused') return 'it does not take commands of this version';
  try {
    const hello = helloOf(configFile, 0, options.view ?? '');
    // Servers are shared by clients with equal profiles. A profile of its own would start processes for this command.
    const [profile] = (await control.request('profiles')) as readonly ToldProfile[];
    const attempt = await attachTo(folder, control.number, hello);
    if (attempt.kind !== 'attached') {
      control.close();
      return whyRefused(attempt.kind === 'refused' ? attempt.because : 'ending');
    }
    const { connection } = attempt;
    const client = await LocalClient.connect(createScan(isUtf8), (...on) => overFrames(connection, ...on), profile);
    const report = async () => (await control.request('report')) as StatusReport;
    const views = async () => ((await control.request('tools')) as { readonly views: readonly ViewTools[] }).views;
    const close = () => {
      client.close();
      control.close();
    };
    return { client, report, views, close };
  } catch (error) {
    control.close();
    if (error instanceof RpcError || !(error instanceof Error)) throw error;
    return error.message;
  }
}

const NEWLINE = 0x0a;
const LOST = 'The hub ended before it answered. Whether the call took effect is unknown: check before repeating it';

/** Sends lines to the hub, and takes the messages out of its frames. */
function overFrames(
  { socket, readInto }: HubConnection,
  receive: (message: Uint8Array) => void,
  fail: (error: Error) => void,
): ClientConnection {
  let pieces: Uint8Array[] = [];
  const frames = new FrameReader({
    write: (bytes) => {
      let start = 0;
      for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
        const line = Buffer.concat([...pieces, bytes.subarray(start, end)]);
        pieces = [];
        start = end + 1;
        if (line.length > 0) receive(line);
      }
      // A copy, because `frames` reads the next bytes into the same memory. `slice` of a `Buffer` would not copy.
      if (start < bytes.length) pieces.push(Buffer.from(bytes.subarray(start)));
    },
    message: () => false,
    // A command makes only a few requests, so it does not move to the successor of its hub.
    control: () => {},
  });
  const lost = () => fail(new RpcError(RPC_CODES.internalError, LOST));
  socket.once('end', lost);
  socket.once('close', lost);
  socket.on('error', () => {});
  readInto(frames);
  return {
    send: (message) => {
      socket.write(message);
      socket.write('\n');
    },
    close: () => socket.destroy(),
  };
}

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
export async function reachHub(folder: string, number?: number): Promise<HubControl | NoControl> {
  return await openControl(folder, VERSION, number);
}

/** Returns the pid that the hub with this number, or the latest hub, has written to its folder. */
export function notedPid(folder: string, number = latestHub(folder)): number | undefined {
  try {
    return Number(readFileSync(hubFiles(folder, number).pid, 'latin1')) || undefined;
  } catch {
    return undefined;
  }
}
