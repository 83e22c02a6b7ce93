// The settings of a configuration file, each with its default, its range and its description. The schema, the merged
// settings and their types are derived from these tables. `docs/configuration.md` gives the origin of each default.

import { bare, isLocalhost, isLoopback } from '../../host/http/addresses.js';

/** Settings that a server and `defaults:` can have. */
export const SHARED_SETTINGS = {
  timeout: duration('60s', 'How long a call may go without an answer or progress; progress restarts the timer.'),
  maxTimeout: duration(
    '600s',
    'Longest duration of a call, even with progress, and longest wait for the result of a task.',
  ),
  startTimeout: duration('60s', 'How long the server may take to answer initialize.', ['1ms', '300s']),
  installTimeout: duration(
    '300s',
    'How long the installation of the package may take. The wait for other installations does not count.',
    ['1s', '24h'],
  ),
  listTimeout: duration('30s', 'How long listing tools, resources or prompts may take.'),
  concurrency: count(64, 'Concurrency limit: calls that the server may work on at once.', [1, 1024]),
  maxQueued: count(
    64,
    'Calls that may wait in the queue of this server. Further calls are refused at once.',
    [0, 1024],
  ),
  maxWait: duration('10s', 'Longest wait of a call in the queue.', ['0s', '24h']),
  interceptorTimeout: duration(
    '2s',
    'How long the server may take to look at one request or result of another server that names it in `interceptors`.',
    ['10ms', '60s'],
  ),
  interceptorFailOpen: flag(
    false,
    'Whether requests and results pass if this server, which another one names in `interceptors`, cannot look at them. With false, they are refused.',
  ),
  stopGrace: duration(
    '2s',
    'Time between closing stdin and SIGTERM when the server is stopped. SIGKILL follows 3s later.',
    ['0s', '10s'],
  ),
  sharing: choice(
    ['auto', 'profile', 'user', 'folder', 'isolated', 'all'],
    'auto',
    'Which clients share a process of the server: clients with equal name, version, capabilities, protocol revision and user (profile), all clients of one user (user), clients that could share with profile and work in the same folder (folder), no clients (isolated), or all clients of all users (all). With auto, Trunkline chooses by what is known about the server; see docs/configuration.md.',
  ),
  start: choice(
    ['eager', 'lazy'],
    'eager',
    'When the server starts: together with Trunkline (eager) or at its first call (lazy).',
  ),
  idleStop: duration(
    '0s',
    'Time without a call after which the server is stopped. The next call starts it again. 0s disables this.',
    ['0s', '24h'],
  ),
  era: choice(
    ['auto', 'legacy', 'modern'],
    'auto',
    'Which revisions of MCP the server speaks: those up to 2025-11-25, which begin with a handshake (legacy), or those from 2026-07-28 on (modern). With auto, Trunkline asks the server once.',
  ),
  approval: choice(
    ['off', 'required'],
    'off',
    'Whether new and changed tools are withheld until you approve them with `trunkline approve` (required) or not (off).',
  ),
  maxFrame: bytes('64MiB', 'Largest single message that the server may send. A larger one is dropped.', [
    '1KiB',
    '256MiB',
  ]),
  maxUnwritten: bytes('4MiB', 'How much data may wait for a server that does not read its stdin.', ['1KiB', '256MiB']),
  restart: section(
    {
      firstDelay: duration('500ms', 'Delay before the first restart, ±20 %. Doubles with each failure.'),
      maxDelay: duration('30s', 'Longest delay before a restart, ±20 %.'),
      budget: count(5, 'Consecutive failures after which the server is parked.', [1, 1000]),
      stableAfter: duration('300s', 'Time without a failure after which the count of failures is reset.'),
      parkedProbe: duration('5m', 'Delay before the first retry of a parked server. Doubles with each retry.'),
      parkedProbeMax: duration('60m', 'Longest delay between two retries of a parked server.'),
    },
    'a map of restart settings',
    'When a failed server is restarted.',
  ),
  limits: section(
    {
      memory: bytes(undefined, 'Limit on the memory of all processes of the server together.', ['1MiB', '4096GiB']),
      processes: count(undefined, 'Limit on the number of processes of the server.', [1, 65_536]),
    },
    'a map with `memory` or `processes`',
    'Resource limits of the server. A server that exceeds a limit at two checks in a row, 5s apart, is restarted, which counts as a failure. Without limits, nothing is checked.',
  ),
  results: section(
    {
      max: bytes(
        '0B',
        'Limit on the text in the result of a tool. A longer text keeps its beginning and its end, and the client can read the rest. 0B means no limit.',
        ['0B', '256MiB'],
      ),
      maxBinary: bytes(
        '0B',
        'Limit on the images, audio and binary resources in the result of a tool together. Those that do not fit become links, and the client can read them. 0B means no limit.',
        ['0B', '256MiB'],
      ),
    },
    'a map with `max` or `maxBinary`',
    'Which results are cut; see docs/results.md.',
  ),
  sandbox: {
    kind: 'sandbox',
    standard: false,
    about:
      'Confines the program of the server. With true, it sees the system, itself and a home folder of its own, and has no network. A map opens more. false runs it unconfined. On Linux only; see docs/sandbox.md.',
  } as Sandbox,
};

