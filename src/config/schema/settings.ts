import { APPROVAL_MODES, CALL_LOG_MODES, ERA_MODES, HUB_MODES, SHARING_MODES, START_MODES } from '../resolve/config.js';
import { BYTES_PATTERN, DURATION_PATTERN, parseBytes, parseDuration } from './units.js';

// The settings of a configuration file: kind, default and range. The schema and the quick check read these tables.
// `docs/configuration.md` gives the origin of each default.

/** A text such as `60s` or `64MiB`, parsed to milliseconds or bytes. `standard` is the default, if there is one. */
export interface Quantity {
  readonly kind: 'duration' | 'bytes';
  readonly standard: string | undefined;
  readonly min: string;
  readonly max: string;
}

/** A whole number. There is no `standard` if there is no default, or if it depends on the machine. */
export interface Count {
  readonly kind: 'count';
  readonly standard: number | undefined;
  readonly min: number;
  readonly max: number;
}

/** One of the given words. */
export interface Choice<Word extends string = string> {
  readonly kind: 'choice';
  readonly standard: Word;
  readonly words: readonly Word[];
}

export interface Flag {
  readonly kind: 'flag';
  readonly standard: boolean;
}

export type Setting = Quantity | Count | Choice | Flag;
export type Table = Readonly<Record<string, Setting>>;

/** The settings of a table, parsed. */
export type ValuesOf<T extends Table> = { readonly [K in keyof T]: ValueOf<T[K]> };
type ValueOf<S extends Setting> = S extends Choice<infer Word> ? Word : S extends Flag ? boolean : number;

const duration = (standard: string, min = '1ms', max = '24h'): Quantity => ({ kind: 'duration', standard, min, max });
const bytes = (standard: string | undefined, min: string, max: string): Quantity => ({
  kind: 'bytes',
  standard,
  min,
  max,
});
const count = (standard: number | undefined, min: number, max: number): Count => ({
  kind: 'count',
  standard,
  min,
  max,
});
const choice = <const Word extends string>(words: readonly Word[], standard: NoInfer<Word>): Choice<Word> => ({
  kind: 'choice',
  standard,
  words,
});
const flag = (standard: boolean): Flag => ({ kind: 'flag', standard });

/** Settings of a server, which `defaults:` can have, too. */
export const SERVER_SETTINGS = {
  timeout: duration('60s'),
  maxTimeout: duration('600s'),
  startTimeout: duration('60s', '1ms', '300s'),
  installTimeout: duration('300s', '1s', '24h'),
  listTimeout: duration('30s'),
  concurrency: count(64, 1, 1024),
  maxQueued: count(64, 0, 1024),
  maxWait: duration('10s', '0s', '24h'),
  stopGrace: duration('2s', '0s', '10s'),
  sharing: choice(SHARING_MODES, 'profile'),
  start: choice(START_MODES, 'eager'),
  idleStop: duration('0s', '0s', '24h'),
  era: choice(ERA_MODES, 'auto'),
  approval: choice(APPROVAL_MODES, 'off'),
  maxFrame: bytes('64MiB', '1KiB', '256MiB'),
  maxUnwritten: bytes('4MiB', '1KiB', '256MiB'),
};

export const RESTART_SETTINGS = {
  firstDelay: duration('500ms'),
  maxDelay: duration('30s'),
  budget: count(5, 1, 1000),
  stableAfter: duration('300s'),
  parkedProbe: duration('5m'),
  parkedProbeMax: duration('60m'),
};

/** Limits of what the processes of a server use. There are none by default. */
export const LIMIT_SETTINGS = {
  memory: bytes(undefined, '1MiB', '4096GiB'),
  processes: count(undefined, 1, 65_536),
};

/** The switches in the entry of a server. `defaults:` has none of them. */
export const SWITCHES = {
  installScripts: flag(false),
  trusted: flag(false),
  leaveRunning: flag(false),
  disabled: flag(false),
};

export const GATEWAY_SETTINGS = {
  startupWait: duration('3s', '0s', '300s'),
  idleStop: duration('10m', '0s', '24h'),
  restartTool: flag(false),
  watch: flag(true),
  maxQueued: count(1024, 0, 65_536),
  maxPartial: bytes('256MiB', '1MiB', '16GiB'),
  maxInstructions: bytes('8KiB', '0B', '64KiB'),
  hub: choice(HUB_MODES, 'off'),
  hubIdle: duration('10m', '0s', '24h'),
  hubClients: count(256, 1, 4096),
  callLog: choice(CALL_LOG_MODES, 'off'),
};

/** Its default is the number of CPU cores, but at least `MIN_START_LIMIT`. */
export const START_LIMIT = count(undefined, 1, 1024);
export const MIN_START_LIMIT = 4;

export const HTTP_SETTINGS = {
  maxSessions: count(100, 1, 10_000),
  sessionIdle: duration('30m', '1s', '24h'),
  maxConnections: count(256, 1, 65_535),
  requestsPerSecond: count(50, 1, 100_000),
  requestBurst: count(100, 1, 100_000),
  maxBody: bytes('4MiB', '1KiB', '256MiB'),
  maxPartial: bytes('128MiB', '1MiB', '16GiB'),
  // Node requires at least as much time for a whole request as for its headers, which have 10 s.
  receiveTimeout: duration('30s', '10s', '1h'),
  keepAlive: duration('15s', '1s', '5m'),
  maxUnread: bytes('8MiB', '64KiB', '256MiB'),
  maxReplay: bytes('2MiB', '0B', '256MiB'),
};

/** Milliseconds from SIGTERM to SIGKILL when a server is stopped. Not configurable: a server that needs more time sets `stopGrace`. */
export const STOP_KILL_AFTER_MS = 3000;

/** A call may start a parked child once in this many milliseconds. Not configurable. */
export const DEMAND_EVERY_MS = 60_000;

/** The defaults of a table, parsed. Throws for a setting without a default. */
export function standardsOf<T extends Table>(table: T): ValuesOf<T> {
  return Object.fromEntries(
    Object.entries(table).map(([key, setting]) => {
      const value = readSetting(setting, setting.standard);
      if (value === undefined) throw new Error(`${key} has no default that its kind and its range allow`);
      return [key, value];
    }),
  ) as ValuesOf<T>;
}

/** The value of a setting in the notation of the file, parsed; `undefined` for any value that is a mistake. */
export function readSetting(setting: Setting, value: unknown): number | string | boolean | undefined {
  switch (setting.kind) {
    case 'duration':
    case 'bytes':
      return readQuantity(setting, value);
    case 'count': {
      const isWithin = Number.isSafeInteger(value) && Number(value) >= setting.min && Number(value) <= setting.max;
      return isWithin ? Number(value) : undefined;
    }
    case 'choice':
      return setting.words.find((word) => word === value);
    case 'flag':
      return typeof value === 'boolean' ? value : undefined;
  }
}

function readQuantity({ kind, min, max }: Quantity, value: unknown): number | undefined {
  const [pattern, parse] =
    kind === 'duration' ? ([DURATION_PATTERN, parseDuration] as const) : ([BYTES_PATTERN, parseBytes] as const);
  if (typeof value !== 'string' || !pattern.test(value)) return undefined;
  const amount = parse(value);
  return amount >= parse(min) && amount <= parse(max) ? amount : undefined;
}
