import * as z from 'zod/mini';
import { isRecord } from '../../wire/json/json-value.js';
import { didYouMean, hintFor } from '../../wire/json/suggest.js';
import type { CallRule } from '../rules/rule.js';
import type { Address, StoreLocation } from '../schema/cluster-address.js';
import { type FileData, fileSchema, type ServerEntry, sharedFileSchema } from '../schema/schema.js';
import { usableServerKey } from '../schema/server-key.js';
import {
  GATEWAY_SETTINGS,
  type HTTP_SETTINGS,
  SERVER_SETTINGS,
  settingsOf,
  type ValuesOf,
} from '../schema/settings.js';
import {
  ConfigError,
  type ConfigProblem,
  formatPath,
  locateFault,
  type Path,
  type PathPosition,
  ServerFault,
  type ServerProblem,
} from './config-error.js';
import { parseYaml, type YamlSource } from './yaml-source.js';

/**
 * A checked configuration file, with defaults filled in and durations and sizes as numbers. Variables and packages are not
 * resolved yet. The value is plain data, so that it can be cached as JSON.
 */
export interface CheckedFile {
  /** In the order of the file, without those that are `disabled`. */
  readonly servers: readonly WrittenServer[];
  /** The keys of the servers that are `disabled`. */
  readonly disabled: readonly string[];
  /** The names in `defaults.env`. */
  readonly sharedVariables: readonly string[];
  /** What `defaults` has for servers of other files, below the `defaults` of those. Its variables are for this file only. */
  readonly shared: SharedDefaults;
  /** The words of the commands that print secrets, by the names of the secrets. */
  readonly secretCommands: Readonly<Record<string, readonly string[]>>;
  readonly gateway: WrittenGateway & { readonly startLimit?: number; readonly cluster?: WrittenCluster };
  readonly warnings: readonly ConfigProblem[];
}

/** Includes the variables of `defaults.env` if the server has a program, and `defaults.envFile` unless the entry has its own `envFile`. */
export interface WrittenServer extends EntryWithDefaults {
  /** The reason why the server cannot run on any machine; set for remote servers below `mcpServers`. */
  readonly problem?: ServerProblem;
  /** The position of the entry, then those of its values. */
  readonly positions: readonly PathPosition[];
}

interface EntryWithDefaults extends Omit<ServerEntry, 'settings' | 'rules' | 'interceptors'> {
  readonly key: string;
  /** Its own rules, then those of `defaults`. */
  readonly rules?: readonly CallRule[];
  /** Its own interceptors, then those of `defaults`. Absent if there are none. */
  readonly interceptors?: readonly string[];
  /** Whether the server is an interceptor of others, or of a view. */
  readonly isInterceptor?: true;
  readonly settings: ServerSettings;
}

interface SharedDefaults {
  readonly settings: NonNullable<FileData['defaults']>['settings'];
  readonly rules: readonly CallRule[];
  readonly interceptors: readonly string[];
}

const NO_DEFAULTS: SharedDefaults = { settings: {}, rules: [], interceptors: [] };

/** The settings of a server, completed from `defaults:` and from the built-in defaults. */
export type ServerSettings = ValuesOf<typeof SERVER_SETTINGS>;

export type ServersKey = 'servers' | 'mcpServers';

export type GatewayConfig = WrittenGateway & {
  readonly startLimit: number;
  /** The cluster of this gateway. Absent if it is alone, or shares its key only. */
  readonly cluster?: ClusterConfig | FaultyCluster | undefined;
};

/** The settings whose values need nothing of this machine. */
type WrittenGateway = Omit<ValuesOf<typeof GATEWAY_SETTINGS>, 'http' | 'startLimit'> & {
  readonly http: HttpConfig;
  /** The settings of traces. Absent if only the environment decides. */
  readonly tracing?: TracingConfig | undefined;
  /** In the order of the file. */
  readonly views: readonly ViewConfig[];
  /** The views of clients that name no view: globs over client names, in the order of the file. */
  readonly clientViews: readonly { readonly client: string; readonly view: string }[];
};

/** Settings of traces. `resolveConfig` resolves references in the endpoint and the headers. `fault` is the reason if it cannot. */
export type TracingConfig = NonNullable<NonNullable<FileData['gateway']>['tracing']> | { readonly fault: string };

