import * as z from 'zod/mini';
import { isRecord } from '../../json/json-value.js';
import { didYouMean, suggest } from '../../json/suggest.js';
import { type FileData, fileSchema, type ServerEntry, sharedFileSchema } from '../schema/schema.js';
import { usableServerKey } from '../schema/server-key.js';
import { GATEWAY_SETTINGS, SERVER_SETTINGS, settingsOf } from '../schema/settings.js';
import type { CheckedFile, CheckedServer, ServerSettings, ServersKey } from './checked-file.js';
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
 * Checks the text of a configuration file. Throws a `ConfigError` with all mistakes in the text; `file` is the name for
 * its messages.
 */
export function checkFile(text: string, file: string): CheckedFile {
  try {
    return checkText(text, file);
  } catch (cause) {
    // Parser and schema go down into a value by recursion, and collect mistakes as arguments of a call.
    if (!(cause instanceof RangeError)) throw cause;
    const message = 'the file is nested too deeply, or has too many mistakes to list them';
    throw new ConfigError('config-invalid', file, [{ message }], { cause });
  }
}

function checkText(text: string, file: string): CheckedFile {
  const source = parseYaml(text, file);
  const root = serversKey(source, file);
  const data = check(source, root, file);
  const { defaults: { env: shared = {}, envFile } = {} } = data;
  const entries = Object.entries(data[root] ?? {}).filter(([, { settings }]) => settings.disabled !== true);
  const [first, ...rest] = viewFaults(data, root).map(({ path, message, hint }) => ({
    message: `${formatPath(path)}: ${message}`,
    hint,
    ...source.positionOf(path),
  }));
  if (first !== undefined) throw new ConfigError('config-invalid', file, [first, ...rest]);

  const remote = remoteKeys(source.value, root);
  const servers = entries.map(([key, own]): CheckedServer => {
    const positions = positionsIn(own, { env: shared, ...(envFile !== undefined && { envFile }) }, [root, key], source);
    const problem: ServerProblem | undefined = remote.has(key) ? locateFault(remoteFault(), positions) : undefined;
    return { ...toCheckedServer(key, own, data), positions, ...(problem && { problem }) };
  });
  const gateway = toCheckedGateway(data);
  return {
    servers,
    sharedVariables: Object.keys(shared),
    secretCommands: data.secretCommand ?? {},
    gateway,
    warnings: [
      ...unknownTopLevel(source, root),
      ...servers.flatMap(({ key, settings }) => settingWarnings(settings, [root, key], source)),
      ...gatewayWarnings(gateway, source),
    ],
  };
}

/** One server of the file. The caller adds its positions. */
function toCheckedServer(
  key: string,
  { settings: own, ...entry }: ServerEntry,
  { defaults: { settings: shared, env, envFile } = { settings: {} } }: FileData,
): Omit<CheckedServer, 'positions'> {
  return {
    key,
    entry: { ...(envFile !== undefined && { envFile }), ...entry, env: { ...env, ...entry.env } },
    settings: settingsOf(SERVER_SETTINGS, shared, own),
  };
}

