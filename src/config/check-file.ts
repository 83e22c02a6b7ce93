import type * as z from 'zod/mini';
import { isRecord } from '../json/is-record.js';
import type { GatewayConfig, ServerProblem } from './config.js';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { SWITCH_DEFAULTS } from './defaults.js';
import { GATEWAY_BUILT_IN } from './gateway-settings.js';
import { type HttpSection, toHttpConfig } from './http-settings.js';
import { toProblems, unknownKeyHint } from './problems.js';
import {
  fileSchema,
  type ServerEntry,
  type ServerSettings,
  sharedFileSchema,
  type Tunables,
  withDefaults,
} from './schema.js';
import { formatPath, locateFault, type Place, ServerFault } from './server-fault.js';
import type { Path } from './yaml-nodes.js';
import { parseYaml, type YamlSource } from './yaml-source.js';

/**
 * A checked configuration file: defaults are filled in, durations and sizes are numbers. Variables and packages of this
 * machine are not resolved yet. It is plain data, so that it can be cached as JSON.
 */
export interface CheckedFile {
  /** In the order of the file, without those that are `disabled`. */
  readonly servers: readonly CheckedServer[];
  /** The names in `defaults.env`. */
  readonly sharedVariables: readonly string[];
  readonly gateway: Omit<GatewayConfig, 'startLimit'> & { readonly startLimit: number | null };
  readonly warnings: readonly ConfigProblem[];
}

export interface CheckedServer {
  readonly key: string;
  /** With the variables of `defaults.env` in `env`. */
  readonly entry: ServerEntry;
  readonly settings: ServerSettings;
  /** Why the server cannot run on any machine; set for remote servers. */
  readonly problem?: ServerProblem;
  /** Places of the entry and of its values that are resolved later. */
  readonly places: readonly Place[];
}

/** Caches checked files. Checking takes longer than every other step of reading a configuration. */
export interface CheckedFileCache {
  find(file: string, text: string): CheckedFile | undefined;
  put(file: string, text: string, checked: CheckedFile): void;
}

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
  const { defaults: { env: shared = {}, ...defaults } = {}, gateway = {} } = data;
  const entries = Object.entries(data[root] ?? {}).filter(([, entry]) => !(entry.disabled ?? SWITCH_DEFAULTS.disabled));

  const remote = remoteKeys(source.value, root);
  const servers = entries.map(([key, own]): CheckedServer => {
    const places = placesIn(own, shared, [root, key], source);
    const entry = { ...own, env: { ...shared, ...own.env } };
    const problem: ServerProblem | undefined = remote.has(key) ? locateFault(remoteFault(), places) : undefined;
    return { key, entry, settings: withDefaults(entry, defaults), places, ...(problem && { problem }) };
  });
  return {
    servers,
    sharedVariables: Object.keys(shared),
    gateway: {
      startupWaitMs: gateway.startupWait ?? GATEWAY_BUILT_IN.startupWait,
      idleStopMs: gateway.idleStop ?? GATEWAY_BUILT_IN.idleStop,
      restartTool: gateway.restartTool ?? GATEWAY_BUILT_IN.restartTool,
      watch: gateway.watch ?? GATEWAY_BUILT_IN.watch,
      startLimit: gateway.startLimit ?? null,
      maxQueued: gateway.maxQueued ?? GATEWAY_BUILT_IN.maxQueued,
      maxPartialBytes: gateway.maxPartial ?? GATEWAY_BUILT_IN.maxPartial,
      lineTimeoutMs: gateway.lineTimeout ?? GATEWAY_BUILT_IN.lineTimeout,
      maxInstructionsBytes: gateway.maxInstructions ?? GATEWAY_BUILT_IN.maxInstructions,
      hub: gateway.hub ?? GATEWAY_BUILT_IN.hub,
      hubIdleMs: gateway.hubIdle ?? GATEWAY_BUILT_IN.hubIdle,
      hubClients: gateway.hubClients ?? GATEWAY_BUILT_IN.hubClients,
      http: toHttpConfig(gateway.http ?? {}),
    },
    warnings: [
      ...unknownTopLevel(source, root),
      ...entries.flatMap(([key, entry]) => settingWarnings(entry, defaults, [root, key], source)),
      ...gatewayWarnings(gateway, source),
    ],
  };
}

type ServersKey = 'servers' | 'mcpServers';

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

function check(source: YamlSource, root: ServersKey, file: string): z.output<typeof fileSchema> {
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

/** The place of the entry, then the places of all its values that are resolved later, those of `defaults.env` at the end. */
function placesIn(
  entry: ServerEntry,
  shared: Readonly<Record<string, string>>,
  root: Path,
  { positionOf, positionOfKey }: YamlSource,
): readonly Place[] {
  const resolved: Path[] = [
    ...(entry.args ?? []).map((_, index) => ['args', index]),
    ...Object.keys(entry.env ?? {}).map((name) => ['env', name]),
    ['cwd'],
    ['command'],
    ['package'],
  ];
  const inside = resolved.map((steps) => [...root, ...steps]);
  const inherited = Object.keys(shared).filter((name) => !Object.hasOwn(entry.env ?? {}, name));
  return [
    { path: root, ...positionOfKey(root) },
    ...inside.map((path) => ({ path, ...positionOf(path) })),
    ...inherited.map((name) => {
      const origin = ['defaults', 'env', name];
      return { path: [...root, 'env', name], origin, ...positionOf(origin) };
    }),
  ];
}

/** Warnings about settings of the server at `path` that another setting makes ineffective. */
function settingWarnings(
  entry: ServerEntry,
  defaults: Tunables,
  path: readonly string[],
  source: YamlSource,
): ConfigProblem[] {
  const { timeout, maxTimeout, restart } = withDefaults(entry, defaults);
  const pairs = [
    ['timeout', timeout, 'maxTimeout', maxTimeout],
    ['restart.firstDelay', restart.firstDelay, 'restart.maxDelay', restart.maxDelay],
    ['restart.parkedProbe', restart.parkedProbe, 'restart.parkedProbeMax', restart.parkedProbeMax],
  ] as const;
  return pairs
    .filter(([, value, , limit]) => value > limit)
    .map(([name, , limitName]) => ({
      message: `${formatPath(path)}: ${name} is longer than ${limitName}, so ${limitName} applies; change one of them`,
      ...source.positionOfKey(path),
    }));
}

/** Warnings about settings of the gateway that another setting makes ineffective. */
function gatewayWarnings({ http }: { readonly http?: HttpSection }, source: YamlSource): ConfigProblem[] {
  if (http === undefined) return [];
  const { maxSessions, maxConnections } = toHttpConfig(http);
  if (maxSessions <= maxConnections) return [];
  const path = ['gateway', 'http'];
  return [
    {
      message: `${formatPath(path)}: maxSessions (${maxSessions}) is greater than maxConnections (${maxConnections}), but each listening client holds a connection; raise maxConnections`,
      ...source.positionOfKey(path),
    },
  ];
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
