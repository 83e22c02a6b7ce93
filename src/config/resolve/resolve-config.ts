import { statSync } from 'node:fs';
import { availableParallelism, homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { ChildSpec, PackageRequest } from '../../supervision/launcher.js';
import {
  type CheckedEntry,
  type CheckedFile,
  type CheckedServer,
  type ServerSettings,
  toCheckedGateway,
} from '../file/checked-file.js';
import { faultsAt, formatProblem, locateFault, ServerFault, type ServerProblem } from '../file/config-error.js';
import { DEMAND_EVERY_MS, MIN_START_LIMIT, STOP_KILL_AFTER_MS } from '../schema/settings.js';
import type { Config, Origin, ServerConfig } from './config.js';
import { EnvFiles } from './env-file.js';
import { checkNesting } from './nesting.js';
import { findPackage, type InstalledPackages, parsePackage } from './package-bin.js';
import {
  expand as expandIn,
  resolveShapes,
  type Secret,
  secretReader,
  secretValuesOf,
  type Variables,
  variableIn,
} from './references.js';

export interface LoadOptions {
  /** The variables of this process. */
  env: Variables;
  /** Variables and folder for the servers. Default: the variables and the working folder of this process. */
  origin?: Origin;
  /** The Node that runs servers with a `package`. */
  nodePath: string;
  /** Folder of Trunkline itself, whose packages no server runs. */
  ownFolder: string;
  /** The packages in Trunkline's own store. */
  store?: InstalledPackages;
  /** The secrets that the file refers to. */
  secrets?: ReadonlyMap<string, Secret>;
}

/**
 * Resolves a checked file on this machine. If something is missing for one server, that server gets a `problem`.
 */
export function resolveConfig(
  file: string,
  checked: CheckedFile,
  { env, origin = { environment: env, folder: currentFolder() }, nodePath, ownFolder, store, secrets }: LoadOptions,
): Config {
  const envFiles = new EnvFiles(dirname(resolve(file)));
  const surroundings = {
    file: resolve(file),
    folder: dirname(resolve(file)),
    home: env.HOME || env.USERPROFILE || homedir(),
    env,
    nodePath,
    ownFolder,
    store,
    secrets,
    sharedVariables: checked.sharedVariables,
    envFiles,
  };
  const resolveFor = (of: Origin, entry: CheckedServer): ServerConfig => {
    const { places, problem } = entry;
    const server = resolveServer(entry, {
      ...surroundings,
      origin: of,
      locate: (fault) => locateFault(fault, places),
    });
    return problem === undefined ? server : { ...server, child: undefined, problem };
  };
  const { startLimit, record, sealKeyFile, ...gateway } = checked.gateway;
  const { folder, home } = surroundings;
  const pathOf = (text: string) => resolve(folder, expandHome(text, home));
  return {
    file: resolve(file),
    servers: checked.servers.map((entry) => resolveFor(origin, entry)),
    gateway: {
      ...gateway,
      ...(record !== undefined && { record: pathOf(record) }),
      ...(sealKeyFile !== undefined && { sealKeyFile: pathOf(sealKeyFile) }),
      startLimit: startLimit ?? Math.max(MIN_START_LIMIT, availableParallelism()),
    },
    warnings: [...checked.warnings.map((warning) => formatProblem(file, warning)), ...envFiles.warnings],
    envFiles: envFiles.paths,
    serverFor: (key, other) => {
      const entry = checked.servers.find((server) => server.key === key);
      return entry && resolveFor(other, entry);
    },
  };
}

/** The working folder of this process; '' if it was removed. */
function currentFolder(): string {
  try {
    return process.cwd();
  } catch {
    return '';
  }
}

/** The facts about this machine that an entry of the file is resolved with. */
interface Surroundings {
  /** The configuration file. */
  file: string;
  /** The folder of the configuration file. */
  folder: string;
  home: string;
  /** The variables of this process. */
  env: Variables;
  /** Variables and folder for the server. */
  origin: Origin;
  nodePath: string;
  ownFolder: string;
  /** The packages in Trunkline's own store. */
  store: InstalledPackages | undefined;
  secrets: ReadonlyMap<string, Secret> | undefined;
  /** Replaces the variables and secrets in a text. */
  expand: (text: string) => string;
  /** The names in `defaults.env`. */
  sharedVariables: readonly string[];
  envFiles: EnvFiles;
  /** Adds the position in the file to a fault of this server. */
  locate: (fault: ServerFault) => ServerProblem;
}

/** Resolves one server of the file. The result has no `child` if something that the server needs is missing. */
function resolveServer(
  { key, entry, settings }: Pick<CheckedServer, 'key' | 'entry' | 'settings'>,
  surroundings: Omit<Surroundings, 'expand'>,
): ServerConfig {
  const { origin, home, envFiles } = surroundings;
  const { variables, references, fault } = envFiles.variablesOf(entry, origin.environment, home);
  const { folder } = origin;
  const expand = (text: string) => expandIn(text, references, secretReader(surroundings.secrets));
  const resolved = resolveChild(() => {
    if (fault !== undefined) throw fault;
    return childAndPackage(key, entry, settings, { ...surroundings, expand });
  }, surroundings);
  const secrets = secretValuesOf(entry, references, surroundings.secrets);
  return {
    key,
    prefix: entry.prefix ?? key,
    ...resolved,
    sharing: settings.sharing,
    start: settings.start,
    idleStopMs: settings.idleStopMs,
    era: settings.era,
    approval: settings.approval,
    methods: entry.methods ?? [],
    trusted: settings.trusted,
    tools: { ...(entry.tools?.allow && { allow: entry.tools.allow }), deny: entry.tools?.deny ?? [] },
    calls: {
      timeoutMs: settings.timeoutMs,
      maxTimeoutMs: settings.maxTimeoutMs,
      listTimeoutMs: settings.listTimeoutMs,
      concurrency: settings.concurrency,
      maxQueued: settings.maxQueued,
      maxWaitMs: settings.maxWaitMs,
    },
    variables,
    references,
    ...(Object.keys(secrets).length > 0 && { secrets }),
    ...(settings.sharing === 'folder' && { folder }),
    frames: { maxFrameBytes: settings.maxFrameBytes, maxUnwrittenBytes: settings.maxUnwrittenBytes },
    limits: settings.limits,
  };
}

type Resolved = Pick<ServerConfig, 'child' | 'problem' | 'package' | 'shapes'>;

function resolveChild(resolveIt: () => Resolved, { locate }: Pick<Surroundings, 'locate'>): Resolved {
  try {
    return resolveIt();
  } catch (fault) {
    if (!(fault instanceof ServerFault)) throw fault;
    return { child: undefined, problem: locate(fault) };
  }
}

function childAndPackage(
  key: string,
  entry: CheckedEntry,
  settings: ServerSettings,
  { expand: expandAny, ...others }: Surroundings,
): Resolved {
  const expand = (text: string) => refuseNul(expandAny(text));
  const surroundings = { ...others, expand };
  const { env, sharedVariables } = surroundings;
  const args = (entry.args ?? []).map((arg, index) => faultsAt(['args', index], () => expand(arg)));
  const variables = Object.entries(entry.env ?? {}).map(
    ([name, value]) => [name, faultsAt(['env', name], () => expand(value))] as const,
  );
  const forNpm = Object.fromEntries(variables.filter(([name]) => sharedVariables.includes(name)));
  const { package: used, ...toRun } = program(entry, args, forNpm, settings, surroundings);
  const child = {
    key,
    ...toRun,
    cwd: faultsAt(['cwd'], () => workingFolder(entry, settings, surroundings)),
    env: Object.fromEntries(variables),
    timeouts: { startMs: settings.startTimeoutMs, stopGraceMs: settings.stopGraceMs, killAfterMs: STOP_KILL_AFTER_MS },
    restart: { ...settings.restart, demandEveryMs: DEMAND_EVERY_MS },
    leaveRunning: settings.leaveRunning,
  };
  const { file, home } = surroundings;
  const nesting = checkNesting(child, { file, home, env, packageName: used?.request.name });
  const shapes = resolveShapes(entry.tools, expandAny);
  const whole = { ...child, env: { ...child.env, ...nesting } };
  return { child: whole, ...(used && { package: used }), ...(shapes && { shapes }) };
}

/** The schema refuses a NUL character in the file; this refuses one in the value of a variable or secret. */
function refuseNul(value: string): string {
  if (!value.includes('\0')) return value;
  throw new ServerFault(
    'the value of a variable or secret has a NUL character, which no program can be started with',
    'set the variable or store the secret again, without that character',
  );
}

interface Program extends Pick<ChildSpec, 'command' | 'label' | 'args' | 'missing'>, Pick<ServerConfig, 'package'> {}

function program(
  { package: shown, bin, command = '' }: CheckedEntry,
  args: readonly string[],
  forNpm: PackageRequest['env'],
  { installScripts, installTimeoutMs }: ServerSettings,
  { folder, home, expand, nodePath, ownFolder, store }: Surroundings,
): Program {
  if (shown === undefined) {
    const label = firstWord(command);
    return {
      command: faultsAt(['command'], () => commandPath(expand(command), folder, home)),
      label,
      args,
    };
  }
  return faultsAt(['package'], () => {
    const wanted = parsePackage(expand(shown), shown);
    const request = { shown, ...wanted, bin, installScripts, env: forNpm, budgetMs: installTimeoutMs };
    const found = findPackage({ request, configFolder: folder, ownFolder, ...(store && { store }) });
    if (found === undefined) return { command: nodePath, args, missing: request, package: { request } };
    return { command: nodePath, args: [found.program, ...args], package: { request, found } };
  });
}

/** The first word of `command`. Some users write a whole command line there, which may contain secrets. */
function firstWord(command: string): string {
  const [first = '', ...rest] = command.trim().split(/\s+/);
  return rest.length === 0 ? first : `${first} …`;
}

/** A path with a leading dot is relative to the file. Any other name stays as it is and is looked up in PATH. */
function commandPath(command: string, folder: string, home: string): string {
  if (command === '') {
    throw new ServerFault(
      'the command is empty after its variables are replaced; expected a program to run',
      'set the variables that `command` refers to',
    );
  }
  const expanded = expandHome(command, home);
  return /^\.\.?[\\/]/.test(expanded) ? resolve(folder, expanded) : expanded;
}

function workingFolder(entry: CheckedEntry, { sharing }: ServerSettings, surroundings: Surroundings): string {
  const { folder, home, expand, origin } = surroundings;
  if (sharing === 'folder' && entry.cwd === undefined) return folderOfClient(origin.folder);
  const { cwd = '.' } = entry;
  const path = resolve(folder, expandHome(expand(cwd), home));
  if (isFolder(path)) return path;
  throw new ServerFault(
    `the folder ${cwd} does not exist; expected a folder to run the server in`,
    `create the folder, or correct \`cwd\`, which is relative to ${folder}`,
  );
}

function folderOfClient(path: string): string {
  if (isFolder(path)) return path;
  throw new ServerFault(
    `the working folder of the client does not exist${path === '' ? '' : `: ${path}`}; with \`sharing: folder\`, the server runs there`,
    'start the client in a folder that exists, or set `cwd`',
  );
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // The folder is missing or not accessible, so a child cannot run in it.
    return false;
  }
}