export type WrittenCluster = NonNullable<NonNullable<FileData['gateway']>['cluster']>;

/** The files of a cluster; absolute. */
interface ClusterFiles {
  readonly storePasswordFile?: string;
  readonly storeCaFile?: string;
}

/** The settings of a cluster that cannot be used, because a variable is not set, or an address is not valid. */
interface FaultyCluster extends ClusterFiles {
  readonly fault: string;
}

/** The settings of a cluster. Variables are replaced. */
export interface ClusterConfig extends ClusterFiles {
  readonly store: StoreLocation;
  readonly storeUser?: string;
  /** The beginning of all keys in the store. */
  readonly name: string;
  /** The address at which the other gateways reach this one, as `HOST:PORT`. */
  readonly advertise: string;
  readonly listen: Address;
}

export interface HttpConfig extends ValuesOf<typeof HTTP_SETTINGS> {
  /** The URL that clients use, without a path. */
  readonly publicUrl?: string | undefined;
  /** Absent if all clients have one token. */
  readonly auth?: AuthConfig | undefined;
}

/** The users of the HTTP server. Paths are relative to the folder of the file until `resolveConfig` has resolved them. */
export type AuthConfig = NonNullable<WrittenHttp['auth']>;

export type FrontConfig = NonNullable<AuthConfig['front']>;

type WrittenHttp = NonNullable<NonNullable<FileData['gateway']>['http']>;

/** A selection of servers and of their tools, and the groups of users who get it. A missing member selects everything. */
export type ViewConfig = Omit<NonNullable<FileData['views']>[string], 'rules'> & {
  readonly name: string;
  readonly rules?: readonly CallRule[];
};

/**
 * Checks the text of a configuration file. Throws a `ConfigError` with all mistakes; `file` is the file's name in messages. `beneath` are the
 * defaults of the user, for the file of a project.
 */
export function checkFile(text: string, file: string, beneath = NO_DEFAULTS): CheckedFile {
  try {
    return checkText(text, file, beneath);
  } catch (cause) {
    // Parser and schema recurse into values, and pass all mistakes as arguments of one call.
    if (!(cause instanceof RangeError)) throw cause;
    const message = 'the file is nested too deeply, or has too many mistakes to list them';
    throw new ConfigError('config-invalid', file, [{ message }], { cause });
  }
}

function checkText(text: string, file: string, beneath: SharedDefaults): CheckedFile {
  const source = parseYaml(text, file);
  const root = serversKey(source, file);
  const data = check(source, root, file);
  const { defaults: { env: shared = {}, envFile, rules: sharedRules = [] } = {} } = data;
  const all = Object.entries(data[root] ?? {});
  const entries = all.filter(([, { settings }]) => settings.disabled !== true);
  const [first, ...rest] = [...viewFaults(data, root), ...interceptorFaults(data, root)].map(
    ({ path, message, hint }) => ({
      message: `${formatPath(path)}: ${message}`,
      hint,
      ...source.positionOf(path),
    }),
  );
  if (first !== undefined) throw new ConfigError('config-invalid', file, [first, ...rest]);

  const inert = inertKeys(source.value, root);
  const servers = entries.map(([key, own]) => {
    const positions = positionsIn(own, { env: shared, envFile, rules: sharedRules }, [root, key], source);
    const problem = inert.has(key) && { problem: locateFault(inertFault(), positions) };
    const first = beneath.rules.length;
    return { ...toWrittenServer(key, own, data, root, beneath), positions: positions.map(behind(first)), ...problem };
  });
  const gateway = toCheckedGateway(data);
  return {
    servers,
    disabled: all.flatMap(([key, { settings }]) => (settings.disabled === true ? [key] : [])),
    sharedVariables: Object.keys(shared),
    shared: {
      settings: data.defaults?.settings ?? {},
      rules: rulesAt(['defaults', 'rules'], sharedRules),
      interceptors: data.defaults?.interceptors ?? [],
    },
    secretCommands: data.secretCommand ?? {},
    gateway,
    warnings: [
      ...unknownTopLevel(source, root),
      ...servers.flatMap(({ key, settings }) => settingWarnings(settings, [root, key], source)),
      ...servers.flatMap((server) => loginWarnings(server, gateway.http, [root, server.key], source)),
      ...gatewayWarnings(gateway, source),
    ],
  };
}

