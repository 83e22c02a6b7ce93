import { isDeepStrictEqual } from 'node:util';
import type { ServerRules } from '../../spec/server-rules.js';
import type { PackageRequest, ServerSpec } from '../../spec/server-spec.js';
import { ownKeyOf } from '../../wire/mcp/exposed-name.js';
import type { GatewayConfig, ServerSettings } from '../file/check-file.js';
import type { ServerProblem } from '../file/config-error.js';
import type { RequestRules } from '../rules/request-rules.js';
import type { CallRule } from '../rules/rule.js';
import { type Owner, userVariable, variableIn } from './references.js';

/*
 * Config: the YAML file. `file` finds it, parses it and checks it against `schema`, whose tables of settings (`settings.ts`) have every
 * default. The result has each server as the file has it (`WrittenServer`). `resolve` replaces variables, and finds packages and
 * folders of this machine: `ServerConfig` here. `edit` changes the text of a file. Every room above may use it. Begin here, then
 * with `checkFile` and `resolveConfig`.
 */

/** A configuration file, checked and resolved. Times are milliseconds, sizes bytes, paths absolute. */
export interface Config {
  readonly file: string;
  /** Checksum of the text. Absent if the configuration was not read from a file. */
  readonly stamp?: number;
  /** In the order of the file, without those that are `disabled`. */
  readonly servers: readonly ServerConfig[];
  /** The keys of the servers that are `disabled`. */
  readonly disabled: readonly string[];
  readonly gateway: GatewayConfig;
  /** Warnings about accepted settings that are probably mistakes, each as `FILE:LINE:COL: message`. */
  readonly warnings: readonly string[];
  /** The environment files that servers use; absolute. */
  readonly envFiles: readonly string[];
  /** The `passHeaders` of all servers, also of those that cannot run. */
  readonly passHeaders: readonly string[];
  /** Resolves one server for another origin; `undefined` if there is no such server. Checks nothing again. */
  readonly serverFor: (key: string, origin: Origin) => ServerConfig | undefined;
  /** The projects whose servers are among `servers`. Absent if no project counts, as for clients over HTTP. */
  readonly layers?: Layers;
  /** Makes rules from their form in the file. Present if the configuration has any, because their code is loaded for them only. */
  readonly prepareRules?: PrepareRules;
}

/** The projects whose configuration stands beside that of the user, for clients that work in their folders. */
export interface Layers {
  /** The file of the trusted project around a folder; `undefined` if there is none. */
  readonly projectOf: (folder: string | undefined) => string | undefined;
  /** A sentence to clients in a folder about the file of its project: that it is not trusted, has changed, or cannot be used. */
  readonly remarkOn: (folder: string | undefined) => string | undefined;
  /** The keys of each project's file, as `foldedKey` has them. In the folder of the project, they hide those of the user. */
  readonly hidden: ReadonlyMap<string, ReadonlySet<string>>;
  /** Files whose change may change the layers. */
  readonly files: readonly string[];
  /** `statesOf` these files before they were read. */
  readonly states: string;
}

/** The project that a server belongs to. */
export interface ServerLayer {
  /** The configuration file of the project; absolute. */
  readonly file: string;
  /** The key of the server in this file. */
  readonly key: string;
  /** Whether the user's file has a server of this key, which clients of the project do not see. */
  readonly hides: boolean;
}

type PrepareRules = (rules: readonly CallRule[], areOfView?: boolean) => RequestRules;

/**
 * Prepares the rules of a server or of a view; `undefined` if there are none. Throws if their code is not loaded, because nothing
 * may be called without them.
 */
export function preparedRules(
  { prepareRules }: Pick<Config, 'prepareRules'>,
  rules: readonly CallRule[] = [],
  areOfView = false,
): RequestRules | undefined {
  if (rules.length === 0) return undefined;
  if (prepareRules === undefined) throw new Error('The code of the rules is not loaded');
  return prepareRules(rules, areOfView);
}

/** Adds the code of the rules to a configuration that has any. */
export async function withRules(config: Config): Promise<Config> {
  const { servers, gateway } = config;
  if (![...servers, ...gateway.views].some(({ rules = [] }) => rules.length > 0)) return config;
  const { RequestRules } = await import('../rules/request-rules.js');
  return { ...config, prepareRules: (rules, areOfView) => new RequestRules(rules, { areOfView }) };
}