function expandHome(path: string, home: string): string {
  return /^~(?=$|[\\/])/.test(path) ? join(home, path.slice(1)) : path;
}

/** Whether clients of this view see the server. Without a view, they see every server; in an unknown one, none. */
export function isInView(
  { gateway: { views } }: Pick<Config, 'gateway'>,
  key: string,
  view: string | undefined,
): boolean {
  if (view === undefined || view === '') return true;
  const found = views.find(({ name }) => name === view);
  return found !== undefined && (found.servers === undefined || found.servers.includes(key));
}

/**
 * Identifies what the server is for clients of this origin. Clients for which it is the same may share a process: the
 * variables that the entry refers to are equal and, with `sharing: folder`, so is the working folder. Without an origin,
 * the one that the server was resolved for.
 *
 * The text contains the values of variables: it must stay in memory.
 */
export function variantOf(
  { variables, sharing, references, folder = '' }: ServerConfig,
  origin: Origin = { environment: references, folder },
): string {
  const values = variables.map((name) => variableIn(name, origin.environment) ?? null);
  return JSON.stringify(sharing === 'folder' ? [values, origin.folder] : [values]);
}

/** A configuration without servers, in place of a file that cannot be used. `file` may be unknown. */
export function emptyConfig(file: string | undefined): Config {
  return {
    file: file === undefined ? '' : resolve(file),
    servers: [],
    gateway: { ...toCheckedGateway({}), startupWaitMs: 0, idleStopMs: 0, startLimit: MIN_START_LIMIT },
    warnings: [],
    envFiles: [],
    serverFor: () => undefined,
  };
}
