import { isDeepStrictEqual } from 'node:util';
import { FileRefusal } from '../../files/edit/parse-text.js';
import type { TouchedEntry } from './change-journal.js';
import { type ClientFile, readClientFile, textOf } from './client-file.js';
import { placeIn, userFiles } from './client-places.js';
import { type Client, clientNamed } from './client-table.js';
import { isInstalled, targetFile, targetPlace } from './client-target.js';
import type { ClientPlace, ClientSystem, Entry, FoundServer } from './found-server.js';
import { isOurselves } from './identity.js';
import { OWN_NAME, type OwnCommand, ownEntry } from './own-entry.js';
import { readEntry } from './read-entry.js';
import { entryIn, withEntry, withoutEntry } from './read-servers.js';

/** What a command would do with one file of a client. */
export type Plan = PlannedChange | NoChange;

export interface PlannedChange {
  readonly kind: 'add' | 'replace' | 'remove';
  readonly client: Client;
  readonly place: ClientPlace;
  /** The file for which this was planned. It is not written if it has other content by then. */
  readonly known: ClientFile;
  /** The text to write. */
  readonly content: string;
  readonly entries: readonly TouchedEntry[];
  /** The entry of Trunkline that is added. */
  readonly entry?: Entry;
}

export interface NoChange {
  /** Nothing has to be done, or nothing can be done. */
  readonly kind: 'unchanged' | 'refused';
  readonly client: Client;
  readonly file?: string;
  /** A part of a sentence that shows nothing of the file. */
  readonly because: string;
}

export interface PlanOptions {
  readonly system: ClientSystem;
  /** Trunkline's program. */
  readonly cliPath: string;
}

/** Plans to register Trunkline with a client. `isNamed`: the user has named the client, and not just all of them. */
export async function planConnect(
  client: Client,
  own: Pick<OwnCommand, 'command' | 'args'>,
  { system, cliPath, isNamed }: PlanOptions & { readonly isNamed: boolean },
): Promise<Plan[]> {
  if (!isInstalled(client, system) && !(client.isCreatedByUsers === true && isNamed)) {
    return [{ kind: 'refused', client, because: `${client.title} is not installed here` }];
  }
  let target: string | undefined;
  const plan = await planned(
    client,
    () => target,
    async () => {
      target = targetFile(client, system);
      const known = await readClientFile(target, system.home);
      if (known.bytes === undefined && client.needsFile === true) {
        throw new FileRefusal(`${client.title} has no ${target} yet; start ${client.title} once`);
      }
      const text = textOf(known);
      const place = targetPlace(client, target, text);
      const existing = ownIn(text, place, cliPath);
      const fresh = ownEntry(client.shape, own);
      if (existing !== undefined && isSame(existing, place, fresh)) {
        return { kind: 'unchanged', client, file: target, because: 'Trunkline is already registered there' };
      }
      const entry = existing === undefined ? fresh : { ...enabled(existing), ...fresh };
      const content = withEntry(text, place, OWN_NAME, entry);
      const kind = existing === undefined ? 'add' : 'replace';
      return { kind, client, place, known, content, entry, entries: [{ path: place.path, name: OWN_NAME }] };
    },
  );
  // An entry in a file that the client ignores only misleads.
  const stale = plan.kind === 'refused' ? [] : await planDisconnect(client, { system, cliPath });
  return [plan, ...stale.filter((each) => each.kind === 'remove' && each.place.file !== target)];
}

/** Plans to remove Trunkline from all files of the user that a client has. */
export async function planDisconnect(client: Client, { system, cliPath }: PlanOptions): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const file of userFiles(client, system, 'written')) {
    const plan = await planned(
      client,
      () => file,
      async () => {
        const known = await readClientFile(file, system.home);
        if (known.bytes === undefined) return undefined;
        const text = textOf(known);
        const place = targetPlace(client, file, text);
        if (ownIn(text, place, cliPath) === undefined) return undefined;
        const content = withoutEntry(text, place, OWN_NAME);
        return { kind: 'remove', client, place, known, content, entries: [{ path: place.path, name: OWN_NAME }] };
      },
    );
    if (plan.kind !== 'unchanged') plans.push(plan);
  }
  return plans.length > 0 ? plans : [{ kind: 'unchanged', client, because: 'Trunkline is not registered there' }];
}

/** Plans to remove servers that Trunkline has taken over: all those of one file in one change. */
export async function planTakeOut(
  taken: readonly Pick<FoundServer, 'place' | 'name'>[],
  { home }: Pick<ClientSystem, 'home'>,
): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const file of new Set(taken.map(({ place }) => place.file))) {
    const ofFile = taken.filter(({ place }) => place.file === file);
    const [place] = ofFile.map((each) => each.place);
    const client = place && clientNamed(place.client);
    if (place === undefined || client === undefined) continue;
    const plan = await planned(
      client,
      () => file,
      async () => {
        const known = await readClientFile(file, home);
        const text = textOf(known);
        const there = ofFile.filter((each) => entryIn(text, each.place, each.name) !== undefined);
        if (there.length === 0) return undefined;
        const content = there.reduce((shorter, each) => withoutEntry(shorter, each.place, each.name), text);
        const entries = there.map((each) => ({ path: each.place.path, name: each.name }));
        return { kind: 'remove', client, place, known, content, entries };
      },
    );
    plans.push(plan);
  }
  return plans;
}

/** A place of a client in a file, by the members that lead to the servers. */
export function placeAt(client: Client, file: string, path: readonly string[]): ClientPlace {
  return { ...placeIn(client, 'user', file), path };
}

/** Trunkline's entry; `undefined` if there is none. Throws a `FileRefusal` if the entry of this name is another server. */
function ownIn(text: string, place: ClientPlace, cliPath: string): Entry | undefined {
  const entry = entryIn(text, place, OWN_NAME);
  if (entry === undefined) return undefined;
  const found = readEntry(place, OWN_NAME, entry);
  if (found !== undefined && isOurselves(found.run, cliPath)) return entry;
  throw new FileRefusal(`its entry \`${OWN_NAME}\` is another server; rename or remove that entry first`);
}

/** Runs `plan`, and turns its `FileRefusal` into a refused plan. The file may become known while planning. */
async function planned(
  client: Client,
  file: () => string | undefined,
  plan: () => Promise<Plan | undefined>,
): Promise<Plan> {
  const without = (kind: NoChange['kind'], because: string): Plan => {
    const known = file();
    return known === undefined ? { kind, client, because } : { kind, client, file: known, because };
  };
  try {
    return (await plan()) ?? without('unchanged', 'there is nothing to change');
  } catch (error) {
    if (error instanceof FileRefusal) return without('refused', error.message);
    throw error;
  }
}

/** Whether an entry starts the same program with the same arguments. The user may have added other members. */
function isSame(existing: Entry, place: ClientPlace, fresh: Entry): boolean {
  const [one, other] = [existing, fresh].map((entry) => readEntry(place, OWN_NAME, entry));
  if (one?.run.kind !== 'command' || other?.run.kind !== 'command' || one.isDisabled) return false;
  return one.run.command === other.run.command && isDeepStrictEqual(one.run.args, other.run.args);
}

function enabled(entry: Entry): Entry {
  return {
    ...entry,
    ...(entry.disabled === true && { disabled: false }),
    ...(entry.enabled === false && { enabled: true }),
  };
}
