import { accessSync, constants, existsSync, type Stats, statSync } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { satisfies } from 'semver';
import { systemFault } from '../../host/errors/file-error.js';
import { findNpm } from '../../servers/packages/npm-client.js';
import type { Confinement } from '../../servers/sandbox/find-bubblewrap.js';
import { proxyRemark } from '../../servers/sandbox/refusals.js';
import type { ChildSpec } from '../../spec/server-spec.js';
import { plural, sentence, someOf } from '../../wire/json/printable.js';
import { type Finding, finding } from './finding.js';

/** The facts about the machine, the user and this process that checks depend on. Tests pass the facts of other machines. */
export interface Machine extends OperatingSystem {
  readonly home: string;
  readonly cwd: string;
  /** The root folder of the system: `/`, or the system drive on Windows. */
  readonly root: string;
  /** The user id that owns files; `undefined` on Windows, where files have neither owners nor modes of this kind. */
  readonly uid: number | undefined;
  readonly node: {
    readonly version: string;
    readonly path: string;
    /** Whether this Node is part of a desktop program (Electron). */
    readonly isElectron: boolean;
  };
  /** The path of the running Trunkline program, with symbolic links resolved. */
  readonly program: string;
  readonly version: string;
  /** Whether checks must not use the network (`--offline`). */
  readonly isOffline: boolean;
}

export interface OperatingSystem {
  readonly platform: 'darwin' | 'linux' | 'win32';
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function pathSeparator({ platform }: OperatingSystem): string {
  return platform === 'win32' ? ';' : ':';
}

/** The value of an environment variable. Windows ignores the case of the name. */
export function variableOf({ env, platform }: OperatingSystem, name: string): string | undefined {
  if (platform !== 'win32') return env[name];
  const found = Object.keys(env).find((each) => each.toUpperCase() === name.toUpperCase());
  return found === undefined ? undefined : env[found];
}

/** Limits of the system for the processes of this user. `undefined`: not limited, or not known. */
export interface Limits {
  readonly openFiles?: number | undefined;
  readonly processes?: number | undefined;
  /** Files that all programs of this user may watch; Linux only. */
  readonly watches?: number | undefined;
}

/** Open files for each server (its pipes, and what it opens while it starts), and for Trunkline itself. */
const FILES_OF_SERVER = 4 * 8;
const OWN_FILES = 256;
/** Processes for each server with its children, and for the rest of the desktop. */
const PROCESSES_OF_SERVER = 16;
const OTHER_PROCESSES = 256;
/** Fewest files that users must be able to watch, because editors alone watch thousands. */
const MIN_WATCHES = 4_096;

/** Whether the limits of the system suffice for this many servers. */
export function checkLimits({ openFiles, processes, watches }: Limits, servers: number): Finding[] {
  const found: Finding[] = [];
  const files = servers * FILES_OF_SERVER + OWN_FILES;
  const text = `${openFiles} open files are allowed; ${plural(servers, 'server')} may need ${files}`;
  if (openFiles !== undefined && openFiles < files) found.push(finding('TL-LIMIT-FILES', text));
  const needed = servers * PROCESSES_OF_SERVER + OTHER_PROCESSES;
  if (processes !== undefined && processes < needed)
    found.push(finding('TL-LIMIT-PROCESSES', `${processes} processes are allowed; ${needed} may be needed`));
  if (watches !== undefined && watches < MIN_WATCHES)
    found.push(finding('TL-LIMIT-WATCHES', `only ${watches} files can be watched`));
  return found;
}

/** Reads the limits on Linux. Other systems have no file to read them from, so nothing is known there. */
export async function readLimits(): Promise<Limits> {
  if (process.platform !== 'linux') return {};
  const [limits, watches] = await Promise.all([
    readFile('/proc/self/limits', 'utf8').catch(() => ''),
    readFile('/proc/sys/fs/inotify/max_user_watches', 'utf8').catch(() => ''),
  ]);
  return {
    openFiles: numberIn(/^Max open files\s+(\d+)/m.exec(limits)?.[1]),
    processes: numberIn(/^Max processes\s+(\d+)/m.exec(limits)?.[1]),
    watches: numberIn(watches.trim()),
  };
}

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Whether servers with `sandbox` can be confined, and whether their Node uses the proxy of the sandbox. */
export async function checkConfinement(
  programs: readonly ChildSpec[],
  find: () => Promise<Confinement>,
): Promise<Finding[]> {
  const confined = programs.filter(({ sandbox }) => sandbox !== undefined);
  if (confined.length === 0) return [];
  const found = await find();
  if (!found.isAvailable) {
    const { code, reason, remedy } = found.fault;
    const evidence = [`servers that do not start: ${someOf(confined.map(({ key }) => key))}`];
    return [finding(code, `servers cannot be confined: ${reason}`, evidence, { remedy: sentence(remedy) })];
  }
  const late = confined.filter((spec) => proxyRemark(spec, (spec.sandbox?.network ?? []).length > 0) !== undefined);
  const remarks = late.map(({ key }) =>
    finding('TL-SANDBOX-PROXY', `server \`${key}\` may use the network, and its Node ignores the proxy of the sandbox`),
  );
  return [
    finding('TL-SANDBOX-OK', `servers can be confined: ${plural(confined.length, 'server')}`, [found.program]),
    ...remarks,
  ];
}

/** Least free space, because less is too little for a few packages. */
const MIN_FREE_BYTES = 500 * 1024 * 1024;

/** Magic numbers of file systems over a network, as Linux reports them. */
const NETWORK_FILE_SYSTEMS = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x5346414f, 'AFS'],
  [0x01021997, '9P'],
]);

