import type * as z from 'zod/mini';
import type { GatewayConfig, HttpConfig, ServerProblem } from '../resolve/config.js';
import type { Place } from '../resolve/server-fault.js';
import type { fileSchema, ServerEntry, Tunables } from '../schema/schema.js';
import {
  GATEWAY_SETTINGS,
  HTTP_SETTINGS,
  type LIMIT_SETTINGS,
  RESTART_SETTINGS,
  SERVER_SETTINGS,
  SWITCHES,
  standardsOf,
  type ValuesOf,
} from '../schema/settings.js';
import type { ConfigProblem } from './config-error.js';

/**
 * A checked configuration file: defaults are filled in, durations and sizes are numbers. Variables and packages of this
 * machine are not resolved yet. It is plain data, so that it can be cached as JSON.
 */
export interface CheckedFile {
  /** In the order of the file, without those that are `disabled`. */
  readonly servers: readonly CheckedServer[];
  /** The names in `defaults.env`. */
  readonly sharedVariables: readonly string[];
  /** The words of the commands that print secrets, by the names of the secrets. */
  readonly secretCommands: Readonly<Record<string, readonly string[]>>;
  readonly gateway: Omit<GatewayConfig, 'startLimit'> & { readonly startLimit: number | null };
  readonly warnings: readonly ConfigProblem[];
}

export interface CheckedServer {
  readonly key: string;
  /** With the variables of `defaults.env` in `env`, and with `defaults.envFile` if it has no `envFile` of its own. */
  readonly entry: ServerEntry;
  readonly settings: ServerSettings;
  /** Why the server cannot run on any machine; set for remote servers. */
  readonly problem?: ServerProblem;
  /** Places of the entry and of its values that are resolved later. */
  readonly places: readonly Place[];
}

/** Caches checked files. The check by the schema takes longer than every other step of reading a configuration. */
export interface CheckedFileCache {
  find(file: string, text: string): CheckedFile | undefined;
  put(file: string, text: string, checked: CheckedFile): void;
}

/** What the schema makes of a file. */
export type FileData = z.output<typeof fileSchema>;
/** The map of servers has one of two names. */
export type ServersKey = 'servers' | 'mcpServers';

/** Built-in settings of a server, parsed. */
export const BUILT_IN: ServerSettings = {
  ...standardsOf(SERVER_SETTINGS),
  restart: standardsOf(RESTART_SETTINGS),
  limits: {},
};

export interface ServerSettings extends ValuesOf<typeof SERVER_SETTINGS> {
  readonly restart: ValuesOf<typeof RESTART_SETTINGS>;
  readonly limits: Partial<ValuesOf<typeof LIMIT_SETTINGS>>;
}

/** Merges settings: an entry overrides `defaults:`, which overrides the built-in settings. */
export function withDefaults(entry: Tunables, defaults: Tunables): ServerSettings {
  return {
    ...BUILT_IN,
    ...defaults,
    ...entry,
    restart: { ...BUILT_IN.restart, ...defaults.restart, ...entry.restart },
    limits: { ...BUILT_IN.limits, ...defaults.limits, ...entry.limits },
  };
}

/** The settings that another one makes ineffective, each with that one. */
export function overruledSettings({ timeout, maxTimeout, restart }: ServerSettings): [setting: string, by: string][] {
  const overruled: [string, string][] = [];
  if (timeout > maxTimeout) overruled.push(['timeout', 'maxTimeout']);
  if (restart.firstDelay > restart.maxDelay) overruled.push(['restart.firstDelay', 'restart.maxDelay']);
  if (restart.parkedProbe > restart.parkedProbeMax) overruled.push(['restart.parkedProbe', 'restart.parkedProbeMax']);
  return overruled;
}

/** The servers of a file, with their entries as they stand in the file. */
export function enabledServers(data: FileData, root: ServersKey): [key: string, own: ServerEntry][] {
  return Object.entries(data[root] ?? {}).filter(([, { disabled = SWITCHES.disabled.standard }]) => !disabled);
}

/** One server of the file. The caller adds its places. */
export function toCheckedServer(
  key: string,
  own: ServerEntry,
  { defaults = {} }: FileData,
): Omit<CheckedServer, 'places'> {
  const { env: shared, envFile, ...tunables } = defaults;
  const entry = { ...(envFile !== undefined && { envFile }), ...own, env: { ...shared, ...own.env } };
  return { key, entry, settings: withDefaults(entry, tunables) };
}

const GATEWAY_BUILT_IN = standardsOf(GATEWAY_SETTINGS);

export function toCheckedGateway({ gateway = {}, views = {}, clients = {} }: FileData): CheckedFile['gateway'] {
  const settings = { ...GATEWAY_BUILT_IN, ...gateway };
  return {
    startupWaitMs: settings.startupWait,
    idleStopMs: settings.idleStop,
    restartTool: settings.restartTool,
    watch: settings.watch,
    startLimit: gateway.startLimit ?? null,
    maxQueued: settings.maxQueued,
    maxPartialBytes: settings.maxPartial,
    maxInstructionsBytes: settings.maxInstructions,
    hub: settings.hub,
    hubIdleMs: settings.hubIdle,
    hubClients: settings.hubClients,
    callLog: settings.callLog,
    ...(gateway.record !== undefined && { record: gateway.record }),
    ...(gateway.sealKeyFile !== undefined && { sealKeyFile: gateway.sealKeyFile }),
    http: toHttpConfig(gateway.http ?? {}),
    views: Object.entries(views).map(([name, view]) => ({ name, ...view })),
    clientViews: Object.entries(clients).map(([client, view]) => ({ client, view })),
  };
}

export type HttpSection = Partial<ValuesOf<typeof HTTP_SETTINGS>>;

const HTTP_BUILT_IN = standardsOf(HTTP_SETTINGS);

/** Settings of the section, completed with the built-in ones, under the names that the HTTP server uses. */
export function toHttpConfig(section: HttpSection): HttpConfig {
  const settings = { ...HTTP_BUILT_IN, ...section };
  return {
    maxSessions: settings.maxSessions,
    sessionIdleMs: settings.sessionIdle,
    maxConnections: settings.maxConnections,
    requestsPerSecond: settings.requestsPerSecond,
    requestBurst: settings.requestBurst,
    maxBodyBytes: settings.maxBody,
    maxPartialBytes: Math.max(settings.maxPartial, settings.maxBody),
    requestTimeoutMs: settings.receiveTimeout,
    keepAliveMs: settings.keepAlive,
    maxUnwrittenBytes: settings.maxUnread,
    replayBytes: settings.maxReplay,
  };
}
