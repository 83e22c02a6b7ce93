import { Document, isCollection, isMap, isNode, isPair, isScalar, type Node, parseDocument, type YAMLMap } from 'yaml';
import type { EditedPlace, Entry } from './found-server.js';
import { Refusal } from './refusal.js';

/*
 * Edits of YAML as text: the library finds the places and writes the entry. It would write the rest of the file anew.
 */

export function insertYaml(content: string, { path, isList }: EditedPlace, name: string, entry: Entry): string {
  const [key = '', ...inner] = path;
  if (inner.length > 0) throw new Refusal('Trunkline edits YAML only where the servers are at the top of the file');
  const item = isList === true ? [entry] : { [name]: entry };
  const existing = pieceOf(content, key, name);
  const servers = memberOf(content, key);
  if (existing !== undefined) {
    const { start, end, indent } = existing;
    if (indent === undefined) throw inBrackets();
    return content.slice(0, start) + rendered(item, indent, content) + content.slice(end);
  }
  if (servers === undefined) return appended(content, rendered({ [key]: item }, '', content));
  const { value } = servers;
  if (isCollection(value) && value.items.length > 0) {
    if (value.flow === true) return insertInBrackets(content, value, item);
    return insertAfter(content, value, rendered(item, indentOf(content, value), content));
  }
  // Nothing is there, or an empty object or list.
  const range = isNode(value) ? value.range : undefined;
  const [start, end] = range ?? [servers.keyEnd, servers.keyEnd];
  const before = content.slice(0, start).replace(/[ \t]+$/, '');
  const block = rendered(item, '  ', content);
  const isEmptyText = before.endsWith(':') && start === end;
  const keep = isEmptyText ? content.slice(before.length) : content.slice(end);
  // A comment there is about the key.
  const rest = endOfLine(keep, 0);
  return before + keep.slice(0, rest) + lineEndOf(content) + block + keep.slice(rest);
}

export function removeYaml(content: string, { path, isList }: EditedPlace, name: string): string {
  const [key = ''] = path;
  const piece = pieceOf(content, key, name);
  if (piece === undefined) return content;
  const { start, end, isOnly, indent } = piece;
  if (indent === undefined) return removeInBrackets(content, key, name);
  // Without its line end before it, so that the line end after it is the one that was there.
  const before = content.slice(0, start).replace(/\r?\n$/, '');
  const after = content.slice(end);
  if (isOnly) {
    // Comments between the key and the entry stay.
    const { keyEnd = before.length } = memberOf(content, key) ?? {};
    return `${before.slice(0, keyEnd)} ${isList === true ? '[]' : '{}'}${before.slice(keyEnd)}${after}`;
  }
  if (before.length === start) return after.replace(/^\r?\n/, '');
  return before + after;
}

interface Piece {
  /** Where the first line of the entry begins, and where its last line ends. */
  readonly start: number;
  readonly end: number;
  /** Blanks before each line of the entry; absent in brackets. */
  readonly indent: string | undefined;
  readonly isOnly: boolean;
}

/** The lines of an entry: of a map the pair with this name, of a list the item whose `name` it is. */
function pieceOf(content: string, key: string, name: string): Piece | undefined {
  const value = memberOf(content, key)?.value;
  if (!isCollection(value)) return undefined;
  const item = value.items.find((each) => nameOf(each) === name);
  const first = isPair(item) ? item.key : item;
  const last = isPair(item) && isNode(item.value) ? item.value : first;
  if (!isNode(first) || !isNode(last) || !first.range || !last.range) return undefined;
  const isOnly = value.items.length === 1;
  if (value.flow === true) return { start: first.range[0], end: last.range[1], indent: undefined, isOnly };
  const start = content.lastIndexOf('\n', first.range[0] - 1) + 1;
  return { start, end: endOfLine(content, last.range[1]), indent: indentOf(content, value), isOnly };
}