function toWrittenServer(
  key: string,
  entry: ServerEntry,
  data: FileData,
  root: ServersKey,
  beneath: SharedDefaults,
): EntryWithDefaults {
  const { defaults: { settings: shared, env, envFile, rules: sharedRules, interceptors: all } = { settings: {} } } =
    data;
  const settings = withFloor(beneath.settings, settingsOf(SERVER_SETTINGS, beneath.settings, shared, entry.settings));
  const { rules: own, interceptors: named, ...others } = entry;
  const rules = [
    ...beneath.rules,
    ...rulesAt([root, key, 'rules'], own),
    ...rulesAt(['defaults', 'rules'], sharedRules),
  ];
  const isInterceptor = interceptorUses(data, root).some((use) => use.key === key);
  const interceptors = isInterceptor ? [] : [...new Set([...(named ?? []), ...(all ?? [])])];
  return {
    ...(envFile !== undefined && { envFile }),
    ...others,
    ...(rules.length > 0 && { rules }),
    ...(interceptors.length > 0 && { interceptors }),
    ...(isInterceptor && { isInterceptor }),
    key,
    env: { ...(entry.url === undefined && env), ...entry.env },
    settings: isInterceptor ? ofInterceptor(settings) : sharedIfSole(settings),
  };
}

function sharedIfSole(settings: ServerSettings): ServerSettings {
  return settings.placement === 'one' ? { ...settings, sharing: 'all' } : settings;
}

/** The settings of an interceptor, which looks at the requests of all clients, each within `interceptorTimeout`. */
function ofInterceptor(settings: ServerSettings): ServerSettings {
  const { interceptorTimeoutMs: timeoutMs, maxWaitMs } = settings;
  return { ...settings, sharing: 'all', timeoutMs, maxTimeoutMs: timeoutMs, maxWaitMs: Math.min(maxWaitMs, timeoutMs) };
}

/** The settings of a project's server, which cannot end the sandbox or the approval that the user wants for all servers. */
function withFloor(floor: SharedDefaults['settings'], settings: ServerSettings): ServerSettings {
  const isLoosened = settings.sandbox === false && (floor.sandbox ?? false) !== false;
  const approval = floor.approval === 'required' ? floor.approval : settings.approval;
  return { ...settings, sandbox: isLoosened || settings.sandbox, approval };
}

/** Moves the positions of rules behind those of the user, which decide first, so that no `allow` of a project opens what they deny. */
function behind(first: number): (position: PathPosition) => PathPosition {
  return (position) => {
    const [root = '', key = '', name, index, ...steps] = position.path;
    if (name !== 'rules' || typeof index !== 'number') return position;
    return { ...position, path: [root, key, name, first + index, ...steps] };
  };
}

function toCheckedGateway({ gateway, views = {}, clients = {} }: FileData): CheckedFile['gateway'] {
  const { settings: limits = {}, publicUrl, auth } = gateway?.http ?? {};
  const { http, ...settings } = settingsOf(GATEWAY_SETTINGS, { ...gateway?.settings, http: limits });
  return {
    ...settings,
    ...(gateway?.tracing !== undefined && { tracing: gateway.tracing }),
    ...(gateway?.cluster !== undefined && { cluster: gateway.cluster }),
    http: {
      ...http,
      maxPartialBytes: Math.max(http.maxPartialBytes, http.maxBodyBytes),
      ...(publicUrl !== undefined && { publicUrl: new URL(publicUrl).origin }),
      ...(auth && { auth }),
    },
    views: Object.entries(views).map(([name, { rules, ...view }]) => ({
      name,
      ...view,
      ...(rules !== undefined && { rules: rulesAt(['views', name, 'rules'], rules) }),
    })),
    clientViews: Object.entries(clients).map(([client, view]) => ({ client, view })),
  };
}

