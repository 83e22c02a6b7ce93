import { basename } from 'node:path';
import { valueAt, withoutValue, withValue } from '../../files/edit/edit-text.js';
import { FileRefusal, type Format, parseText } from '../../files/edit/parse-text.js';
import { isRecord } from '../../json/is-record.js';
import { clientNamed } from './client-table.js';
import type { ClientPlace, Entry, FoundServer } from './found-server.js';
import { readEntry } from './read-entry.js';

/**
 * The servers in the text of a client's file. For a client that Trunkline does not know, the format and the members that
 * lead to the servers are found by the name of the file and by its content.
 *
 * Throws a `FileRefusal`, an `Error` that says in one sentence why the text cannot be read, and shows nothing of it.
 */
export function readServers(place: ClientPlace, text: string): FoundServer[] {
  if (clientNamed(place.client) !== undefined) return serversIn(place, parseText(place.format, text));
  const { format, data } = parseGuessed(place, text);
  const path = [place.path, ...USUAL_PATHS].find((each) => valueAt(data, each) !== undefined);
  if (path === undefined) throw new FileRefusal(`it has no servers: no ${USUAL_NAMES}`);
  const isList = Array.isArray(valueAt(data, path));
  return serversIn({ ...place, format, path, ...(isList && { isList }) }, data);
}

/** The servers in parsed data. */
export function serversIn(place: ClientPlace, data: unknown): FoundServer[] {
  return namedEntries(place, valueAt(data, place.path)).flatMap(([name, entry]) => {
    const found = readEntry(place, name, entry);
    if (found === undefined) return [];
    return isLeftOut(place, name, data) ? { ...found, isDisabled: true } : found;
  });
}

/** Gemini CLI names the servers that it starts, or does not start, apart from the servers. */
function isLeftOut({ client }: ClientPlace, name: string, data: unknown): boolean {
  if (client !== 'gemini') return false;
  const [allowed, excluded] = ['allowed', 'excluded'].map((list) => valueAt(data, ['mcp', list]));
  return (Array.isArray(allowed) && !allowed.includes(name)) || (Array.isArray(excluded) && excluded.includes(name));
}

/** The entry of this name as the file has it; empty if it is no object, and `undefined` if there is none. */
export function entryIn(text: string, place: ClientPlace, name: string): Entry | undefined {
  const entry = valueAt(parseText(place.format, text), [...place.path, name]);
  return entry === undefined || isRecord(entry) ? entry : {};
}

/** Adds an entry to the text of a client's file, or replaces the entry of this name. Throws a `FileRefusal`. */
export function withEntry(text: string, { format, path, isList }: ClientPlace, name: string, entry: Entry): string {
  return withValue(format, text, [...path, name], entry, { isList });
}

/** Removes an entry; returns the same text if there is none. Throws a `FileRefusal`. */
export function withoutEntry(text: string, { format, path }: ClientPlace, name: string): string {
  return withoutValue(format, text, [...path, name]);
}

/** In the order in which to look. */
const USUAL_PATHS = [
  ['mcpServers'],
  ['mcp_servers'],
  ['servers'],
  ['context_servers'],
  ['amp.mcpServers'],
  ['mcp', 'servers'],
  ['mcp'],
  ['extensions'],
];
const USUAL_NAMES = '`mcpServers`, `servers`, `mcp_servers`, `context_servers`, `mcp` or `extensions`';

function parseGuessed({ file, format }: ClientPlace, text: string): { format: Format; data: unknown } {
  const [, ending = ''] = /\.(json|jsonc|toml|ya?ml)$/i.exec(basename(file)) ?? [];
  const named = FORMAT_OF.get(ending.toLowerCase());
  if (named !== undefined) return { format: named, data: parseText(named, text) };
  // YAML comes last, because almost every text is YAML.
  for (const each of new Set<Format>([format, 'jsonc', 'toml', 'yaml'])) {
    try {
      const data = parseText(each, text);
      if (isRecord(data)) return { format: each, data };
    } catch {
      // Another format, then.
    }
  }
  throw new FileRefusal('it is neither JSON, TOML nor YAML');
}

const FORMAT_OF: ReadonlyMap<string, Format> = new Map([
  ['json', 'json'],
  ['jsonc', 'jsonc'],
  ['toml', 'toml'],
  ['yaml', 'yaml'],
  ['yml', 'yaml'],
]);

function namedEntries({ isList }: ClientPlace, value: unknown): [string, unknown][] {
  if (isList === true && Array.isArray(value)) {
    return value.flatMap((entry: unknown) => {
      return isRecord(entry) && typeof entry.name === 'string' ? [[entry.name, entry]] : [];
    });
  }
  return isRecord(value) ? Object.entries(value) : [];
}