/** Whether Trunkline can use its folders: they exist or can be created, are ours, and have space. */
export async function checkFolders(
  machine: Machine,
  { data, others }: { readonly data: string; readonly others: readonly string[] },
): Promise<Finding[]> {
  const found = [data, ...others].flatMap((folder) => checkFolder(folder, machine));
  const isSynced = machine.platform === 'win32' && /[\\/]OneDrive[^\\/]*[\\/]/i.test(data);
  if (isSynced) found.push(finding('TL-HOME-SYNCED', 'OneDrive copies the data folder', [data]));
  const all = [...found, ...(await checkSpace(nearestExisting(data), machine))];
  return all.length > 0 ? all : [finding('TL-DIR-OK', 'the folders of Trunkline can be used', [data])];
}

function checkFolder(folder: string, { uid }: Machine): Finding[] {
  const existing = nearestExisting(folder);
  const evidence = [folder];
  let stats: Stats;
  try {
    stats = statSync(existing);
    if (!stats.isDirectory())
      return [finding('TL-DIR-UNWRITABLE', `${existing} is a file, where a folder is needed`, evidence)];
    accessSync(existing, constants.W_OK | constants.X_OK);
  } catch (error) {
    return [finding('TL-DIR-UNWRITABLE', `${existing} cannot be written: ${systemFault(error).reason}`, evidence)];
  }
  if (existing !== folder || uid === undefined) return [];
  if (stats.uid !== uid)
    return [finding('TL-DIR-FOREIGN', `${folder} belongs to the user with the id ${stats.uid}`, evidence)];
  if ((stats.mode & 0o022) === 0) return [];
  const remedy = `chmod go-w ${folder}`;
  return [finding('TL-DIR-EXPOSED', `other users can write into ${folder}`, evidence, { remedy })];
}

async function checkSpace(folder: string, { platform }: Machine): Promise<Finding[]> {
  try {
    const { bavail, bsize, type } = await statfs(folder);
    return diskFindings({ folder, freeBytes: bavail * bsize, type: platform === 'linux' ? type : 0 });
  } catch {
    // A folder that cannot be read has a finding already.
    return [];
  }
}

/** `type` is the magic number of the file system on Linux; 0 if it is not known. */
export function diskFindings(disk: { folder: string; freeBytes: number; type: number }): Finding[] {
  const { folder, freeBytes, type } = disk;
  const low = `${Math.round(freeBytes / 1024 / 1024)} MB are free`;
  const network = NETWORK_FILE_SYSTEMS.get(type);
  const shared = `the data folder is on a network file system (${network})`;
  return [
    ...(freeBytes < MIN_FREE_BYTES ? [finding('TL-DISK-LOW', low, [folder])] : []),
    ...(network === undefined ? [] : [finding('TL-HOME-NETWORK', shared, [folder])]),
  ];
}

function nearestExisting(path: string): string {
  for (let at = path; ; at = dirname(at)) if (existsSync(at) || at === dirname(at)) return at;
}