/** Rules with their places in the file. The schema has checked that each of them has `then`. */
function rulesAt(path: Path, rules: ServerEntry['rules'] = []): CallRule[] {
  return rules.map(({ then: verdict = 'deny', ...rule }, index) => {
    return { ...rule, verdict, at: formatPath([...path, index]) } as CallRule;
  });
}

function serversKey({ value, positionOfKey }: YamlSource, file: string): ServersKey {
  if (!isRecord(value) || !Object.hasOwn(value, 'mcpServers')) return 'servers';
  if (!Object.hasOwn(value, 'servers')) return 'mcpServers';
  throw new ConfigError('config-invalid', file, [
    {
      message: 'found both `servers` and `mcpServers`, which mean the same; only one of them is allowed',
      hint: 'move all servers to one of them, and remove the other',
      ...positionOfKey(['mcpServers']),
    },
  ]);
}

function check(source: YamlSource, root: ServersKey, file: string): FileData {
  const { value } = source;
  if (value === null || (isRecord(value) && value[root] === null)) throw noServers(source, root, file);
  // A file with `mcpServers` may belong to another program and contain settings of that program.
  const schema = root === 'mcpServers' ? sharedFileSchema : fileSchema;
  const { data, error } = schema.safeParse(withStandIns(value, root));
  const [first, ...rest] = toProblems(error?.issues ?? [], fileSchema, source);
  if (first !== undefined) throw new ConfigError('config-invalid', file, [first, ...rest]);
  if (data === undefined || Object.keys(data[root] ?? {}).length === 0) throw noServers(source, root, file);
  return data;
}

function noServers({ positionOf }: YamlSource, root: ServersKey, file: string): ConfigError {
  const problem = {
    message: `there are no servers; expected at least one below \`${root}:\``,
    hint: `for example:\n${EXAMPLE}`,
    ...positionOf([root]),
  };
  return new ConfigError('config-invalid', file, [problem]);
}

const EXAMPLE = `servers:
  files: { package: "@modelcontextprotocol/server-filesystem", args: ["\${HOME}"] }`;

function unknownTopLevel({ value, positionOfKey }: YamlSource, root: ServersKey): ConfigProblem[] {
  if (root !== 'mcpServers' || !isRecord(value)) return [];
  return Object.keys(value)
    .filter((key) => !Object.hasOwn(fileSchema.shape, key))
    .map((key) => ({
      message: `ignored the unknown key \`${key}\``,
      hint: unknownKeyHint(key, Object.keys(fileSchema.shape)),
      ...positionOfKey([key]),
    }));
}

/** The position of the entry, then those of all its values. Values from `defaults` come last. */
function positionsIn(
  entry: ServerEntry,
  { env, envFile, rules }: { readonly env: object; readonly envFile: string | undefined; readonly rules: object[] },
  root: Path,
  { value, positionOf, positionOfKey }: YamlSource,
): readonly PathPosition[] {
  const [servers = '', key = ''] = root;
  const entries = isRecord(value) ? value[String(servers)] : undefined;
  const own = isRecord(entries) ? entries[String(key)] : undefined;
  const inherited: (readonly [own: Path, shared: Path])[] = Object.keys(env)
    .filter((name) => !Object.hasOwn(entry.env ?? {}, name))
    .map((name) => [
      ['env', name],
      ['env', name],
    ]);
  if (envFile !== undefined && entry.envFile === undefined) inherited.push([['envFile'], ['envFile']]);
  // The rules of `defaults` follow those of the entry.
  const first = entry.rules?.length ?? 0;
  for (const [, index, ...steps] of pathsBelow(['rules'], rules))
    inherited.push([
      ['rules', first + Number(index), ...steps],
      ['rules', index ?? 0, ...steps],
    ]);
  return [
    { path: root, ...positionOfKey(root) },
    ...pathsBelow(root, own).map((path) => ({ path, ...positionOf(path) })),
    ...inherited.map(([steps, shared]) => {
      const inDefaults = ['defaults', ...shared];
      return { path: [...root, ...steps], inDefaults, ...positionOf(inDefaults) };
    }),
  ];
}

function pathsBelow(path: Path, value: unknown): Path[] {
  const steps = Array.isArray(value) ? [...value.entries()] : isRecord(value) ? Object.entries(value) : [];
  return steps.flatMap(([step, each]: [PropertyKey, unknown]) => {
    const below = [...path, step];
    return [below, ...pathsBelow(below, each)];
  });
}

