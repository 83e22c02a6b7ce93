import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../json/is-record.js';
import { insertJson, removeJson } from './edit-json.js';
import { insertToml, removeToml } from './edit-toml.js';
import { insertYaml, removeYaml } from './edit-yaml.js';
import type { ClientPlace, EditedPlace, Entry } from './found-server.js';
import { BYTE_ORDER_MARK, type Format, parseFile } from './parse-file.js';
import { Refusal } from './refusal.js';

interface Editor {
  /** Adds an entry, or replaces the one of this name. */
  insert(content: string, place: EditedPlace, name: string, entry: Entry): string;
  /** Removes an entry that exists. */
  remove(content: string, place: EditedPlace, name: string): string;
}

const JSON_EDITOR: Editor = { insert: insertJson, remove: removeJson };
const EDITORS: Readonly<Record<Format, Editor>> = {
  json: JSON_EDITOR,
  jsonc: JSON_EDITOR,
  toml: { insert: insertToml, remove: removeToml },
  yaml: { insert: insertYaml, remove: removeYaml },
};

/**
 * Adds an entry to the text of a client's file, or replaces the entry of this name. Every other character stays: comments,
 * order, indentation, line ends, a byte order mark, a missing line end at the end.
 *
 * Throws a `Refusal` if the text does not parse, or if it is written in a way that cannot be edited.
 */
export function withEntry(text: string, place: ClientPlace, name: string, entry: Entry): string {
  return edited(text, place, (content, data) => {
    const expected = changed(data, place.path, (servers) => put(servers, place, name, entry));
    return { content: EDITORS[place.format].insert(content, place, name, entry), expected };
  });
}

/** Removes an entry; returns the same text if there is none. What is not a part of the entry stays, also an empty parent. */
export function withoutEntry(text: string, place: ClientPlace, name: string): string {
  return edited(text, place, (content, data) => {
    if (entryIn(content, place, name) === undefined) return { content, expected: data };
    const expected = changed(data, place.path, (servers) => take(servers, place, name));
    return { content: EDITORS[place.format].remove(content, place, name), expected };
  });
}

/** The entry of this name as the file has it; empty if it is no object, and `undefined` if there is none. */
export function entryIn(text: string, place: ClientPlace, name: string): Entry | undefined {
  const servers = serversAt(parseFile(place.format, text), place.path);
  if (Array.isArray(servers)) {
    const found: unknown = servers.find((each: unknown) => isRecord(each) && each.name === name);
    return isRecord(found) ? found : undefined;
  }
  if (!isRecord(servers) || !Object.hasOwn(servers, name)) return undefined;
  const entry = servers[name];
  return isRecord(entry) ? entry : {};
}

type Edit = (content: string, data: unknown) => { content: string; expected: unknown };

/** Compares everything in the file before and after the edit, so that no edit can change what it should not. */
function edited(text: string, { format, path }: ClientPlace, edit: Edit): string {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
  const { content, expected } = edit(text.slice(mark.length), parseFile(format, text));
  if (!isDeepStrictEqual(comparable(parsedOr(format, content), path), comparable(expected, path))) {
    throw new Refusal('it is written in a way that Trunkline cannot edit without changing more than its entry');
  }
  return mark + content;
}

function parsedOr(format: Format, content: string): unknown {
  try {
    return parseFile(format, content);
  } catch {
    return new Error('the edit has broken the file');
  }
}

/** In TOML, a table of servers is there as long as it has a server, and a file without tables is an empty one. */
function comparable(data: unknown, path: readonly string[]): unknown {
  const value = plain(data);
  const servers = serversAt(value, path);
  const isEmpty = isRecord(servers) && Object.keys(servers).length === 0;
  const withoutLast = (parent: unknown) =>
    Object.fromEntries(Object.entries(parent ?? {}).filter(([member]) => member !== path.at(-1)));
  const rest = isEmpty ? changed(value, path.slice(0, -1), withoutLast) : value;
  return isRecord(rest) && Object.keys(rest).length === 0 ? null : rest;
}

/** The parsers make objects with different prototypes, and none for an empty file. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (value === undefined || value === null) return null;
  if (typeof value !== 'object' || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
}

function serversAt(data: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, member) => {
    return isRecord(value) && Object.hasOwn(value, member) ? value[member] : undefined;
  }, data);
}

/** The data with other servers. What is on the way and missing or empty becomes an object. */
function changed(data: unknown, path: readonly string[], change: (servers: unknown) => unknown): unknown {
  const [member, ...rest] = path;
  if (member === undefined) return change(data);
  if (data !== undefined && data !== null && !isRecord(data)) throw notAnObject();
  const inside = data !== undefined && data !== null && Object.hasOwn(data, member) ? data[member] : undefined;
  return { ...data, [member]: changed(inside, rest, change) };
}

function put(servers: unknown, { isList }: ClientPlace, name: string, entry: Entry): unknown {
  if (isList === true) {
    if (servers !== undefined && servers !== null && !Array.isArray(servers)) throw notAnObject();
    const list: unknown[] = servers ?? [];
    const at = list.findIndex((each) => isRecord(each) && each.name === name);
    return at < 0 ? [...list, entry] : list.with(at, entry);
  }
  if (servers !== undefined && servers !== null && !isRecord(servers)) throw notAnObject();
  return { ...servers, [name]: entry };
}

function take(servers: unknown, { isList }: ClientPlace, name: string): unknown {
  if (isList === true && Array.isArray(servers)) {
    const at = servers.findIndex((each: unknown) => isRecord(each) && each.name === name);
    return servers.filter((_, index) => index !== at);
  }
  return Object.fromEntries(Object.entries(servers ?? {}).filter(([each]) => each !== name));
}

function notAnObject(): Refusal {
  return new Refusal('what should hold the servers is something else there');
}
