import { isRecord } from '../../json/is-record.js';
import { didYouMean, suggest } from '../../json/suggest.js';
import type { ServerProblem } from '../resolve/config.js';
import { formatPath, locateFault, type Place, ServerFault } from '../resolve/server-fault.js';
import { fileSchema, type ServerEntry, sharedFileSchema, type Tunables } from '../schema/schema.js';
import { valuePaths } from '../schema/tool-shapes.js';
import {
  type CheckedFile,
  type CheckedServer,
  enabledServers,
  type FileData,
  type HttpSection,
  overruledSettings,
  type ServersKey,
  toCheckedGateway,
  toCheckedServer,
  toHttpConfig,
  withDefaults,
} from './checked-file.js';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { toProblems, unknownKeyHint } from './problems.js';
import type { Path } from './yaml-nodes.js';
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
  const { defaults: { env: shared = {}, envFile, ...defaults } = {}, gateway = {} } = data;
  const entries = enabledServers(data, root);
  const [first, ...rest] = viewFaults(data, root).map(({ path, message, hint }) => ({
    message: `${formatPath(path)}: ${message}`,
    hint,
    ...source.positionOf(path),
  }));
  if (first !== undefined) throw new ConfigError('config-invalid', file, [first, ...rest]);

  const remote = remoteKeys(source.value, root);
  const servers = entries.map(([key, own]): CheckedServer => {
    const places = placesIn(own, { env: shared, ...(envFile !== undefined && { envFile }) }, [root, key], source);
    const problem: ServerProblem | undefined = remote.has(key) ? locateFault(remoteFault(), places) : undefined;
    return { ...toCheckedServer(key, own, data), places, ...(problem && { problem }) };
  });
  return {
    servers,
    sharedVariables: Object.keys(shared),
    secretCommands: data.secretCommand ?? {},
    gateway: toCheckedGateway(data),
    warnings: [
      ...unknownTopLevel(source, root),
      ...entries.flatMap(([key, entry]) => settingWarnings(entry, defaults, [root, key], source)),
      ...gatewayWarnings(gateway, source),
    ],
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

/** The place of the entry, then the places of all its values that are resolved later, those of `defaults` at the end. */
function placesIn(
  entry: ServerEntry,
  shared: Required<Pick<ServerEntry, 'env'>> & Pick<ServerEntry, 'envFile'>,
  root: Path,
  { positionOf, positionOfKey }: YamlSource,
): readonly Place[] {
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

/** Warnings about settings of the server at `path` that another setting makes ineffective. */
function settingWarnings(
  entry: ServerEntry,
  defaults: Tunables,
  path: readonly string[],
  source: YamlSource,
): ConfigProblem[] {
  return overruledSettings(withDefaults(entry, defaults)).map(([name, limitName]) => ({
    message: `${formatPath(path)}: ${name} is longer than ${limitName}, so ${limitName} applies; change one of them`,
    ...source.positionOfKey(path),
  }));
}

/** Warnings about settings of the gateway that another setting makes ineffective. */
function gatewayWarnings({ http }: { readonly http?: HttpSection }, source: YamlSource): ConfigProblem[] {
  const { maxSessions, maxConnections } = toHttpConfig(http ?? {});
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
