import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, posix, win32 } from 'node:path';
import { fileNamesIn } from '../../host/files/whole-file.js';
import type { ChildSpec } from '../../spec/server-spec.js';

/**
 * Prefix of the name of the variable that marks the processes of one launch of a server. The mark is in the name and not in the
 * value, so that a server of a nested Trunkline bears the marks of both.
 */
export const FAMILY_PREFIX = 'TRUNKLINE_FAMILY_';

/** The variable that gives a process, and all processes that inherit its environment, a mark. */
export function familyVariable(mark: string): Readonly<Record<string, string>> {
  return { [FAMILY_PREFIX + mark]: '1' };
}

type Variables = Readonly<Record<string, string | undefined>>;

interface ChildEnvironmentOptions {
  readonly parent: Variables;
  /** `env` of the server in the configuration; overrides the parent. */
  readonly declared: Readonly<Record<string, string>>;
  /** The command and its arguments, which decide whether the settings of npm are needed. */
  readonly commandLine: readonly string[];
  /** Folder of the Node that runs packages; it comes first in the PATH of the child. */
  readonly nodeDirectory: string;
  /** As in `process.platform`. */
  readonly platform: string;
}

const NPM_PREFIX = /^npm_config_/i;
/** A program that reads the settings of npm, as a word of a command line. A shell may run it, as in `cmd /c npx …`. */
const NPM_PROGRAM = /(?:^|[\\/\s])(?:npm|npx|pnpm|pnpx|yarn|bunx?)(?:\.(?:cmd|exe|ps1))?(?:\s|$)/i;
/** Credentials of npm, which hands its environment on to the server that it starts. */
const NPM_CREDENTIAL = /(?:_auth|_authtoken|_password|username|otp|key|keyfile|cert|certfile)$/i;
/**
 * Pauses of npm before it tries again. npm's defaults add up to 70 s, so a server that cannot be downloaded would reach its
 * `startTimeout` before npm says why. Trunkline itself tries again.
 */
const NPM_PACE = [
  ['npm_config_fetch_retry_mintimeout', '500'],
  ['npm_config_fetch_retry_maxtimeout', '2000'],
] as const;
/** Matches the variables in which an npx that started the gateway passes on its own package and command. */
const NPM_TASK = /^npm_config_(?:package|call)$/i;

/** The complete environment of a server's process, without its mark. */
export function environmentOf(
  {
    command,
    args,
    env,
  }: { readonly command: string; readonly args: readonly string[]; readonly env: ChildSpec['env'] },
  parent: Variables,
  node = serverNode(),
): Record<string, string> {
  const { platform } = process;
  const nodeDirectory = dirname(node.path);
  const declared = command === node.path ? { ...node.variables, ...env } : env;
  return childEnvironment({ parent, declared, commandLine: [command, ...args], nodeDirectory, platform });
}

/**
 * The complete environment of a child: an allowlist of the gateway's variables, the `env` of its configuration, and a PATH
 * on which `node` is the Node that runs packages, usually the one that runs the gateway.
 */
export function childEnvironment(options: ChildEnvironmentOptions): Record<string, string> {
  const { parent, declared, commandLine, nodeDirectory, platform } = options;
  const isWindows = platform === 'win32';
  // Names are case-insensitive on Windows ("Path"), and a child must not get the same name twice.
  const canonical = (name: string) => (isWindows ? name.toUpperCase() : name);
  const runsNpm = commandLine.some((word) => NPM_PROGRAM.test(word));
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(withoutOverridden(parent, declared))) {
    const key = canonical(name);
    const isWanted =
      isInherited(name, platform) || key.startsWith(FAMILY_PREFIX) || (runsNpm && isHarmlessNpmSetting(name));
    // A value such as "() { …" is an exported shell function, which another shell would execute.
    if (isWanted && value !== undefined && !value.startsWith('()')) environment[key] = value;
  }
  for (const [name, value] of Object.entries(declared)) environment[canonical(name)] = value;
  const isSet = (name: string) => Object.keys(environment).some((each) => each.toUpperCase() === name.toUpperCase());
  if (runsNpm) for (const [name, value] of NPM_PACE) if (!isSet(name)) environment[canonical(name)] = value;
  const path = environment.PATH;
  environment.PATH = path ? `${nodeDirectory}${isWindows ? ';' : ':'}${path}` : nodeDirectory;
  return environment;
}

/** The environment of npm itself: everything of the parent, since an `.npmrc` may name any variable, and `declared`. */
export function npmEnvironment(parent: Variables, declared: Readonly<Record<string, string>>): Variables {
  return { ...withoutOverridden(parent, declared), ...declared };
}