/** Warnings about settings without effect, because another setting of the server at `path` overrules them. */
function settingWarnings(
  { timeoutMs, maxTimeoutMs, restart }: ServerSettings,
  path: readonly string[],
  { positionOfKey }: YamlSource,
): ConfigProblem[] {
  const pairs = [
    [timeoutMs > maxTimeoutMs, 'timeout', 'maxTimeout'],
    [restart.firstDelayMs > restart.maxDelayMs, 'restart.firstDelay', 'restart.maxDelay'],
    [restart.parkedProbeMs > restart.parkedProbeMaxMs, 'restart.parkedProbe', 'restart.parkedProbeMax'],
  ] as const;
  return pairs
    .filter(([isOverruled]) => isOverruled)
    .map(([, name, limit]) => ({
      message: `${formatPath(path)}: ${name} is longer than ${limit}, so ${limit} applies; change one of them`,
      ...positionOfKey(path),
    }));
}

function loginWarnings(
  { login }: WrittenServer,
  { auth }: HttpConfig,
  path: readonly string[],
  { positionOfKey }: YamlSource,
): ConfigProblem[] {
  if (login !== 'user' || auth?.jwt !== undefined) return [];
  const needs = '`login: user` needs `gateway.http.auth.jwt`, because only persons with tokens of an identity provider';
  const effect = auth === undefined ? 'so it has no effect now' : 'so nobody can use the server over HTTP now';
  const message = `${formatPath(path)}: ${needs} have logins of their own, ${effect}; add \`auth.jwt\`, or remove \`login\``;
  return [{ message, ...positionOfKey([...path, 'login']) }];
}

/** Warnings about settings of the HTTP server and of views that need other settings. */
function gatewayWarnings(
  { http: { maxSessions, maxConnections, auth }, views, clientViews }: CheckedFile['gateway'],
  { positionOfKey }: YamlSource,
): ConfigProblem[] {
  const grouped = views.find(({ groups }) => groups !== undefined)?.name;
  const found: readonly (readonly [isMistaken: boolean, message: string, ...path: string[]])[] = [
    [
      maxSessions > maxConnections,
      `gateway.http: maxSessions (${maxSessions}) is greater than maxConnections (${maxConnections}), but each listening client holds a connection; raise maxConnections`,
      ...['gateway', 'http'],
    ],
    [
      grouped !== undefined && auth === undefined,
      `views.${grouped}: \`groups\` has no effect without \`gateway.http.auth\`, because only users have groups; add \`auth\` or remove \`groups\``,
      ...['views', grouped ?? '', 'groups'],
    ],
    [
      grouped !== undefined && auth !== undefined && clientViews.length > 0,
      '`clients` has no effect over HTTP, because a view has `groups`: users get the first view of their groups',
      'clients',
    ],
  ];
  return found
    .filter(([isMistaken]) => isMistaken)
    .map(([, message, ...path]) => ({ message, ...positionOfKey(path) }));
}

// Files with `mcpServers` are often those of other programs. Their entries with a URL were inert before Trunkline could connect to remote
// servers, so a new version must not start to send requests because of them.

const REMOTE_TYPES = new Set<unknown>(['http', 'sse', 'streamable-http', 'streamableHttp', 'ws', 'websocket']);

/** The keys of remote servers below `mcpServers`, in a file that is not checked yet. */
function inertKeys(file: unknown, root: string): ReadonlySet<string> {
  const remote = entriesOf(file, root).filter(([, entry]) => root === 'mcpServers' && isRemote(entry));
  return new Set(remote.map(([key]) => key));
}

/**
 * Replaces each remote entry below `mcpServers` by an entry that passes the schema, because other programs define further keys for them.
 * The keys of the servers stay, so that the schema checks them.
 */
function withStandIns(file: unknown, root: string): unknown {
  const entries = root === 'mcpServers' ? entriesOf(file, root) : [];
  if (!isRecord(file) || entries.length === 0) return file;
  const checked = entries.map(([key, entry]) => [key, isRemote(entry) ? standIn(entry) : entry] as const);
  return { ...file, [root]: Object.fromEntries(checked) };
}