export const SERVER_SETTINGS = {
  ...SHARED_SETTINGS,
  installScripts: flag(
    false,
    'Runs the install scripts of this package and of its dependencies when they are installed.',
  ),
  foreignDependencies: flag(
    false,
    'Allows dependencies of this package that come from git repositories, URLs or folders, and not from the registry. Git runs for them, without install scripts.',
  ),
  trusted: flag(
    false,
    'Trusts the annotations of the tools. If the server ends during a call of a tool with readOnlyHint or idempotentHint, Trunkline sends the call once more. Hints of `tools.annotate` need no trust.',
  ),
  leaveRunning: flag(
    false,
    'When the server ends, keeps processes that have left its process group, such as daemons. Otherwise they are ended, too.',
  ),
  placement: choice(
    ['each', 'one'],
    'each',
    'Whether each gateway of a cluster runs the server itself (each), or one gateway runs one process for all clients of all gateways (one), which implies sharing: all. Without a cluster, one process serves all clients.',
  ),
  disabled: flag(false, 'Ignores this server.'),
};

export const HTTP_SETTINGS = {
  maxSessions: count(
    100,
    'Limit on open sessions. For a further one, an idle session of a token that has more of them makes room, or the answer is 503.',
    [1, 10_000],
  ),
  sessionIdle: duration(
    '30m',
    'Time without an in-flight request and without an open GET stream after which a session is put aside. The next request resumes it.',
    ['1s', '24h'],
  ),
  maxSessionAge: duration(
    '168h',
    'Age from which a session is no longer resumed, whether after a restart, by another gateway or after sessionIdle.',
    ['1m', '8760h'],
  ),
  maxConnections: count(
    256,
    'Limit on open connections. A further connection replaces the oldest connection without an authenticated request. If there is no such connection, the further one is closed.',
    [1, 65_535],
  ),
  requestsPerSecond: count(
    50,
    'Sustained request rate of one token, per second. Further requests are answered with 429.',
    [1, 100_000],
  ),
  requestBurst: count(
    100,
    'Requests of one token that may arrive at once. When one session has used them up, other sessions can still send half as many.',
    [1, 100_000],
  ),
  maxBody: bytes('4MiB', 'Largest request body. A larger one is answered with 413.', ['1KiB', '256MiB']),
  maxPartial: bytes(
    '128MiB',
    'Limit on the incomplete request bodies of all clients together; at least maxBody. Beyond the limit, Trunkline drops the largest body of the token with the most incomplete data, with 503.',
    ['1MiB', '16GiB'],
  ),
  receiveTimeout: duration(
    '30s',
    'How long a whole request may take to arrive.',
    // The headers may take 10 s, and Node requires at least the same time for a whole request.
    ['10s', '1h'],
  ),
  keepAlive: duration('15s', 'How long a stream may be silent before a comment is sent to keep it open.', ['1s', '5m']),
  maxUnread: bytes('8MiB', 'Unread data of all streams of one session. Beyond this limit, the slowest stream is cut.', [
    '64KiB',
    '256MiB',
  ]),
  maxReplay: bytes(
    '2MiB',
    'Limit on the sent data that is stored for each session, so that a client can resume a lost connection.',
    ['0B', '256MiB'],
  ),
};

