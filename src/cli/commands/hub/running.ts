import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { GlobalOptions } from '../../../app/global-options.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { ConfigLocation } from '../../../config/file/find-config.js';
import { programName } from '../../../config/resolve/command-words.js';
import { UsageError } from '../../../host/errors/usage-error.js';
import { realPath } from '../../../host/files/whole-file.js';
import { type CommandLine, readCommandLines } from '../../../host/process/processes.js';
import { type NoControl, openControl } from '../../../hub/attach/control-client.js';
import type { GatewayKind, HubDescription } from '../../../hub/control.js';
import { allHubFolders, gatewayFolders, hubFiles, hubNumbers, latestHub } from '../../../hub/hub-folder.js';
import { isOurselves } from '../../../setup/clients/files/own-entry.js';
import { findGateways } from '../../../state/gateway-file.js';
import { userHubsFolder } from '../../../state/user-files.js';
import { VERSION } from '../../../version.js';
import { capitalized, plural } from '../../../wire/json/printable.js';
import { readServing } from '../serve/serve-options.js';

/** A gateway of this user that runs on this machine: a hub, or a process that serves HTTP or one client on stdin. */
export interface RunningGateway extends GatewayIdentity {
  /** `undefined` if it is not known. The file may not exist any more. */
  readonly configFile: string | undefined;
  /** Time of its start, in milliseconds since 1970; 0 for a hub, because only the latest hub of a folder takes clients. */
  readonly since: number;
  /** The folder that contains the folder of the gateway, and the name of the latter: for a hub, its number. */
  readonly folder: string;
  readonly name: number | string;
  /** Its own description, or the reason why it takes no commands. */
  readonly answer: HubDescription | Exclude<NoControl, 'not running'>;
}

interface GatewayIdentity {
  readonly kind: GatewayKind;
  /** `undefined` for a hub that does not answer and whose pid is not known. */
  readonly pid: number | undefined;
  /** The URL of a gateway that serves HTTP, without the path. */
  readonly url: string | undefined;
}

/**
 * Longest wait for a gateway that is no hub of the command's configuration. All are asked at once, so a suspended one delays a command by
 * this time. A gateway on a busy machine needs more than half a second.
 */
const LISTED_WITHIN_MS = 3_000;

/** The configuration that a command is about, and the folder of its hubs. */
interface Asked {
  readonly file: string | undefined;
  readonly folder: string | undefined;
}

/** Waits without a time limit for the hubs of the configuration that the command is about. */
export async function findRunning(asked?: Asked): Promise<readonly RunningGateway[]> {
  const hubs = allHubFolders(userHubsFolder()).flatMap((folder) =>
    hubNumbers(folder).map((number) => findHub(folder, number, folder === asked?.folder ? asked : undefined)),
  );
  const others = await findGateways(gatewayFolders(userHubsFolder()));
  const found = await Promise.all([
    ...hubs,
    ...others.map(async ({ kind, pid, configFile, url, since, folder: own }): Promise<RunningGateway[]> => {
      const folder = dirname(own);
      const name = basename(own);
      const answer = await soon(ask(folder, name));
      // The gateway has ended since `findGateways` read its file.
      if (answer === 'not running') return [];
      return [{ kind, pid, configFile: configFile || undefined, url: url ?? undefined, since, folder, name, answer }];
    }),
  ]);
  return await withConfigurations(found.flat());
}

async function findHub(folder: string, number: number, asked: Asked | undefined): Promise<RunningGateway[]> {
  const asking = ask(folder, number);
  const answer = await (asked === undefined ? soon(asking) : asking);
  if (answer === 'not running') return [];
  const about = { kind: 'hub', url: undefined, since: 0, folder, name: number, answer } as const;
  if (typeof answer === 'string') return [{ ...about, pid: notedPid(folder, number), configFile: asked?.file }];
  return [{ ...about, pid: answer.pid, configFile: answer.configFile || asked?.file }];
}

/** Returns the pid that the hub with this number, or the latest hub, has written to its folder. */
export function notedPid(folder: string, number = latestHub(folder)): number | undefined {
  try {
    return Number(readFileSync(hubFiles(folder, number).pid, 'latin1')) || undefined;
  } catch {
    return undefined;
  }
}

async function ask(folder: string, name: number | string): Promise<HubDescription | NoControl> {
  const control = await openControl(folder, VERSION, name);
  if (typeof control === 'string') return control;
  try {
    return (await control.request('describe')) as HubDescription;
  } catch {
    if (control.hasEnded) return 'not running';
    // The hub of another version does not describe itself.
    const { pid, version, number } = control;
    const unknown = { since: '', uptimeSeconds: 0, configFile: '', logFile: null, clients: [], servers: [] };
    return { ...unknown, pid, version, number, hasStarted: true, isDraining: false };
  } finally {
    control.close();
  }
}