function inertFault(): ServerFault {
  return new ServerFault(
    'servers behind a URL are used below `servers:` only, because files with `mcpServers` belong to other programs, too',
    'rename `mcpServers` to `servers` if this file is for Trunkline alone, or set `disabled: true` for this server',
  );
}

type RemoteEntry = Readonly<Record<string, unknown>>;

function entriesOf(file: unknown, root: string): [string, unknown][] {
  if (!isRecord(file) || !Object.hasOwn(file, root) || !isRecord(file[root])) return [];
  return Object.entries(file[root]);
}

function isRemote(entry: unknown): entry is RemoteEntry {
  if (!isRecord(entry)) return false;
  return Object.hasOwn(entry, 'url') || (Object.hasOwn(entry, 'type') && REMOTE_TYPES.has(entry.type));
}

function standIn(entry: RemoteEntry) {
  return { command: 'remote', disabled: Object.hasOwn(entry, 'disabled') && entry.disabled === true };
}

/** A reference to a server or a view that cannot be used there. */
interface ViewFault {
  readonly path: (string | number)[];
  readonly message: string;
  readonly hint: string;
}

/** Finds the references of views and clients to unknown servers and views. */
function viewFaults({ views = {}, clients = {}, ...data }: FileData, root: ServersKey): ViewFault[] {
  const servers = Object.keys(data[root] ?? {});
  const ofViews = Object.entries(views).flatMap(([name, { servers: keys = [] }]) =>
    keys.flatMap((key, index) => {
      return servers.includes(key) ? [] : [fault(['views', name, 'servers', index], 'server', key, servers)];
    }),
  );
  const names = Object.keys(views);
  const ofClients = Object.entries(clients).flatMap(([client, view]) => {
    return names.includes(view) ? [] : [fault(['clients', client], 'view', view, names)];
  });
  return [...ofViews, ...ofClients];
}

function interceptorUses(
  { defaults, views = {}, ...data }: FileData,
  root: ServersKey,
): readonly { readonly path: (string | number)[]; readonly key: string }[] {
  const lists: [(string | number)[], readonly string[]][] = [
    [['defaults', 'interceptors'], defaults?.interceptors ?? []],
    ...Object.entries(data[root] ?? {}).flatMap(([key, { settings, interceptors = [] }]) =>
      settings.disabled === true ? [] : [[[root, key, 'interceptors'], interceptors] as [string[], readonly string[]]],
    ),
    ...Object.entries(views).map(([name, { interceptors = [] }]): [string[], readonly string[]] => [
      ['views', name, 'interceptors'],
      interceptors,
    ]),
  ];
  return lists.flatMap(([path, keys]) => keys.map((key, index) => ({ path: [...path, index], key })));
}

/** Finds interceptors that are unknown or disabled, and those that have interceptors themselves. */
function interceptorFaults(data: FileData, root: ServersKey): ViewFault[] {
  const servers = data[root] ?? {};
  const uses = interceptorUses(data, root);
  const ofUses = uses.flatMap(({ path, key }): ViewFault[] => {
    const entry = Object.hasOwn(servers, key) ? servers[key] : undefined;
    if (entry === undefined) return [fault(path, 'server', key, Object.keys(servers))];
    if (entry.settings.disabled !== true) return [];
    const message = `the server \`${key}\` is disabled, so it can look at nothing, and everything would be refused`;
    return [{ path, message, hint: 'remove `disabled: true` there, or this interceptor' }];
  });
  const ofEntries = Object.entries(servers).flatMap(([key, { interceptors = [] }]): ViewFault[] => {
    const use = uses.find((each) => each.key === key);
    if (use === undefined || interceptors.length === 0) return [];
    const isOwn = interceptors.includes(key);
    const message = isOwn
      ? 'an interceptor cannot look at its own messages'
      : `this server is an interceptor itself (${formatPath(use.path)}), and nothing looks at the messages of an interceptor`;
    return [{ path: [root, key, 'interceptors'], message, hint: `remove the interceptors of \`${key}\`` }];
  });
  return [...ofUses, ...ofEntries];
}