function toCheckedGateway({ gateway, views = {}, clients = {} }: FileData): CheckedFile['gateway'] {
  const { http, ...settings } = settingsOf(GATEWAY_SETTINGS, gateway?.settings ?? {});
  return {
    ...settings,
    http: { ...http, maxPartialBytes: Math.max(http.maxPartialBytes, http.maxBodyBytes) },
    views: Object.entries(views).map(([name, view]) => ({ name, ...view })),
    clientViews: Object.entries(clients).map(([client, view]) => ({ client, view })),
  };
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
  // A file of another program may contain settings of that program.
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

/** The position of the entry, then those of all its values that are resolved later, with the values of `defaults` at the end. */
function positionsIn(
  entry: ServerEntry,
  shared: Required<Pick<ServerEntry, 'env'>> & Pick<ServerEntry, 'envFile'>,
  root: Path,
  { positionOf, positionOfKey }: YamlSource,
): readonly PathPosition[] {
  const resolved: Path[] = [
    ...(entry.args ?? []).map((_, index) => ['args', index]),
    ...Object.keys(entry.env ?? {}).map((name) => ['env', name]),
    ...(shared.envFile === undefined || entry.envFile !== undefined ? [['envFile']] : []),
    ['cwd'],
    ['command'],
    ['package'],
    ...valuePaths(entry.tools),
  ];
  const inside = resolved.map((steps) => [...root, ...steps]);
  const inherited = Object.keys(shared.env)
    .filter((name) => !Object.hasOwn(entry.env ?? {}, name))
    .map((name) => ['env', name]);
  if (shared.envFile !== undefined && entry.envFile === undefined) inherited.push(['envFile']);
  return [
    { path: root, ...positionOfKey(root) },
    ...inside.map((path) => ({ path, ...positionOf(path) })),
    ...inherited.map((steps) => {
      const origin = ['defaults', ...steps];
      return { path: [...root, ...steps], origin, ...positionOf(origin) };
    }),
  ];
}

/** Paths of the values of parameters within an entry of a server. */
function valuePaths({ params = {} }: NonNullable<ServerEntry['tools']> = {}): string[][] {
  return Object.entries(params).flatMap(([tool, shapes]) =>
    (['set', 'default'] as const).flatMap((key) =>
      Object.keys(shapes[key] ?? {}).map((param) => ['tools', 'params', tool, key, param]),
    ),
  );
}

/** Warnings about settings of the server at `path` that another setting makes ineffective. */
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

/** A warning about more sessions than connections. */
function gatewayWarnings(
  { http: { maxSessions, maxConnections } }: CheckedFile['gateway'],
  { positionOfKey }: YamlSource,
): ConfigProblem[] {
  if (maxSessions <= maxConnections) return [];
  const message = `gateway.http: maxSessions (${maxSessions}) is greater than maxConnections (${maxConnections}), but each listening client holds a connection; raise maxConnections`;
  return [{ message, ...positionOfKey(['gateway', 'http']) }];
}

const REMOTE_TYPES = new Set<unknown>(['http', 'sse', 'streamable-http', 'streamableHttp', 'ws', 'websocket']);

/** The keys of remote servers, which have a URL instead of a program, in a file that is not checked yet. */
function remoteKeys(file: unknown, root: string): ReadonlySet<string> {
  const remote = entriesOf(file, root).filter(([, entry]) => isRemote(entry));
  return new Set(remote.map(([key]) => key));
}

/**
 * Returns the file with each remote entry replaced by an entry that passes the schema.
 *
 * Other programs define additional keys for remote entries, which are not mistakes here. The keys of the servers stay,
 * so that they are checked like all others.
 */
function withStandIns(file: unknown, root: string): unknown {
  const entries = entriesOf(file, root);
  if (!isRecord(file) || entries.length === 0) return file;
  const checked = entries.map(([key, entry]) => [key, isRemote(entry) ? standIn(entry) : entry] as const);
  return { ...file, [root]: Object.fromEntries(checked) };
}

function remoteFault(): ServerFault {
  return new ServerFault(
    'remote servers are not supported yet; expected `package` or `command`',
    'set `disabled: true` to ignore this server, or use `command` to run a local bridge to the URL',
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

/** A reference to a server or view that does not exist. */
interface ViewFault {
  readonly path: (string | number)[];
  readonly message: string;
  readonly hint: string;
}

/** References of views and clients to servers and views that the file does not have. */
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

function fault(path: ViewFault['path'], kind: 'server' | 'view', name: string, known: readonly string[]): ViewFault {
  const meant = suggest(name, known);
  const others = known.length === 0 ? `add it below \`${kind}s:\`` : `use one of: ${known.join(', ')}`;
  const hint = meant === undefined ? others : didYouMean(meant);
  return { path, message: `there is no ${kind} \`${name}\``, hint };
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

/** A hint for a key that is not among the known ones. */
function unknownKeyHint(key: string, known: readonly string[]): string {
  const nearest = suggest(key, known);
  return nearest === undefined ? `expected one of ${known.join(', ')}` : didYouMean(nearest);
}

function toProblem(issue: Issue, schema: z.ZodMiniType, source: YamlSource): ConfigProblem[] {
  const { path } = issue;
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
    // Names of variables are keys as well, but only keys of servers have an obvious correction.
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

/** Whether the schema marked the issue as one to report at a key instead of a value. */
function isAboutKey(issue: Issue): boolean {
  return issue.code === 'custom' && issue.params?.aboutKey === true;
}

/** The keys that the schema knows for the map at `path`. */
function keysAt(schema: z.ZodMiniType, path: Path): string[] {
  let current: unknown = schema;
  for (const step of path) {
    current = unwrap(current);
    if (current instanceof z.ZodMiniObject)
      current = new Map<PropertyKey, unknown>(Object.entries(current.shape)).get(step);
    else if (current instanceof z.ZodMiniRecord) current = current._zod.def.valueType;
  }
  current = unwrap(current);
  return current instanceof z.ZodMiniObject ? Object.keys(current.shape) : [];
}

/** The schema of a value, without the steps around it: it may be missing, and may be converted. */
function unwrap(schema: unknown): unknown {
  if (schema instanceof z.ZodMiniExactOptional) return unwrap(schema._zod.def.innerType);
  return schema instanceof z.ZodMiniPipe ? unwrap(schema._zod.def.in) : schema;
}
