import { isDeepStrictEqual } from 'node:util';
import type { Config, ServerConfig } from './config.js';

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
 * Compares two configurations by their meaning. Comments, spaces and the order of keys do not count. `others` are the
 * changes for clients with other variables: the largest change of each server counts.
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

/** The facts that cannot change while a process runs. */
function ofProcess({ child, problem, sharing, era, frames }: ServerConfig) {
  const { command, args, cwd, env, missing, leaveRunning } = child ?? {};
  // A problem that only moved to another line is the same problem.
  return {
    command,
    args,
    cwd,
    env,
    missing,
    leaveRunning,
    sharing,
    era,
    frames,
    message: problem?.message,
    hint: problem?.hint,
  };
}

/** The facts that apply at once, without another process. */
function ofTrunkline(server: ServerConfig) {
  const { child, prefix, tools, shapes, methods, trusted, calls, start, idleStopMs, approval, limits, variables } =
    server;
  const { timeouts, restart } = child ?? {};
  const ofTools = { prefix, tools, shapes, methods, trusted, approval };
  return { timeouts, restart, ...ofTools, calls, start, idleStopMs, limits, variables };
}

/** Whether anything is different. */
export function isChange({ added, removed, replaced, adjusted, isReordered, gateway }: ConfigChanges): boolean {
  return [added, removed, replaced, adjusted, gateway].some((keys) => keys.length > 0) || isReordered;
}