/** The default of `redirects`, the places to which a login through `front` may return: this machine, the site of Claude, and Cursor. */
export const DEFAULT_REDIRECTS: readonly string[] = [
  'loopback',
  'https://claude.ai/api/mcp/auth_callback',
  'https://claude.com/api/mcp/auth_callback',
  'cursor://anysphere.cursor-mcp/oauth/callback',
];

const METRICS_SETTINGS = {
  listen: place(
    'address',
    'Serves /metrics without a token at this loopback address, such as 127.0.0.1:9464, or at the path of a unix socket. The process that runs the servers listens. With and without it, /metrics of `serve --http` and `trunkline metrics` show the metrics.',
  ),
  tools: flag(true, 'Counts the calls of each tool apart. Without it, the metrics name no tools.'),
};

const ASK_SETTINGS = {
  timeout: duration(
    '60s',
    'How long a call waits for the answer of a person, if its client cannot show a form. No answer is a no.',
    ['1s', '10m'],
  ),
  by: names(
    'The groups of users, with `gateway.http.auth`, whose members may answer the questions about the calls of all users. Everybody may answer those about the own calls. Default: none.',
  ),
  notify: flag(true, 'Shows a notification on the desktop for a call that waits, on Linux and macOS.'),
};

/** Setting of Trunkline itself, and of a view. */
export const MODE = choice(
  ['direct', 'search', 'auto'],
  'direct',
  'Whether clients get a list of all tools (direct), or a short one with tools that search the others (search). With auto, clients get the short list if their number of tools is limited, they cannot search tools themselves, and the whole list is too long for them; see docs/tools.md.',
);

export const GATEWAY_SETTINGS = {
  mode: MODE,
  startupWait: duration(
    '3s',
    'How long the first list request waits for starting servers, and how long a request waits if no server lists its target yet.',
    ['0s', '300s'],
  ),
  idleStop: duration(
    '10m',
    'How long a process of a server keeps running for the next client after its last client has left.',
    ['0s', '24h'],
  ),
  restartTool: flag(false, 'Offers the tool trunkline__restart, which restarts a server.'),
  watch: flag(true, 'Applies changes of this file while Trunkline runs.'),
  startLimit: count(
    undefined,
    'Servers that may be starting at once. Default: the number of CPU cores, but at least 4.',
    [1, 1024],
  ),
  maxQueued: count(
    1024,
    'Calls that may wait in the queues of all servers together. Further calls are refused at once.',
    [0, 65_536],
  ),
  maxPartial: bytes(
    '256MiB',
    'Limit on the unfinished messages of all servers and of the client on stdin together. Beyond the limit, the largest unfinished message is dropped.',
    ['1MiB', '16GiB'],
  ),
  maxInstructions: bytes(
    '8KiB',
    'Limit on the instructions for a client: a line about each server, and the instructions of the servers. The longest instructions are cut. 0B leaves out all texts of servers.',
    ['0B', '64KiB'],
  ),
  hub: choice(
    ['auto', 'off'],
    'auto',
    'Whether all clients on stdin share one background process with one set of servers (auto), or each client starts its own servers (off).',
  ),
  hubIdle: duration(
    '10m',
    'How long the shared background process waits for the next client before it ends. 0s means forever.',
    ['0s', '24h'],
  ),
  hubClients: count(
    256,
    'Limit on the clients of the shared background process. Further clients start their own servers.',
    [1, 4096],
  ),
  callLog: choice(
    ['off', 'metadata', 'full'],
    'metadata',
    'Writes a line about each call to calls.jsonl in the data folder: without (metadata) or with (full) its arguments and its result. `trunkline activity` shows it. With off, nothing is written.',
  ),
  record: place(
    'path',
    'A file for a recording of all messages, without known secrets. Relative to the folder of this file.',
  ),
  sealKeyFile: place(
    'path',
    'A file with one to three keys, a line each, for several gateways that serve the same clients. Each gateway then accepts the sessions, the task ids and the cursors of the others. A gateway makes new ids with the first key, and accepts those of every key in the file. Only the owner of the key file may have access. Relative to the folder of this file.',
  ),
  secretFolder: place(
    'path',
    'A folder in which the system puts secrets, such as a Secret volume of Kubernetes. A file of sealKeyFile or storePasswordFile in it may be a symbolic link, belong to root, and be readable by its group. Relative to the folder of this file.',
  ),
  drain: duration(
    '60s',
    'How long `serve --http` may take to finish the calls in flight after SIGTERM. 0s ends them at once. A gateway with a client on stdin always ends within 3s.',
    ['0s', '1h'],
  ),
  ask: section(
    ASK_SETTINGS,
    'a map with `timeout`, `by` or `notify`',
    'The questions about calls for which a rule says `then: ask`; see docs/rules.md.',
  ),
  metrics: section(METRICS_SETTINGS, 'a map with `listen` or `tools`', 'The metrics for Prometheus.'),
  http: section(
    HTTP_SETTINGS,
    'a map of settings',
    'Limits of the HTTP server, for `serve --http`. Missing keys have their defaults.',
  ),
};

