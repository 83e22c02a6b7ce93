import { printable } from '../../wire/json/printable.js';
import { suggest } from '../../wire/json/suggest.js';
import { splitExposedName } from '../../wire/mcp/exposed-name.js';
import type { Catalog } from '../catalog/catalog.js';
import type { Backend } from '../registry/backend.js';

type Noun = 'tool' | 'prompt';

interface Candidate {
  readonly exposed: string;
  readonly prefix: string;
  readonly original: string;
  /** Absent for the gateway's own entries. */
  readonly server?: Backend;
}

/** Limit of a name in characters. A longer name is cut in the message, and gets no suggestion. */
const MAX_NAME_LENGTH = 100;
/** Limit of the names that are compared. Each comparison takes some microseconds, in which all other calls wait. */
const MAX_COMPARED = 500;
const MAX_SUGGESTED = 3;

/** Returns the message for an unknown name. It also suggests names of servers that do not run now. */
export function describeUnknownName(kind: Noun, name: string, catalog: Catalog, servers: readonly Backend[]): string {
  const message = plainUnknownName(kind, name);
  if (name.length > MAX_NAME_LENGTH) return message;
  const meant = likely(name, candidatesOf(kind, catalog, servers)).slice(0, MAX_SUGGESTED);
  if (meant.length > 0) {
    const names = meant.map(({ exposed }) => `\`${printable(exposed)}\``).join(' or ');
    const down = meant.flatMap(({ server }) => (server?.isUnavailable === true ? [server] : []));
    return [`${message}. Did you mean ${names}?`, ...describeDown(down, 'so the call would fail')].join(' ');
  }
  // If no similar name is known, only the prefix shows which server may have the entry.
  const down = servers.filter((server) => server.isUnavailable && mayOwn(server, name));
  return [message, ...describeDown(down, `so its ${kind}s are not listed`)].join('. ');
}

/** The message without suggestions. */
export function plainUnknownName(kind: Noun, name: string): string {
  const isCut = name.length > MAX_NAME_LENGTH;
  return `Unknown ${kind}: ${printable(name.slice(0, MAX_NAME_LENGTH))}${isCut ? '…' : ''}`;
}

function candidatesOf(kind: Noun, catalog: Catalog, servers: readonly Backend[]): Candidate[] {
  const own = catalog.own.map(({ name: exposed }): Candidate => {
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

/** Returns the names that were most likely meant: with another prefix or none, with other separators, or misspelled. */
function likely(name: string, candidates: readonly Candidate[]): readonly Candidate[] {
  const { prefix, original } = splitExposedName(name) ?? { prefix: '', original: name };
  const similarPrefix = suggest(prefix, new Set(candidates.map((candidate) => candidate.prefix)));
  const ofPrefix = candidates.filter((candidate) => prefix !== '' && candidate.prefix === similarPrefix);
  // Many servers may have a tool of this name, such as `search`, so names of the same prefix come first.
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

function mayOwn({ prefix }: Backend, name: string): boolean {
  const wanted = splitExposedName(name)?.prefix;
  return prefix === '' || (wanted !== undefined && suggest(wanted, [prefix]) !== undefined);
}

function describeDown(servers: readonly Backend[], consequence: string): string[] {
  const keys = [...new Set(servers.map(({ key }) => `"${key}"`))].slice(0, MAX_SUGGESTED);
  if (keys.length === 0) return [];
  const subject = keys.length === 1 ? `Server ${keys[0]} does` : `Servers ${keys.join(', ')} do`;
  return [`${subject} not run now, ${consequence}; trunkline__status shows why`];
}