function fault(path: ViewFault['path'], kind: 'server' | 'view', name: string, known: readonly string[]): ViewFault {
  const others = known.length === 0 ? `add it below \`${kind}s:\`` : `use one of: ${known.join(', ')}`;
  return { path, message: `there is no ${kind} \`${name}\``, hint: hintFor(name, known, others) };
}

type Issue = z.core.$ZodIssue;

/** Converts the issues of the schema to problems with messages and positions, in the order of the file. */
function toProblems(issues: readonly Issue[], schema: z.ZodMiniType, source: YamlSource): ConfigProblem[] {
  // A key that seems to be missing may be present under a misspelled name.
  const misspelled = new Set(
    issues.filter(({ code }) => code === 'unrecognized_keys').map(({ path }) => formatPath(path)),
  );
  return issues
    .filter((issue) => !(isAboutKey(issue) && misspelled.has(formatPath(issue.path))))
    .flatMap((issue) => toProblem(issue, schema, source))
    .sort((one, other) => (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0));
}

function unknownKeyHint(key: string, known: readonly string[]): string {
  return hintFor(key, known, `expected one of ${known.join(', ')}`);
}

function toProblem(issue: Issue, schema: z.ZodMiniType, source: YamlSource): ConfigProblem[] {
  const { path } = issue;
  const inMap = issuesInMap(issue);
  if (inMap !== undefined) return inMap.flatMap((each) => toProblem(each, schema, source));
  const prefix = path.length === 0 ? '' : `${formatPath(path)}: `;
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(schema, path);
    return issue.keys.map((key) => ({
      message: `${prefix}unknown key \`${key}\``,
      hint: unknownKeyHint(key, known),
      ...source.positionOfKey([...path, key]),
    }));
  }
  if (issue.code === 'invalid_key') {
    // Only keys of servers have an obvious correction, not names of variables.
    const usable = path.at(-2) === 'env' ? undefined : usableServerKey(String(path.at(-1)));
    return [
      {
        message: `${prefix}${issue.issues[0]?.message ?? issue.message}`,
        ...(usable !== undefined && { hint: didYouMean(usable) }),
        ...source.positionOfKey(path),
      },
    ];
  }
  const position = isAboutKey(issue) ? source.positionOfKey(path) : source.positionOf(path);
  return [{ message: `${prefix}${issue.message}`, ...position }];
}

/** The issues within a map, if a value may be a word or a map and is a map. The map comes last. */
function issuesInMap(issue: Issue): readonly Issue[] | undefined {
  if (issue.code !== 'invalid_union') return undefined;
  const ofMap = issue.errors.at(-1) ?? [];
  const isOfOtherType = ofMap.some(({ code, path }) => code === 'invalid_type' && path.length === 0);
  return isOfOtherType || ofMap.length === 0
    ? undefined
    : ofMap.map((each) => ({ ...each, path: [...issue.path, ...each.path] }) as Issue);
}

/** Whether the issue is reported at a key instead of a value. The schema marks such issues. */
function isAboutKey(issue: Issue): boolean {
  return issue.code === 'custom' && issue.params?.aboutKey === true;
}

function keysAt(schema: z.ZodMiniType, path: Path): string[] {
  let current: unknown = schema;
  for (const step of path) {
    current = unwrap(current);
    if (current instanceof z.ZodMiniObject)
      current = new Map<PropertyKey, unknown>(Object.entries(current.shape)).get(step);
    else if (current instanceof z.ZodMiniRecord) current = current._zod.def.valueType;
    else if (current instanceof z.ZodMiniArray) current = current._zod.def.element;
  }
  current = unwrap(current);
  return current instanceof z.ZodMiniObject ? Object.keys(current.shape) : [];
}

/** The schema of a value, without the schemas around it that make the value optional or convert it. */
function unwrap(schema: unknown): unknown {
  if (schema instanceof z.ZodMiniExactOptional) return unwrap(schema._zod.def.innerType);
  // A value that may be a word or a map. The map comes last.
  if (schema instanceof z.ZodMiniUnion) return unwrap(schema._zod.def.options.at(-1));
  return schema instanceof z.ZodMiniPipe ? unwrap(schema._zod.def.in) : schema;
}