/** Lower bound of the default of `startLimit`, which is the number of CPU cores. */
export const MIN_START_LIMIT = 4;

/** Milliseconds from SIGTERM to SIGKILL when a server is stopped. Not configurable, because `stopGrace` can give more time. */
export const STOP_KILL_AFTER_MS = 3000;

/** Time from the moment at which a server is parked or blocked until a call may start it. Not configurable. */
export const DEMAND_EVERY_MS = 60_000;

interface About {
  readonly about: string;
}

interface Range<Bound> extends About {
  readonly min: Bound;
  readonly max: Bound;
}

/** A text such as `60s` or `64MiB`, parsed to milliseconds or bytes. `standard` is the default, if there is one. */
export interface Quantity extends Range<string> {
  readonly kind: 'duration' | 'bytes';
  readonly standard: string | undefined;
}

export interface Count extends Range<number> {
  readonly kind: 'count';
  readonly standard: number | undefined;
}

interface Choice extends About {
  readonly kind: 'choice';
  readonly standard: string;
  readonly words: readonly string[];
}

interface Flag extends About {
  readonly kind: 'flag';
  readonly standard: boolean;
}

/** The `path` of a file; or an `address`, which is a loopback address with a port or the path of a unix socket. */
interface Place extends About {
  readonly kind: 'path' | 'address';
  readonly standard: undefined;
}

/** A list of names. */
interface Names extends About {
  readonly kind: 'names';
  readonly standard: undefined;
}

/** A nested map of settings. If the map is missing, its settings have their defaults. */
interface Section extends About {
  readonly kind: 'section';
  readonly table: SettingTable;
  /** Describes the map in error messages. */
  readonly expected: string;
}

/** Whether a server is confined, or the openings of its sandbox. */
interface Sandbox extends About {
  readonly kind: 'sandbox';
  readonly standard: false;
}

export type SandboxEntry =
  | boolean
  | {
      readonly read?: readonly string[];
      readonly write?: readonly string[];
      readonly network?: readonly string[];
      readonly unixSockets?: boolean;
    };

export type Setting = Quantity | Count | Choice | Flag | Place | Names | Section | Sandbox;
/** Settings by their names in the file. */
export type SettingTable = { readonly [key: string]: Setting };

type ValueOf<S> = S extends { readonly kind: 'choice'; readonly words: readonly (infer Word)[] }
  ? Word
  : S extends Flag
    ? boolean
    : S extends Place
      ? string
      : S extends Names
        ? readonly string[]
        : S extends Sandbox
          ? SandboxEntry
          : number;
type NameOf<Key, S> = Key extends string
  ? S extends { readonly kind: 'duration' }
    ? `${Key}Ms`
    : S extends { readonly kind: 'bytes' }
      ? `${Key}Bytes`
      : Key
  : never;
type IfStandard<S, Name> = S extends { readonly standard: undefined } ? never : Name;

/** The settings of a table, parsed and merged, by their names in the program. Settings without a default are optional. */
export type ValuesOf<T> = {
  readonly [K in keyof T as IfStandard<T[K], NameOf<K, T[K]>>]: T[K] extends { readonly table: infer Inner }
    ? ValuesOf<Inner>
    : ValueOf<T[K]>;
} & { readonly [K in keyof T as T[K] extends Section ? never : NameOf<K, T[K]>]?: ValueOf<T[K]> };

/** The parsed settings of one map of the file, by their names in the program. */
export type WrittenOf<T> = {
  readonly [K in keyof T as NameOf<K, T[K]>]?: T[K] extends { readonly table: infer Inner }
    ? WrittenOf<Inner>
    : ValueOf<T[K]>;
};