/** Returns the variables of the network and of npm. Their values can hold credentials, which a server or npm may write to a log. */
export function networkVariables(parent: Variables): Record<string, string> {
  const found = Object.entries(parent).filter(([name]) => isOfNetwork(name) || NPM_PREFIX.test(name));
  return Object.fromEntries(found.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/**
 * The parent without the variables of the network and of npm that are declared, in upper or in lower case. Otherwise a program that
 * prefers `https_proxy` would ignore a declared `HTTPS_PROXY`.
 */
function withoutOverridden(parent: Variables, declared: Readonly<Record<string, string>>): Variables {
  const names = new Set(Object.keys(declared).map((name) => name.toUpperCase()));
  const isOverridden = (name: string) => names.has(name.toUpperCase()) && (isOfNetwork(name) || NPM_PREFIX.test(name));
  return Object.fromEntries(Object.entries(parent).filter(([name]) => !isOverridden(name)));
}

function isHarmlessNpmSetting(name: string): boolean {
  return NPM_PREFIX.test(name) && !NPM_CREDENTIAL.test(name) && !NPM_TASK.test(name);
}

/** The same variables as in the stdio client of the MCP SDK: enough to run, without secrets. On Windows, a command also needs two more. */
const ON_POSIX = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'];
const ON_WINDOWS = [
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATHEXT',
  'PATH',
  'PROCESSOR_ARCHITECTURE',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'USERNAME',
  'USERPROFILE',
  'PROGRAMFILES',
];
/** Needed for the right language, encoding, time zone and temporary folder. */
const EVERYWHERE = ['LANG', 'TMPDIR', 'TZ'];

/** Needed to trust a private certificate authority. */
const CERTIFICATES = [
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'REQUESTS_CA_BUNDLE',
];
/** Needed to use a proxy. Programs read these names in upper or in lower case. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'NODE_USE_ENV_PROXY'];

const NETWORK = new Set([...CERTIFICATES, ...PROXIES]);

const INHERITED_ON_POSIX = new Set([...ON_POSIX, ...EVERYWHERE]);
const INHERITED_ON_WINDOWS = new Set([...ON_WINDOWS, ...EVERYWHERE]);

/** Whether every server gets this variable of the gateway. `platform` is as in `process.platform`. */
export function isInherited(name: string, platform: string): boolean {
  const isWindows = platform === 'win32';
  const key = isWindows ? name.toUpperCase() : name;
  const inherited = isWindows ? INHERITED_ON_WINDOWS : INHERITED_ON_POSIX;
  return inherited.has(key) || key.startsWith('LC_') || isOfNetwork(name);
}

/** The names in `names` that are the variable `name`. Windows does not tell upper and lower case apart. */
export function spellingsOf(name: string, names: readonly string[], platform: string = process.platform): string[] {
  const isSame = (other: string) =>
    other === name || (platform === 'win32' && other.toUpperCase() === name.toUpperCase());
  return names.filter(isSame);
}

function isOfNetwork(name: string): boolean {
  return NETWORK.has(name.toUpperCase());
}

export interface ServerNode {
  readonly path: string;
  /** Variables that make the program run as Node. */
  readonly variables: Readonly<Record<string, string>>;
}

export interface ChooseNodeOptions {
  /** As in `process.versions`. */
  readonly versions: Variables;
  readonly execPath: string;
  readonly env: Variables;
  readonly home: string;
  /** As in `process.platform`. */
  readonly platform: string;
  readonly isFile: (path: string) => boolean;
  /** Names of the entries of a folder; none if it cannot be read. */
  readonly entriesOf: (folder: string) => readonly string[];
}

let chosen: ServerNode | undefined;

/** The Node that runs packages and npm on this machine. */
export function serverNode(): ServerNode {
  const { versions, execPath, env, platform } = process;
  chosen ??= chooseNode({ versions, execPath, env, home: homedir(), platform, isFile, entriesOf: fileNamesIn });
  return chosen;
}

/**
 * Returns the Node that runs Trunkline. If this is the Node of Electron, whose executable is a part of a desktop program, the Node
 * of the user comes first: the first in PATH, or in a place where installers put it.
 */
export function chooseNode(options: ChooseNodeOptions): ServerNode {
  const { versions, execPath, isFile: isThere } = options;
  if (versions.electron === undefined) return { path: execPath, variables: {} };
  const found = [...inPath(options), ...usualFiles(options)].find(isThere);
  return found === undefined ? { path: execPath, variables: AS_NODE } : { path: found, variables: {} };
}

/** The variable with which the executable of Electron is a Node, as Electron documents. */
export const AS_NODE = { ELECTRON_RUN_AS_NODE: '1' };

function inPath({ env, platform }: ChooseNodeOptions): string[] {
  const { delimiter, isAbsolute, join } = platform === 'win32' ? win32 : posix;
  const folders = (env.PATH ?? env.Path ?? '').split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, platform === 'win32' ? 'node.exe' : 'node'));
}

/** Places where installers put a Node. `*` stands for a folder that is named after a version, the newest first. */
function usualFiles({ env, home, platform, entriesOf }: ChooseNodeOptions): string[] {
  const isWindows = platform === 'win32';
  const { join } = isWindows ? win32 : posix;
  const roaming = env.APPDATA || join(home, 'AppData', 'Roaming');
  const local = env.LOCALAPPDATA || join(home, 'AppData', 'Local');
  const programs = env.PROGRAMFILES ?? env.ProgramFiles ?? 'C:\\Program Files';
  const onWindows = [
    ...[join(programs, 'nodejs'), join(local, 'Programs', 'nodejs'), join(local, 'Volta', 'bin')],
    ...[join(roaming, 'nvm', '*'), join(roaming, 'fnm', 'node-versions', '*', 'installation')],
  ];
  const onPosix = [
    ...['/opt/homebrew/bin', '/usr/local/bin', '/usr/bin', '/opt/local/bin', join(home, '.volta/bin')],
    join(home, '.nvm/versions/node/*/bin'),
    join(home, '.local/share/fnm/node-versions/*/installation/bin'),
    join(home, 'Library/Application Support/fnm/node-versions/*/installation/bin'),
    join(home, '.local/share/mise/installs/node/*/bin'),
  ];
  return (isWindows ? onWindows : onPosix).flatMap((folder) => {
    const path = join(folder, isWindows ? 'node.exe' : 'node');
    const [before = '', after] = path.split('*');
    if (after === undefined) return [path];
    return newestFirst(entriesOf(before.slice(0, -1))).map((version) => before + version + after);
  });
}

/** The names that are versions, such as `v22.3.0`, the newest first. */
function newestFirst(names: readonly string[]): string[] {
  const versions = names.filter((name) => /^v?\d+\.\d+\.\d+$/.test(name));
  return versions.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