const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];
const CERTIFICATE_FILES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE'];
const LOCAL = /(?:^|[,\s])(?:\*|localhost|127\.0\.0\.1|\[?::1\]?)(?=$|[,\s:])/i;

/** Whether the variables for proxies and certificates make sense. Servers inherit them. Values may hold passwords. */
export function checkNetwork(machine: OperatingSystem): Finding[] {
  const read = (name: string) => variableOf(machine, name) || variableOf(machine, name.toLowerCase()) || undefined;
  const set = PROXIES.filter((name) => read(name) !== undefined);
  const malformed = set.filter((name) => !/^[a-z][\w+.-]*:\/\/\S+$/i.test(read(name) ?? ''));
  const found = malformed.map((name) => finding('TL-PROXY-MALFORMED', `${name} is not a URL`));
  if (set.length > 0 && !LOCAL.test(read('NO_PROXY') ?? ''))
    found.push(finding('TL-PROXY-LOCALHOST', `${set.join(' and ')} is set, and NO_PROXY lacks localhost`));
  for (const name of CERTIFICATE_FILES) {
    const file = variableOf(machine, name);
    if (!file) continue;
    try {
      accessSync(file, constants.R_OK);
    } catch (error) {
      const text = `${name} names a file that cannot be read: ${systemFault(error).reason}`;
      found.push(finding('TL-CERT-MISSING', text, [file]));
    }
  }
  return found;
}

/** The versions of Node in `engines` of our package.json. */
const NEEDED = '^20.19.0 || >=22.3.0';

/** Folders of version managers that are removed some day, each with the cause of the removal. */
const VANISHING: readonly (readonly [sign: RegExp, why: string])[] = [
  [/[\\/]fnm_multishells[\\/]/, 'fnm removes this folder when the shell ends'],
  [/[\\/]nvm[\\/](?:versions[\\/]node[\\/])?v?\d/, 'nvm removes this folder when you uninstall the version'],
  [/[\\/]Cellar[\\/]node(?:@\d+)?[\\/]/, 'Homebrew removes this folder with the next version'],
  [/[\\/]\.?(?:asdf|mise)[\\/]installs[\\/]/, 'the version manager removes this folder with the version'],
];

/** Whether this Node can run Trunkline, now and tomorrow. */
export function checkNode({ node }: { readonly node: Machine['node'] }): Finding[] {
  const evidence = [node.path];
  const found: Finding[] = [];
  if (!satisfies(node.version, NEEDED))
    found.push(finding('TL-NODE-OLD', `Node ${node.version} is too old; Trunkline needs ${NEEDED}`, evidence));
  if (node.isElectron)
    found.push(finding('TL-NODE-ELECTRON', `Node ${node.version} is a part of a desktop program`, evidence));
  const why = whyVanishing(node.path);
  if (why !== undefined) found.push(finding('TL-NODE-VANISHING', `the path of Node may vanish: ${why}`, evidence));
  return found.length > 0 ? found : [finding('TL-NODE-OK', `Node ${node.version} fits`, evidence)];
}

/** The reason why the program at this path may disappear; `undefined` if there is no sign of it. */
export function whyVanishing(path: string): string | undefined {
  return VANISHING.find(([sign]) => sign.test(path))?.[1];
}

/**
 * Whether packages can be installed. Asks the registry only if packages are used, and never offline. `ping` asks it, and resolves with the
 * errors of npm.
 */
export async function checkNpm(
  { isOffline }: { readonly isOffline: boolean },
  file: string | undefined,
  isNeeded: boolean,
  ping: () => Promise<readonly string[]>,
): Promise<Finding[]> {
  if (file === undefined) return [finding('TL-NPM-MISSING', 'no npm next to this Node or in PATH')];
  if (isOffline || !isNeeded) return [finding('TL-NPM-OK', 'npm is there', [file])];
  const errors = await ping();
  if (errors.length === 0) return [finding('TL-NPM-OK', 'npm is there and reaches its registry', [file])];
  return [finding('TL-NPM-UNREACHABLE', 'npm does not reach its registry', errors.slice(0, 3))];
}

export function npmOf({ node, env }: Machine): string | undefined {
  return findNpm(node.path, env.PATH ?? env.Path);
}