/** The name of a setting in the program: its key in the file, and the unit, as in `timeoutMs`. */
export function nameInProgram(key: string, { kind }: Setting): string {
  return key + (kind === 'duration' ? 'Ms' : kind === 'bytes' ? 'Bytes' : '');
}

/** Merges settings. Each map overrides the maps before it and the defaults. */
export function settingsOf<T extends SettingTable>(
  table: T,
  ...written: readonly WrittenOf<NoInfer<T>>[]
): ValuesOf<T> {
  const maps = written as readonly Readonly<Record<string, unknown>>[];
  const values = Object.entries(table).map(([key, setting]): [string, unknown] => {
    const name = nameInProgram(key, setting);
    const found = maps.flatMap((map) => (map[name] === undefined ? [] : [map[name]]));
    if (setting.kind === 'section') return [name, settingsOf(setting.table, ...(found as WrittenOf<SettingTable>[]))];
    return [name, found.at(-1) ?? standardOf(setting)];
  });
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as ValuesOf<T>;
}

/** The default, parsed. */
function standardOf({ kind, standard }: Exclude<Setting, Section>): number | string | boolean | undefined {
  if (standard === undefined) return undefined;
  return kind === 'duration' || kind === 'bytes' ? NOTATIONS[kind].parse(standard) : standard;
}

type Bounds<Bound> = readonly [min: Bound, max: Bound];

function duration(standard: string, about: string, [min, max]: Bounds<string> = ['1ms', '24h']) {
  return { kind: 'duration' as const, standard, min, max, about };
}

function bytes<Standard extends string | undefined>(standard: Standard, about: string, [min, max]: Bounds<string>) {
  return { kind: 'bytes' as const, standard, min, max, about };
}

function count<Standard extends number | undefined>(standard: Standard, about: string, [min, max]: Bounds<number>) {
  return { kind: 'count' as const, standard, min, max, about };
}

function choice<const Word extends string>(words: readonly Word[], standard: NoInfer<Word>, about: string) {
  return { kind: 'choice' as const, words, standard, about };
}

export function flag(standard: boolean, about: string): Flag {
  return { kind: 'flag', standard, about };
}

function names(about: string): Names {
  return { kind: 'names', standard: undefined, about };
}

function place(kind: Place['kind'], about: string): Place {
  return { kind, standard: undefined, about };
}

/** The host and the port of a loopback address; `undefined` for every other text. IPv6 addresses lose their brackets. */
export function loopbackOf(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, written = '', digits] = /^(\[[^\]]+\]|[^:[\]]+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  const host = isLocalhost(written) ? 'localhost' : bare(written);
  return isLoopback(written) && port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

function section<T extends SettingTable>(table: T, expected: string, about: string) {
  return { kind: 'section' as const, table, expected, about };
}

/** The notation of a quantity: a number with a unit. */
interface Notation {
  /** The quantity in words, for error messages. */
  readonly noun: string;
  readonly form: string;
  readonly pattern: RegExp;
  /** Parses to whole milliseconds or bytes. Throws a `RangeError` for a text of another form. */
  readonly parse: (text: string) => number;
}

export const NOTATIONS = {
  duration: notation('a duration', 'a duration with a unit, such as 500ms, 60s, 2m or 1h', {
    ms: 1,
    s: 1000,
    m: 60_000,
    h: 3_600_000,
  }),
  bytes: notation('a size', 'a size with a unit, such as 512KiB, 4MB or 64MiB', {
    B: 1,
    kB: 1000,
    KB: 1000,
    MB: 1000 ** 2,
    GB: 1000 ** 3,
    KiB: 1024,
    MiB: 1024 ** 2,
    GiB: 1024 ** 3,
  }),
};

function notation(noun: string, form: string, units: Readonly<Record<string, number>>): Notation {
  const pattern = new RegExp(`^(\\d+(?:\\.\\d+)?)(${Object.keys(units).join('|')})$`);
  const parse = (text: string) => {
    const [, amount, unit = ''] = pattern.exec(text) ?? [];
    const factor = units[unit];
    if (factor === undefined) throw new RangeError(`expected ${form}`);
    return Math.round(Number(amount) * factor);
  };
  return { noun, form, pattern, parse };
}
