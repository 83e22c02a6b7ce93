import { isDeepStrictEqual } from 'node:util';
import type { Config, ServerConfig } from './config.js';

/** What another configuration means for the servers that run. Keys are in the order of the file they stand in. */
export interface ConfigChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Need another process: what is run, how it is greeted or what may go through its pipes is no longer the same. */
  readonly replaced: readonly string[];
  /** Only what Trunkline does with them has changed; their processes go on. */
  readonly adjusted: readonly string[];
  readonly unchanged: readonly string[];
  /** Whether those that stay stand in another order, and so do their lists. */
  readonly isReordered: boolean;
  /** Settings of Trunkline itself that are different, such as `idleStopMs`. */
  readonly gateway: readonly (keyof Config['gateway'])[];
}

/** Compares two configurations by what they mean, not by how they are written. */
export function compareConfigs(before: Config, after: Config): ConfigChanges {
  const known = new Map(before.servers.map((server) => [server.key, server]));
  const keys = new Set(after.servers.map(({ key }) => key));
  const of = (change: ServerChange) =>
    after.servers.filter((server) => changeOf(known.get(server.key), server) === change).map(({ key }) => key);
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

type ServerChange = 'added' | 'replaced' | 'adjusted' | 'unchanged';

function changeOf(before: ServerConfig | undefined, after: ServerConfig): ServerChange {
  if (before === undefined) return 'added';
  if (!isDeepStrictEqual(ofProcess(before), ofProcess(after))) return 'replaced';
  return isDeepStrictEqual(ofTrunkline(before), ofTrunkline(after)) ? 'unchanged' : 'adjusted';
}

/** What a process is made with and cannot be changed while it runs. */
function ofProcess({ child, problem, sharing, frames }: ServerConfig) {
  const { command, args, cwd, env, missing } = child ?? {};
  // A problem that merely moved to another line is the same.
  return { command, args, cwd, env, missing, sharing, frames, message: problem?.message, hint: problem?.hint };
}

/** What is looked up each time it is needed. */
function ofTrunkline({ child, prefix, tools, methods, trusted, calls, start, idleStopMs, approval }: ServerConfig) {
  const { timeouts, restart } = child ?? {};
  return { timeouts, restart, prefix, tools, methods, trusted, calls, start, idleStopMs, approval };
}