async function soon(asking: Promise<HubDescription | NoControl>): Promise<HubDescription | NoControl> {
  return await Promise.race([asking, setTimeout(LISTED_WITHIN_MS, 'silent' as const, { ref: false })]);
}

/** Adds the configurations of hubs that do not answer, from their command lines. */
async function withConfigurations(found: readonly RunningGateway[]): Promise<readonly RunningGateway[]> {
  if (!found.some(({ configFile }) => configFile === undefined)) return found;
  const lines = (await readCommandLines().catch(() => undefined)) ?? [];
  return found.map((gateway) => {
    const { words = [] } = lines.find(({ pid }) => pid === gateway.pid) ?? {};
    const flag = words.indexOf('--config');
    return gateway.configFile === undefined && flag >= 0 ? { ...gateway, configFile: words[flag + 1] } : gateway;
  });
}

/** A process that passes messages between its client and a hub. */
export interface AttachProcess {
  readonly pid: number;
  /** The name that the client has given in its handshake; null if it is not known. */
  readonly client: string | null;
  /** The pid of its hub; null if none was found, as after `trunkline stop`. */
  readonly hub: number | null;
  /** Null if it is not known. */
  readonly configFile: string | null;
}

/** Every process of Trunkline that serves and belongs to this user. */
export interface OwnProcesses {
  readonly gateways: readonly RunningGateway[];
  readonly attached: readonly AttachProcess[];
}

/** Finds all processes of this user that serve. `program` is the path of the running program. */
export async function findOwnProcesses(program = process.argv[1] ?? ''): Promise<OwnProcesses> {
  const gateways = await findRunning();
  const known = new Set(gateways.flatMap(({ pid }) => pid ?? []));
  const attached = gateways.flatMap(({ kind, pid: hub = null, answer, configFile = null }) => {
    if (kind !== 'hub' || typeof answer === 'string') return [];
    return answer.clients.flatMap(({ pid, name }) => (pid === null ? [] : [{ pid, client: name, hub, configFile }]));
  });
  for (const { pid } of attached) known.add(pid);
  // A client whose hub was stopped keeps its process, which no hub knows.
  const lines = (await readCommandLines().catch(() => undefined)) ?? [];
  for (const line of lines) {
    if (line.pid === process.pid || known.has(line.pid)) continue;
    const serving = servingOf(line, program);
    if (serving !== undefined) attached.push({ pid: line.pid, client: null, hub: null, configFile: serving });
  }
  return { gateways, attached };
}

/** The configuration of a process of ours that serves, null if its command line does not say; `undefined` for another process. */
function servingOf({ pid, words }: CommandLine, program: string): string | null | undefined {
  // The word after Node and its options is the link that npm has made for the program, or the program itself.
  const script = words.findIndex((word, index) => index > 0 && !word.startsWith('-'));
  const [node = '', command = ''] = [words[0], words[script]];
  const isOurs = isOurselves({ kind: 'command', command, args: [], env: {} }, program);
  if (!isOurs || !/^(?:node|electron)/.test(programName(node))) return undefined;
  const line = readServing(words.slice(script + 1));
  if (line?.command !== 'serve') return undefined;
  const { config } = line.values;
  if (config === undefined || isAbsolute(config)) return config ?? null;
  const folder = workingFolderOf(pid);
  return folder === undefined ? null : join(folder, config);
}

/** The working folder of a process of this user. `undefined` except on Linux, because other systems need a program to find it out. */
function workingFolderOf(pid: number): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

/** Whether the hub drains, because a later hub of its folder serves. */
export function isEarlierHub({ kind, folder, name }: RunningGateway): boolean {
  return kind === 'hub' && name !== latestHub(folder);
}

/** The configuration file that a command is about. `fault` is set if there is no such file. */
export function configurationOf(settings: GlobalOptions): {
  readonly file: string | undefined;
  readonly fault?: ConfigError;
} {
  try {
    return { file: new ConfigLocation(settings).file };
  } catch (error) {
    // A hub whose configuration was moved or deleted may still run.
    if (error instanceof ConfigError && error.code === 'config-not-found') return { file: error.file, fault: error };
    throw error;
  }
}

/** The gateways that a command may be about, the one that it is about first. */
export interface GatewayChoice {
  readonly chosen: RunningGateway | undefined;
  /** The other gateways of the same configuration. */
  readonly alike: readonly RunningGateway[];
  readonly others: readonly RunningGateway[];
}

const ORDER: readonly GatewayKind[] = ['hub', 'http', 'stdio'];

/**
 * Chooses the gateway for a command: the one that `--gateway` names, or else the hub of the configuration, or else a gateway
 * over HTTP, or else one on stdin, the latest first. Without any configuration file, the only gateway that runs.
 * Throws a `UsageError` if none of them is the one that `--gateway` names.
 */
