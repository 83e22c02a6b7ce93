import { basename } from 'node:path';
import { isRecord } from '../../json/is-record.js';
import { clientNamed } from './client-table.js';
import type { ClientPlace, FoundServer } from './found-server.js';
import { type Format, parseFile } from './parse-file.js';
import { readEntry } from './read-entry.js';
import { Refusal } from './refusal.js';

/**
 * The servers in the text of a client's file. For a client that Trunkline does not know, the format and the members that
 * lead to the servers are found by the name of the file and by its content.
 *
 * Throws a `Refusal`, an `Error` that says in one sentence why the text cannot be read, and shows nothing of it.
 */
export function readServers(place: ClientPlace, text: string): FoundServer[] {
  if (clientNamed(place.client) !== undefined) return serversIn(place, parseFile(place.format, text));
  const { format, data } = parseGuessed(place, text);
  const path = [place.path, ...USUAL_PATHS].find((each) => valueAt(data, each) !== undefined);
  if (path === undefined) throw new Refusal(`it has no servers: no ${USUAL_NAMES}`);
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

/** The value that the members lead to; `undefined` if there is none. */
export function valueAt(data: unknown, path: readonly string[]): unknown {
  let value = data;
  for (const name of path) {
    if (!isRecord(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
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
  if (named !== undefined) return { format: named, data: parseFile(named, text) };
  // YAML comes last, because almost every text is YAML.
  for (const each of new Set<Format>([format, 'jsonc', 'toml', 'yaml'])) {
    try {
      const data = parseFile(each, text);
      if (isRecord(data)) return { format: each, data };
    } catch {
      // Another format, then.
    }
  }
  throw new Refusal('it is neither JSON, TOML nor YAML');
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
