import { printable } from '../../json/printable.js';
import { suggest } from '../../json/suggest.js';
import { splitExposedName } from '../../mcp/exposed-name.js';
import type { Catalog } from '../catalog/catalog.js';
import type { Backend } from '../registry/backend.js';

/** Properties of a server for the text. */
type NamedServer = Pick<Backend, 'key' | 'prefix' | 'isUnavailable' | 'knownListsAs'>;

export interface UnknownName {
  readonly kind: 'tool' | 'prompt';
  /** As the client wrote it. */
  readonly name: string;
  /** The merged list that lacks the name. */
  readonly catalog: Catalog;
  /** All servers, also those that do not run. */
  readonly servers: Iterable<NamedServer>;
}

/** A name that a client may have meant. */
interface Candidate {
  readonly exposed: string;
  readonly prefix: string;
  readonly original: string;
  /** Absent for the gateway's own entries. */
  readonly server?: NamedServer;
}

/** A longer name is cut in the message, and nothing is suggested for it. */
const MAX_NAME_LENGTH = 100;
/** Comparing two names takes some microseconds, and all other calls wait meanwhile. */
const MAX_COMPARED = 500;
const MAX_SUGGESTED = 3;

/**
 * The message for a name that belongs to no server. It suggests names that the client may have meant, also those of
 * servers that do not run now.
 */
export function describeUnknownName({ kind, name, catalog, servers }: UnknownName): string {
  const message = plainUnknownName(kind, name);
  if (name.length > MAX_NAME_LENGTH) return message;
  const all = [...servers];
  const meant = likely(name, candidatesOf(kind, catalog, all)).slice(0, MAX_SUGGESTED);
  if (meant.length > 0) {
    const names = meant.map(({ exposed }) => `\`${printable(exposed)}\``).join(' or ');
    const down = meant.flatMap(({ server }) => (server?.isUnavailable === true ? [server] : []));
    return [`${message}. Did you mean ${names}?`, ...describeDown(down, 'so the call would fail')].join(' ');
  }
  // Without known names, the prefix alone tells which server may have the entry.
  const down = all.filter((server) => server.isUnavailable && mayOwn(server, name));
  return [message, ...describeDown(down, `so its ${kind}s are not listed`)].join('. ');
}

/** The message without suggestions. */
export function plainUnknownName(kind: UnknownName['kind'], name: string): string {
  const isCut = name.length > MAX_NAME_LENGTH;
  return `Unknown ${kind}: ${printable(name.slice(0, MAX_NAME_LENGTH))}${isCut ? '…' : ''}`;
}

function candidatesOf(kind: UnknownName['kind'], catalog: Catalog, servers: readonly NamedServer[]): Candidate[] {
  const own = catalog.ownNames.map((exposed): Candidate => {
    return { exposed, ...(splitExposedName(exposed) ?? { prefix: '', original: exposed }) };
  });
  const listed = servers.flatMap((server) =>
    server.knownListsAs('exposed')[`${kind}s`].entries.flatMap(({ exposed, original, entry }): Candidate[] => {
      const isShown = entry !== undefined && (server.isUnavailable || catalog.owner(exposed)?.key === server.key);
      return isShown ? [{ exposed, prefix: server.prefix, original, server }] : [];
    }),
  );
  return [...listed, ...own];
}

/** The names that were most likely meant: with another prefix or none, with other separators, or misspelled. */
function likely(name: string, candidates: readonly Candidate[]): readonly Candidate[] {
  const { prefix, original } = splitExposedName(name) ?? { prefix: '', original: name };
  const similarPrefix = suggest(prefix, new Set(candidates.map((candidate) => candidate.prefix)));
  const ofPrefix = candidates.filter((candidate) => prefix !== '' && candidate.prefix === similarPrefix);
  // Many servers may have a tool of this name, such as `search`.
  for (const group of [ofPrefix, candidates]) {
    const sameOriginal = group.filter((candidate) => candidate.original === original);
    if (sameOriginal.length > 0) return sameOriginal;
  }
  const letters = lettersOf(name);
  const sameLetters = candidates.filter(({ exposed }) => letters !== '' && lettersOf(exposed) === letters);
  if (sameLetters.length > 0) return sameLetters;
  return nearest(original, ofPrefix) ?? nearest(original, candidates) ?? [];
}

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

function nearest(word: string, candidates: readonly Candidate[]): readonly Candidate[] | undefined {
  const compared = candidates.slice(0, MAX_COMPARED);
  const found = suggest(word, new Set(compared.map(({ original }) => original)));
  return found === undefined ? undefined : compared.filter(({ original }) => original === found);
}

function mayOwn({ prefix }: NamedServer, name: string): boolean {
  const wanted = splitExposedName(name)?.prefix;
  return prefix === '' || (wanted !== undefined && suggest(wanted, [prefix]) !== undefined);
}

function describeDown(servers: readonly NamedServer[], consequence: string): string[] {
  const keys = [...new Set(servers.map(({ key }) => `"${key}"`))].slice(0, MAX_SUGGESTED);
  if (keys.length === 0) return [];
  const subject = keys.length === 1 ? `Server ${keys[0]} does` : `Servers ${keys.join(', ')} do`;
  return [`${subject} not run now, ${consequence}; trunkline__status shows why`];
}