export function chooseGateway(
  running: readonly RunningGateway[],
  { named, file, folder }: Asked & { readonly named?: string | undefined },
): GatewayChoice {
  const all = running.filter((gateway) => !isEarlierHub(gateway));
  if (named !== undefined) {
    const chosen = all.find((gateway) => isNamedGateway(gateway, named));
    if (chosen === undefined) throw unknownGateway(named, all);
    return { chosen, alike: [], others: [] };
  }
  if (file === undefined) return { chosen: all.length === 1 ? all[0] : undefined, alike: [], others: all };
  const isOwn = ({ configFile }: RunningGateway) => configFile !== undefined && isSameFile(configFile, file);
  const rank = (gateway: RunningGateway) =>
    ORDER.indexOf(gateway.kind) * 4 + Number(gateway.configFile !== file) * 2 + Number(gateway.folder !== folder);
  const [chosen, ...alike] = all.filter(isOwn).sort((one, two) => rank(one) - rank(two) || two.since - one.since);
  return { chosen, alike, others: all.filter((gateway) => !isOwn(gateway)) };
}

/** Whether the pid or the URL of a gateway is the value of `--gateway`. */
export function isNamedGateway(
  { pid, url }: { readonly pid?: number | undefined; readonly url?: string | undefined },
  named: string,
): boolean {
  return String(pid) === named || (url !== undefined && named.replace(/\/(?:mcp)?$/, '') === url);
}

function isSameFile(one: string, other: string): boolean {
  return one === other || (realPath(one) ?? one) === (realPath(other) ?? other);
}

function unknownGateway(named: string, all: readonly RunningGateway[]): UsageError {
  const message = `no gateway of yours has the pid or the URL ${named}`;
  if (all.length === 0) return new UsageError(message, 'none runs; the next client that connects starts a hub');
  return new UsageError(message, `these run:\n${gatewayTable(all)}`);
}

/** The gateway in a sentence, such as `the hub (pid 7)`. */
export function nameOf({ kind, pid, url }: GatewayIdentity): string {
  const which = pid === undefined ? '' : ` (pid ${pid})`;
  if (kind === 'hub') return `the hub${which}`;
  return kind === 'http' ? `the gateway over HTTP at ${url}${which}` : `the gateway of one client on stdin${which}`;
}

/** Returns the configuration file of a gateway, with a remark if the file is gone. */
export function configurationText({ configFile }: { readonly configFile: string | undefined }): string {
  if (configFile === undefined) return 'an unknown configuration';
  return existsSync(configFile) ? configFile : `${configFile} (does not exist any more)`;
}

/** The gateways, one a line, each with the option that names it. */
export function gatewayTable(gateways: readonly RunningGateway[]): string {
  const options = gateways.map(({ pid, url }) => `--gateway ${pid ?? url ?? '?'}`);
  const width = Math.max(...options.map(({ length }) => length));
  return gateways
    .map((gateway, index) => {
      const { kind, url } = gateway;
      const what = kind === 'hub' ? 'the hub' : kind === 'http' ? `over HTTP at ${url}` : 'of one client on stdin';
      return `  ${(options[index] ?? '').padEnd(width)}  ${what}, of ${configurationText(gateway)}`;
    })
    .join('\n');
}

/** Says which gateway a command shows, and how to name another; `undefined` if the only one is a hub. */
export function choiceText({ chosen, alike, others }: GatewayChoice): string | undefined {
  if (chosen === undefined || (chosen.kind === 'hub' && alike.length + others.length === 0)) return undefined;
  const shown = `This is ${nameOf(chosen)}, of ${configurationText(chosen)}.`;
  if (alike.length > 0) return `${shown} To name another one of this configuration, add:\n${gatewayTable(alike)}`;
  if (others.length === 0) return shown;
  return `${shown} \`trunkline ps --all\` lists ${plural(others.length, 'gateway')} of other configurations.`;
}

/** The command or action that ends a gateway, as a phrase. */
export function howToEnd({ kind, pid, url }: GatewayIdentity): string {
  if (kind === 'hub') return `\`trunkline stop${pid === undefined ? '' : ` --gateway ${pid}`}\` ends it`;
  return kind === 'http' ? `\`trunkline drain ${url}\` ends it after its calls` : 'it ends with its client';
}

/** Advice for a gateway whose configuration file is gone; `undefined` if the file is there. */
export function goneText(gateway: RunningGateway): string | undefined {
  const { configFile, kind } = gateway;
  if (configFile === undefined || existsSync(configFile)) return undefined;
  const next = kind === 'hub' ? ', and each of its clients needs another `--config` then' : '';
  return `${capitalized(nameOf(gateway))} runs on with ${configFile}, which does not exist any more: ${howToEnd(gateway)}${next}.`;
}