function nameOf(item: unknown): unknown {
  if (isPair(item)) return isScalar(item.key) ? item.key.value : undefined;
  return isMap(item) ? item.get('name') : undefined;
}

function memberOf(content: string, key: string): { value: unknown; keyEnd: number } | undefined {
  const { contents } = documentOf(content);
  if (contents === null) return undefined;
  if (!isMap(contents)) throw new Refusal('what should hold the servers is something else there');
  const pair = (contents as YAMLMap<unknown, unknown>).items.find((each) => nameOf(each) === key);
  if (pair === undefined) return undefined;
  if (contents.flow === true) throw inBrackets();
  const keyEnd = isNode(pair.key) ? (pair.key.range?.[1] ?? 0) : 0;
  return { value: pair.value, keyEnd: content.indexOf(':', keyEnd) + 1 };
}

function documentOf(content: string) {
  return parseDocument(content, { prettyErrors: false, logLevel: 'silent' });
}

/** Blanks before the items: those before the first key of a map, or before the dash of a list. */
function indentOf(content: string, collection: Node): string {
  const [first] = collection.range ?? [0];
  const start = content.lastIndexOf('\n', first - 1) + 1;
  return /^ */.exec(content.slice(start, first))?.[0] ?? '';
}

function insertAfter(content: string, collection: Node, block: string): string {
  const items = isCollection(collection) ? collection.items : [];
  const last = items.at(-1);
  const node = isPair(last) ? (isNode(last.value) ? last.value : last.key) : last;
  const at = isNode(node) ? endOfLine(content, node.range?.[1] ?? content.length) : content.length;
  return content.slice(0, at) + lineEndAt(content, at) + block + content.slice(at);
}

function insertInBrackets(content: string, collection: Node, item: unknown): string {
  const items = isCollection(collection) ? collection.items : [];
  const last = items.at(-1);
  const node = isPair(last) ? (isNode(last.value) ? last.value : last.key) : last;
  const at = isNode(node) ? node.range?.[1] : undefined;
  if (at === undefined) throw inBrackets();
  const json = JSON.stringify(item).slice(1, -1);
  return `${content.slice(0, at)}, ${json}${content.slice(at)}`;
}

function removeInBrackets(content: string, key: string, name: string): string {
  const value = memberOf(content, key)?.value;
  const piece = pieceOf(content, key, name);
  if (!isCollection(value) || piece === undefined) return content;
  const before = content.slice(0, piece.start).replace(/,\s*$/, '');
  const after = content.slice(piece.end);
  return before.length < piece.start && !/[[{]\s*$/.test(before)
    ? before + after
    : before + after.replace(/^\s*,\s*/, '');
}

/** The end of the line of a position. A text of several lines (`|`) ends at the beginning of the next line. */
function endOfLine(content: string, from: number): number {
  const at = content[from - 1] === '\n' ? from - 1 : from;
  const found = content.indexOf('\n', at);
  const end = found < 0 ? content.length : found;
  return content[end - 1] === '\r' && found >= 0 ? end - 1 : end;
}

function rendered(value: unknown, indent: string, content: string): string {
  const lines = new Document(value).toString({ lineWidth: 0 }).trimEnd().split('\n');
  return lines.map((line) => (line === '' ? line : indent + line)).join(lineEndOf(content));
}

/** A missing line end at the end of the file stays missing. */
function appended(content: string, block: string): string {
  const lineEnd = lineEndOf(content);
  if (content === '') return block + lineEnd;
  return content.endsWith('\n') ? content + block + lineEnd : content + lineEnd + block;
}

function lineEndOf(content: string): string {
  return content.includes('\r\n') ? '\r\n' : '\n';
}

function lineEndAt(content: string, at: number): string {
  const before = content.slice(0, at);
  return /\r?\n/.exec(content.slice(at))?.[0] ?? /\r?\n(?!.*\n)/s.exec(before)?.[0] ?? '\n';
}

function inBrackets(): Refusal {
  return new Refusal('its servers are written in brackets, which Trunkline cannot edit');
}