/** The variables and the working folder of a client, with which its servers are resolved. */
export interface Origin extends Owner {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The working folder; absolute. Used only with `sharing: folder`. */
  readonly folder: string;
  /** The principal of the user whose variables are in `environment`. Absent for clients without a user. */
  readonly user?: string | undefined;
}

/** A server as it was resolved on this machine, with its settings. */
export interface ServerConfig extends ServerSettings, ServerRules {
  readonly key: string;
  readonly results: ServerSettings['results'];
  /** Undefined when `problem` is set. */
  readonly spec: ServerSpec | undefined;
  readonly problem?: ServerProblem;
  /** The package that the server runs; absent for a `command` and for a server with a `problem`. */
  readonly package?: ServerPackage;
  /** Rules on its calls, with the values of variables. The first one that matches decides. Absent if there are none. */
  readonly rules?: readonly CallRule[];
  /** The names of the variables `${NAME}` in the entry, without those of its `envFile`, sorted. */
  readonly variables: readonly string[];
  /** The values of all variables in the entry, including those of its `envFile`. Secrets among them are removed from logs. */
  readonly references: Readonly<Record<string, string>>;
  /** Values that are removed from logs even if they do not look like secrets. Absent if there are none. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** With `sharing: folder`: the working folder of the clients. */
  readonly folder?: string;
  /** Absent for a server of the user's own file. */
  readonly layer?: ServerLayer;
  /** Whether requests are made in the name of the user of the client, if there are users. */
  readonly actsForUsers?: boolean;
  /** Keys of the servers that look at its requests and results. Absent if there are none. */
  readonly interceptors?: readonly string[];
  /** Whether the server is an interceptor, which serves all clients and is shown to none. */
  readonly isInterceptor?: boolean;
}

export interface ServerPackage {
  readonly request: PackageRequest;
  /** Absent if the package is not installed yet. */
  readonly found?: FoundPackage;
}

/** A package that was found, and its program, which runs with Node. */
export interface FoundPackage {
  /** `near`: in `node_modules` next to the configuration file. `store`: in Trunkline's own store. */
  readonly location: 'near' | 'store';
  readonly version: string | undefined;
  /** Absolute. */
  readonly program: string;
}

/** Whether clients of this view see the server. Without a view, they see every server; in an unknown one, none. */
export function isInView({ gateway: { views } }: Config, key: string, view: string | undefined): boolean {
  if (view === undefined || view === '') return true;
  const found = views.find(({ name }) => name === view);
  return found !== undefined && (found.servers === undefined || found.servers.includes(ownKeyOf(key)));
}

/** Makes keys equal that differ in case only, because people and models take them for the same. */
export function foldedKey(key: string): string {
  return key.toLowerCase();
}

/** Whether clients that work in this folder see the server. Without a folder, they see those of the user's file. */
export function isForFolder({ layers }: Config, { key, layer }: ServerConfig, folder: string | undefined): boolean {
  const project = layers?.projectOf(folder);
  if (layer !== undefined) return layer.file === project;
  return project === undefined || layers?.hidden.get(project)?.has(foldedKey(key)) !== true;
}

/** Whether the server runs for users only, who have variables, and has no other problem. */
export function isPerUser({ gateway }: Config, { problem }: ServerConfig): boolean {
  return problem?.isOfUser === 'any' && gateway.http.auth?.variables !== undefined;
}

/**
 * Identifies the variant of a server for clients of an origin. Clients with the same variant may share a process, because
 * they have the same values of the variables in the entry and, with `sharing: folder`, the same working folder. A server with
 * variables or logins of users, or with a home folder for each user in its sandbox, has a variant for each user, even if values are
 * equal. The default origin is the one that the server was resolved for, without a user.
 *
 * The text must stay in memory, because it contains the values of variables.
 */
