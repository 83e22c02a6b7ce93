import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../../wire/json/json-value.js';
import { removeFromJson, setInJson } from './edit-json.js';
import { removeFromToml, setInToml } from './edit-toml.js';
import { removeFromYaml, setInYaml } from './edit-yaml.js';
import { BYTE_ORDER_MARK, FileRefusal, type Format, parseText } from './parse-text.js';

/** The names of the members that lead to a value. In a list, the name is the `name` of an item. */
export type MemberPath = readonly string[];

export interface EditOptions {
  /** Whether the last object on the path is a list whose items have a `name`. */
  readonly isList?: boolean | undefined;
  /** Text for a comment behind the name of a new member, where the format has comments. */
  readonly comment?: string | undefined;
}

/**
 * Adds or replaces the value at a path, and creates missing objects on the path. All other characters stay: comments, order,
 * indentation, line ends, a byte order mark, and a missing line end at the end of the text.
 *
 * Compares the whole content before and after, so that an edit cannot change other values. Throws a `FileRefusal` if the text
 * does not parse, or if its notation cannot be edited.
 */
export function withValue(
  format: Format,
  text: string,
  path: MemberPath,
  value: unknown,
  options: EditOptions = {},
): string {
  return edited(format, text, path, (content, data) => {
    const expected = changed(data, path, value, options);
    switch (format) {
      case 'yaml':
        return { content: setInYaml(content, path, value, options), expected };
      case 'toml':
        return { content: setInToml(content, path, value), expected };
      default:
        return { content: setInJson(content, path, value), expected };
    }
  });
}

/** Removes a value. A missing value leaves the text as it is. An emptied object stays. Throws as `withValue` does. */
export function withoutValue(format: Format, text: string, path: MemberPath): string {
  return edited(format, text, path, (content, data) => {
    if (valueAt(data, path) === undefined) return { content, expected: data };
    const expected = changed(data, path, undefined, {});
    switch (format) {
      case 'yaml':
        return { content: removeFromYaml(content, path), expected };
      case 'toml':
        return { content: removeFromToml(content, path), expected };
      default:
        return { content: removeFromJson(content, path), expected };
    }
  });
}

/** The value at a path of parsed data; `undefined` if it is missing. */
export function valueAt(data: unknown, path: MemberPath): unknown {
  return path.reduce<unknown>((value, name) => {
    if (Array.isArray(value)) return value.find((item: unknown) => isRecord(item) && item.name === name);
    return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }, data);
}

type Edit = (content: string, data: unknown) => { content: string; expected: unknown };

function edited(format: Format, text: string, path: MemberPath, edit: Edit): string {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
  const { content, expected } = edit(text.slice(mark.length), parseText(format, text));
  if (!isDeepStrictEqual(comparable(parsedOr(format, content), path), comparable(expected, path))) {
    throw new FileRefusal('it is written in a way that Trunkline cannot edit without changing more than its entry');
  }
  return mark + content;
}

function parsedOr(format: Format, content: string): unknown {
  try {
    return parseText(format, content);
  } catch {
    return new Error('the edit has broken the file');
  }
}

/** The data without an empty object above the path, because in TOML the table of servers exists only while it has a server. */
function comparable(data: unknown, path: MemberPath): unknown {
  const value = plain(data);
  const above = path.slice(0, -1);
  const parent = above.length > 0 ? valueAt(value, above) : undefined;
  const isEmpty = isRecord(parent) && Object.keys(parent).length === 0;
  const rest = isEmpty ? changed(value, above, undefined, {}) : value;
  return isRecord(rest) && Object.keys(rest).length === 0 ? null : rest;
}

/** The data with ordinary objects, and with null for an empty file, because the parsers differ in both. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (value === undefined || value === null) return null;
  if (typeof value !== 'object' || value instanceof Date) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
}

/** The data with another value at the path, or without the value. Creates an object that is missing or `null`. */
function changed(data: unknown, [name = '', ...rest]: MemberPath, value: unknown, options: EditOptions): unknown {
  const isLast = rest.length === 0;
  const isList = options.isList ?? (value === undefined && Array.isArray(data));
  if (isLast && isList) return changedList(data ?? [], name, value);
  if (data !== undefined && data !== null && !isRecord(data)) throw notAnObject();
  const { [name]: inside, ...others } = data ?? {};
  if (isLast && value === undefined) return others;
  return { ...data, [name]: isLast ? value : changed(inside, rest, value, options) };
}

function changedList(data: unknown, name: string, value: unknown): unknown {
  if (!Array.isArray(data)) throw notAnObject();
  const items: readonly unknown[] = data;
  const at = items.findIndex((item) => isRecord(item) && item.name === name);
  if (value === undefined) return items.filter((_, index) => index !== at);
  return at < 0 ? [...items, value] : items.with(at, value);
}

function notAnObject(): FileRefusal {
  return new FileRefusal('what should hold the servers is something else there');
}
