import type { NewEntry } from '../../../config/edit/edit-config.js';
import type { Variables } from '../../../config/resolve/references.js';
import { SERVER_KEY_MAX_LENGTH, serverKeyFault, usableServerKey } from '../../../config/schema/server-key.js';
import type { FoundServer } from '../files/found-server.js';
import { gatewayOf } from './gateways.js';
import { type KeepingPlaces, type KeptFile, keepFile, withoutKeptFile } from './kept-file.js';
import { folderOfKeptFile, type OpenedPath, openedPaths } from './opened-paths.js';
import { CannotImport, identityOfRun, loginRemark, type Run, runOf, type ToRunOptions, toRun } from './run.js';
import { type ImportEnvFile, toEntry } from './to-entry.js';

/** The decision about one server. `same` has a key already, `skipped` is a gateway, `cannot` is an entry that Trunkline cannot run. */
export type Verdict = 'new' | 'renamed' | 'same' | 'skipped' | 'cannot';

export interface PlannedServer {
  readonly found: FoundServer;
  readonly verdict: Verdict;
  /** The key in the configuration: a new one, or the key of the same server. */
  readonly key?: string;
  /** The reason, without values; may be empty. */
  readonly because: string;
  /** The run of the server, with its secrets. Never show it. */
  readonly run?: Run;
  /** The entry to write; absent unless the verdict is `new` or `renamed`. */
  readonly entry?: NewEntry;
  /** The name in the client, if it is another one. */
  readonly comment?: string;
  readonly unset?: readonly string[];
  /** The file in the data folder for a server that would write beside its program. */
  readonly kept?: KeptFile;
  /** The paths of its entry that are open for it although it is confined. */
  readonly opened?: readonly OpenedPath[];
}

export interface PlanOptions extends ToRunOptions {
  readonly found: readonly FoundServer[];
  /** The entries that the configuration has already, as they stand in it. */
  readonly present: Readonly<Record<string, unknown>>;
  /** Whether the configuration may have servers behind a URL: one with `mcpServers` may not. */
  readonly takesRemote: boolean;
  readonly secrets: ImportEnvFile;
  readonly env: Variables;
  readonly isOurselves: (run: FoundServer['run']) => boolean;
  readonly isConfined?: boolean;
  /** Whether confined servers may use the files and folders that their entries name. Default: true. */
  readonly opensNamed?: boolean;
  readonly places: KeepingPlaces;
  /** The servers that were asked for by name; all others are left out. Empty for all. */
  readonly names: readonly string[];
}

/** Decides about each server. Writes nothing; `secrets` takes the secrets of the servers to add. */
export function planImport(options: PlanOptions): PlannedServer[] {
  const {
    present,
    found,
    names,
    secrets,
    env,
    isOurselves,
    takesRemote,
    isConfined = false,
    opensNamed = true,
    places,
  } = options;
  const identityOf = (run: Run) => identityOfRun(withoutKeptFile(run, places), { ...env, ...secrets.values });
  const takenKeys = new Set(Object.keys(present).map((key) => key.toLowerCase()));
  /** The keys of the servers that are or will be in the configuration, by identity. */
  const keys = new Map<string, string>();
  for (const [key, entry] of Object.entries(present)) {
    const run = runOf(entry);
    if (run !== undefined) keys.set(identityOf(run), key);
  }
  const pathsFor = (run: Run, kept: KeptFile | undefined, isAllowed: boolean): OpenedPath[] => [
    ...(kept === undefined ? [] : [folderOfKeptFile(kept, places.home)]),
    ...(isAllowed ? openedPaths(run, { home: places.home, env: { ...env, ...secrets.values } }) : []),
  ];
  const wanted = found.filter(({ name }) => names.length === 0 || names.includes(name));
  const runs = wanted.map((server) => [server, orCannot(() => toRun(server, options))] as const);
  // A server is enabled if at least one client has enabled it. A disabled copy of another client does not count.
  const enabled = new Set(
    runs.flatMap(([server, run]) => (server.isDisabled || run instanceof CannotImport ? [] : [identityOf(run)])),
  );
  return runs.map(([server, run]): PlannedServer => {
    if (isOurselves(server.run)) return { found: server, verdict: 'skipped', because: 'it is Trunkline itself' };
    if (run instanceof CannotImport) return { found: server, verdict: 'cannot', because: run.message };
    if ('url' in run.program && !takesRemote) return { found: server, verdict: 'cannot', because: NEEDS_SERVERS, run };
    const gateway = gatewayOf(run);
    if (gateway !== undefined && names.length === 0) {
      const because = `it is another gateway, ${gateway}; import its own file with --from FILE`;
      return { found: server, verdict: 'skipped', because, run };
    }
    const identity = identityOf(run);
    const known = keys.get(identity);
    if (known !== undefined) return { found: server, verdict: 'same', key: known, because: `same as ${known}`, run };
    const usual = keyFor(server.name, run);
    const key = freeKey(usual, takenKeys);
    const { allowedTools, deniedTools, name, place } = server;
    const timeoutMs = server.run.kind === 'command' ? server.run.timeoutMs : undefined;
    const settings = { allowedTools, deniedTools, timeoutMs, isConfined, isDisabled: !enabled.has(identity) };
    const kept = keepFile(run, key, places);
    const opened = isConfined && !('url' in run.program) ? pathsFor(run, kept, opensNamed) : [];
    const made = orCannot(() => toEntry(run, key, { ...settings, secrets, env, kept, opened }));
    if (made instanceof CannotImport) return { found: server, verdict: 'cannot', because: made.message, run };
    keys.set(identity, key);
    takenKeys.add(key.toLowerCase());
    const because = [key === usual ? '' : `the name ${usual} is taken`, loginRemark(run)].filter(Boolean).join('; ');
    const planned = { found: server, key, run, ...made, because, opened, ...(kept && { kept }) };
    return key === name
      ? { ...planned, verdict: 'new' }
      : { ...planned, verdict: 'renamed', comment: `"${name}" in ${place.title}` };
  });
}

/** The reason why a configuration cannot have a server behind a URL. */
export const NEEDS_SERVERS =
  'servers behind a URL are used below `servers:` only, and the configuration has `mcpServers:`';

function orCannot<T>(make: () => T): T | CannotImport {
  try {
    return make();
  } catch (error) {
    if (error instanceof CannotImport) return error;
    throw error;
  }
}

function freeKey(wanted: string, takenKeys: ReadonlySet<string>): string {
  for (let count = 1; ; count += 1) {
    const suffix = `-${count}`;
    const short = wanted.slice(0, SERVER_KEY_MAX_LENGTH - suffix.length).replace(/[-_]$/, '');
    const key = count === 1 ? wanted : short + suffix;
    if (!takenKeys.has(key.toLowerCase())) return key;
  }
}

/** A valid key that is as similar to the name as possible. */
function keyFor(name: string, { program }: Run): string {
  if (serverKeyFault(name) === undefined) return name;
  const used = 'package' in program ? program.package : 'url' in program ? program.url : program.command;
  const parts = used.split(/[\\/]/);
  const others = [`${name}-server`, parts.at(-1) ?? '', `${parts.at(-1)}-server`];
  return usableServerKey(name) ?? others.map(usableServerKey).find((key) => key !== undefined) ?? 'server';
}