export function variantOf(
  { variables, sharing, references, spec, folder = '', actsForUsers = false }: ServerConfig,
  origin: Origin = { environment: references, folder },
): string {
  const values = variables.map((name) => variableIn(name, origin.environment) ?? null);
  const hasHomes = spec !== undefined && spec.kind !== 'remote' && spec.sandbox !== undefined && sharing !== 'all';
  const isOfUser = hasHomes || actsForUsers || variables.some((name) => userVariable(name) !== undefined);
  const user = isOfUser ? [{ user: origin.user ?? null }] : [];
  return JSON.stringify([values, ...(sharing === 'folder' ? [origin.folder] : []), ...user]);
}

/** The differences between two configurations, for the servers that run. Keys are in the order of their file. */
export interface ConfigChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Servers that need another process: the program, the handshake or the limits of the pipes have changed. */
  readonly replaced: readonly string[];
  /** Servers whose other settings have changed; their processes keep running. */
  readonly adjusted: readonly string[];
  readonly unchanged: readonly string[];
  /** Whether the order of the remaining servers, and so the order of the merged lists, has changed. */
  readonly isReordered: boolean;
  /** Changed settings of the gateway, such as `idleStopMs`. */
  readonly gateway: readonly (keyof Config['gateway'])[];
}

/**
 * Compares two configurations by their meaning. Comments, spaces and the order of keys do not count. `others` has the changes
 * of servers for clients with other variables; the largest change of each server counts.
 */
export function compareConfigs(
  before: Config,
  after: Config,
  others: readonly { readonly key: string; readonly change: ServerChange | 'removed' }[] = [],
): ConfigChanges {
  const known = new Map(before.servers.map((server) => [server.key, server]));
  const keys = new Set(after.servers.map(({ key }) => key));
  const largestOf = (server: ServerConfig) => {
    const all = others.flatMap(({ key, change }) => (key === server.key ? [change] : []));
    all.push(changeOf(known.get(server.key), server));
    return LARGEST_FIRST.find((change) => all.includes(change));
  };
  const changes = after.servers.map((server) => ({ key: server.key, change: largestOf(server) }));
  const of = (wanted: ServerChange) => changes.flatMap(({ key, change }) => (change === wanted ? [key] : []));
  const stayed = before.servers.map(({ key }) => key).filter((key) => keys.has(key));
  const stays = after.servers.map(({ key }) => key).filter((key) => known.has(key));
  const settings = Object.keys(after.gateway) as (keyof Config['gateway'])[];
  return {
    added: of('added'),
    removed: [...known.keys()].filter((key) => !keys.has(key)),
    replaced: of('replaced'),
    adjusted: of('adjusted'),
    unchanged: of('unchanged'),
    isReordered: !isDeepStrictEqual(stayed, stays),
    gateway: settings.filter((name) => !isDeepStrictEqual(before.gateway[name], after.gateway[name])),
  };
}

const LARGEST_FIRST = ['added', 'replaced', 'adjusted', 'unchanged'] as const;

export type ServerChange = (typeof LARGEST_FIRST)[number];

/** Kind of change between two states of one server. */
export function changeOf(before: ServerConfig | undefined, after: ServerConfig): ServerChange {
  if (before === undefined) return 'added';
  if (!isDeepStrictEqual(ofProcess(before), ofProcess(after))) return 'replaced';
  return isDeepStrictEqual(ofTrunkline(before), ofTrunkline(after)) ? 'unchanged' : 'adjusted';
}

/** The settings that need a new process when they change. */
function ofProcess(server: ServerConfig) {
  const { spec, problem, sharing, era, maxFrameBytes, maxUnwrittenBytes, actsForUsers } = server;
  const { timeouts: _, restart: __, ...run } = spec ?? {};
  // A problem that only moved to another line is the same problem.
  const limits = { maxFrameBytes, maxUnwrittenBytes };
  return { run, sharing, era, limits, actsForUsers, message: problem?.message, hint: problem?.hint };
}

/** The other settings, which apply to a running process at once. */
function ofTrunkline({
  spec: _,
  problem: __,
  package: ___,
  references: ____,
  secrets: _____,
  ...others
}: ServerConfig) {
  return others;
}

/** Whether the two configurations differ. */
export function isChange({ added, removed, replaced, adjusted, isReordered, gateway }: ConfigChanges): boolean {
  return [added, removed, replaced, adjusted, gateway].some((keys) => keys.length > 0) || isReordered;
}
