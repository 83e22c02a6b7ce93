import type { NewEntry } from '../../config/edit/edit-config.js';
import type { Variables } from '../../config/resolve/references.js';
import { SERVER_KEY_MAX_LENGTH, serverKeyFault, usableServerKey } from '../../config/schema/server-key.js';
import type { FoundServer } from '../files/found-server.js';
import { gatewayOf } from './gateways.js';
import { CannotImport, identityOfRun, type Run, runOf, type ToRunOptions, toRun } from './run.js';
import { type SecretFile, toEntry } from './to-entry.js';

/** The decision of an import about one server of a client. */
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
  /** The variables that have to be set. */
  readonly unset?: readonly string[];
}

export interface PlanOptions extends ToRunOptions {
  readonly found: readonly FoundServer[];
  /** The entries that the configuration has already, as they stand in it. */
  readonly present: Readonly<Record<string, unknown>>;
  readonly secrets: SecretFile;
  readonly env: Variables;
  readonly isOurselves: (run: FoundServer['run']) => boolean;
  /** The servers that were asked for by name; all others are left out. Empty for all. */
  readonly names: readonly string[];
}

/** Decides about each server. Writes nothing; `secrets` takes the secrets of the servers to add. */
export function planImport(options: PlanOptions): PlannedServer[] {
  return new ImportPlan(options).servers;
}

class ImportPlan {
  readonly servers: PlannedServer[];
  readonly #options: PlanOptions;
  /** By identity, the key of the server that is or will be in the configuration. */
  readonly #known = new Map<string, string>();
  /** In lower case. */
  readonly #taken: Set<string>;
  /** Identities of servers that at least one client has enabled. A disabled copy of another client does not count. */
  readonly #enabled = new Set<string>();

  constructor(options: PlanOptions) {
    const { present, found, names } = options;
    this.#options = options;
    this.#taken = new Set(Object.keys(present).map((key) => key.toLowerCase()));
    for (const [key, entry] of Object.entries(present)) {
      const run = runOf(entry);
      if (run !== undefined) this.#known.set(this.#identityOf(run), key);
    }
    const wanted = found.filter(({ name }) => names.length === 0 || names.includes(name));
    const runs = wanted.map((server): [FoundServer, Run | CannotImport] => [server, this.#runOf(server)]);
    for (const [{ isDisabled }, run] of runs) {
      if (!isDisabled && !(run instanceof CannotImport)) this.#enabled.add(this.#identityOf(run));
    }
    this.servers = runs.map(([server, run]) => this.#plan(server, run));
  }

  #runOf(server: FoundServer): Run | CannotImport {
    try {
      return toRun(server, this.#options);
    } catch (error) {
      if (error instanceof CannotImport) return error;
      throw error;
    }
  }

  #plan(found: FoundServer, run: Run | CannotImport): PlannedServer {
    if (this.#options.isOurselves(found.run)) return { found, verdict: 'skipped', because: 'it is Trunkline itself' };
    if (run instanceof CannotImport) return { found, verdict: 'cannot', because: run.message };
    const gateway = gatewayOf(run);
    if (gateway !== undefined && this.#options.names.length === 0) {
      const because = `it is another gateway, ${gateway}; import its own file with --from FILE`;
      return { found, verdict: 'skipped', because, run };
    }
    const identity = this.#identityOf(run);
    const known = this.#known.get(identity);
    if (known !== undefined) return { found, verdict: 'same', key: known, because: `same as ${known}`, run };
    const wanted = keyFor(found.name, run);
    const key = this.#freeKey(wanted);
    try {
      const planned = this.#new(found, run, key, !this.#enabled.has(identity));
      this.#known.set(identity, key);
      this.#taken.add(key.toLowerCase());
      const because = key === wanted ? '' : `the name ${wanted} is taken`;
      return { ...planned, verdict: key === found.name ? 'new' : 'renamed', because };
    } catch (error) {
      if (error instanceof CannotImport) return { found, verdict: 'cannot', because: error.message, run };
      throw error;
    }
  }

  #new(found: FoundServer, run: Run, key: string, isDisabled: boolean): Omit<PlannedServer, 'verdict' | 'because'> {
    const { allowedTools, deniedTools } = found;
    const timeoutMs = found.run.kind === 'command' ? found.run.timeoutMs : undefined;
    const settings = { allowedTools, deniedTools, timeoutMs, isDisabled };
    const { secrets, env } = this.#options;
    const { entry, unset } = toEntry(run, key, { ...settings, secrets, env });
    const isRenamed = key !== found.name;
    return { found, key, run, entry, unset, ...(isRenamed && { comment: `"${found.name}" in ${found.place.title}` }) };
  }

  #identityOf(run: Run): string {
    const { env, secrets } = this.#options;
    return identityOfRun(run, { ...env, ...secrets.values });
  }

  #freeKey(wanted: string): string {
    for (let count = 1; ; count += 1) {
      const key = count === 1 ? wanted : numbered(wanted, count);
      if (!this.#taken.has(key.toLowerCase())) return key;
    }
  }
}

/** A valid key that is as similar to the name as possible. */
function keyFor(name: string, { program }: Run): string {
  if (serverKeyFault(name) === undefined) return name;
  const used = 'package' in program ? program.package : program.command;
  const parts = used.split(/[\\/]/);
  const others = [`${name}-server`, parts.at(-1) ?? '', `${parts.at(-1)}-server`];
  return usableServerKey(name) ?? others.map(usableServerKey).find((key) => key !== undefined) ?? 'server';
}

function numbered(key: string, count: number): string {
  const suffix = `-${count}`;
  return key.slice(0, SERVER_KEY_MAX_LENGTH - suffix.length).replace(/[-_]$/, '') + suffix;
}
