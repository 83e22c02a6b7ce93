import { isAbsolute, resolve } from 'node:path';
import type { FoundServer, FoundServers } from '../clients/files/found-server.js';
import { identityOf } from '../clients/files/own-entry.js';
import type { ServerConfig } from '../config/resolve/config.js';
import { optionIn, type Registration } from './clients.js';
import { type Finding, finding } from './finding.js';

/** The servers of Trunkline, and how `--fix` removes the same server from a client. */
export interface Taken {
  readonly servers: readonly ServerConfig[];
  /** The configuration that has the servers. */
  readonly configFile: string;
  /** The configuration file that Trunkline uses when a client passes no `--config`. */
  readonly userConfigFile: string;
  /** Whether this server has run in Trunkline. A client keeps its entry of one that may not. */
  readonly works: (key: string) => boolean;
  /** Removes entries of one file, with a backup, so that `trunkline undo` can put them back. */
  readonly takeOut: (servers: readonly FoundServer[]) => Promise<void>;
}

/** Servers that a client with Trunkline runs itself although they are in the configuration, too. */
export function checkDuplicates(found: FoundServers, registrations: readonly Registration[], taken: Taken): Finding[] {
  const active = registrations.filter(({ server }) => !server.isDisabled);
  // A Trunkline with another configuration may not have the server.
  const serves = active.filter(({ server }) => {
    const file = configOf(server, taken.userConfigFile);
    return file === undefined || file === taken.configFile;
  });
  const clients = new Set(serves.map(({ server }) => server.place.client));
  const ours = new Map(taken.servers.map((server) => [identityOfOurs(server), server]));
  const duplicates = found.servers.flatMap((server) => {
    const { place, run, isDisabled } = server;
    if (isDisabled || run.kind === 'remote' || !clients.has(place.client)) return [];
    const same = ours.get(identityOf(run));
    return same === undefined ? [] : [{ server, same, canGo: canTakeOut(server, same, active, taken) }];
  });
  const removable = duplicates.flatMap(({ server, canGo }) => (canGo ? [server] : []));
  const changes = new Map<string, Promise<void>>();
  // One change of each file for all of its servers: the oldest backups go, and each change of a file has one.
  const change = (file: string) => {
    const made = changes.get(file) ?? taken.takeOut(removable.filter((each) => each.place.file === file));
    changes.set(file, made);
    return made;
  };
  return duplicates.map(({ server, same, canGo }) => {
    const { place, name } = server;
    const done = `removed \`${name}\` from ${place.file}; \`trunkline undo\` puts it back. Restart ${place.title}`;
    const text = `${place.title} runs \`${name}\` itself, which is server \`${same.key}\` of Trunkline, too`;
    const repair = canGo ? { done, apply: () => change(place.file) } : undefined;
    return finding('TL-CLIENT-DUPLICATE', text, [place.file], { remedy: removalOf(server), repair });
  });
}

/** A client that runs Trunkline and another gateway. `gatewayOf` knows the names of gateways. */
export function checkGateways(
  found: FoundServers,
  registrations: readonly Registration[],
  gatewayOf: (server: FoundServer) => string | undefined,
): Finding[] {
  const active = registrations.filter(({ server }) => !server.isDisabled);
  const clients = new Set(active.map(({ server }) => server.place.client));
  return found.servers.flatMap((server) => {
    const { place, name, isDisabled } = server;
    const gateway = isDisabled || !clients.has(place.client) ? undefined : gatewayOf(server);
    if (gateway === undefined) return [];
    const text = `${place.title} runs ${gateway} (\`${name}\`) besides Trunkline`;
    return [finding('TL-CLIENT-GATEWAY', text, [place.file])];
  });
}

/**
 * Whether the client loses nothing: in every folder it runs a Trunkline in which this server works, with all variables that
 * the entry sets. The file of a project belongs to others, too, and
 * an extension to its client.
 */
function canTakeOut(
  { place, run }: FoundServer,
  { key, child }: ServerConfig,
  active: readonly Registration[],
  { configFile, userConfigFile, works }: Taken,
): boolean {
  if (!works(key)) return false;
  if (place.scope === 'project' || place.scope === 'extension' || run.kind === 'remote') return false;
  const serves = active.some(({ server }) => {
    const isSameClient = server.place.client === place.client && server.place.scope === 'user';
    return isSameClient && configOf(server, userConfigFile) === configFile;
  });
  return serves && Object.keys(run.env).every((name) => Object.hasOwn(child?.env ?? {}, name));
}

/** `undefined` if it depends on the folder in which the client starts Trunkline. */
function configOf({ run }: FoundServer, userConfigFile: string): string | undefined {
  if (run.kind === 'remote') return undefined;
  const named = optionIn(run, '--config', '-c') ?? run.env.TRUNKLINE_CONFIG;
  if (!named) return userConfigFile;
  return isAbsolute(named) ? resolve(named) : undefined;
}

function identityOfOurs({ child, package: used }: ServerConfig): string {
  if (child === undefined) return '';
  const { command, args, env } = child;
  if (used === undefined) return identityOf({ kind: 'command', command, args, env });
  // The program of an installed package is the first argument.
  const own = used.found === undefined ? args : args.slice(1);
  return identityOf({ kind: 'command', command: 'npx', args: [used.request.name, ...own], env });
}

function removalOf({ place, name }: FoundServer): string {
  if (place.scope === 'extension') return `Disable the extension \`${name}\` in Claude Desktop: Settings, Extensions.`;
  if (place.client === 'claude-code') return `claude mcp remove ${name} --scope ${place.scope}`;
  if (place.client === 'codex') return `codex mcp remove ${name}`;
  return `Remove \`${name}\` from \`${place.path.join('.')}\` in ${place.file}.`;
}
