import {
  Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { printable } from '../../../wire/json/printable.js';
import { FileRefusal } from './parse-text.js';

/*
 * Edits of YAML. The library finds the position and writes the value, which is then inserted as text, because the library
 * would reformat the rest of the file.
 */

export interface YamlOptions {
  /** Whether the last object on the path is a list whose items have a `name`. */
  readonly isList?: boolean | undefined;
  /** Comment behind the name of a new member, if the notation allows one there. */
  readonly comment?: string | undefined;
}

/** Adds a member or an item behind the others, or replaces the existing one in its place. */
export function setInYaml(text: string, path: readonly string[], value: unknown, options: YamlOptions = {}): string {
  const { contents } = parse(text);
  let collection: Collection | undefined;
  let holder: Pair | undefined;
  let inside: unknown = contents;
  for (let depth = 0; depth < path.length; depth += 1) {
    const added: Added = { path: path.slice(depth), value, options };
    if (isEmpty(inside)) return holder === undefined ? appended(text, added) : filled(text, collection, holder, added);
    if (!isCollection(inside)) throw notEditable();
    collection = inside as Collection;
    const item = itemNamed(collection, path[depth]);
    if (item === undefined) return insertedBehind(text, collection, added);
    if (depth === path.length - 1) return replaced(text, collection, item, added);
    if (!isPair(item)) throw notEditable();
    holder = item;
    inside = item.value;
  }
  throw notEditable();
}

/** Removes a member or an item, with the comments inside of its value. An emptied object stays as `{}`. */
export function removeFromYaml(text: string, path: readonly string[]): string {
  let holder: Pair | undefined;
  let inside: unknown = parse(text).contents;
  for (const name of path.slice(0, -1)) {
    const item = isCollection(inside) ? itemNamed(inside as Collection, name) : undefined;
    if (!isPair(item)) throw notEditable();
    holder = item;
    inside = item.value;
  }
  if (!isCollection(inside)) throw notEditable();
  const collection = inside as Collection;
  const item = itemNamed(collection, path.at(-1));
  if (item === undefined) return text;
  if (collection.flow === true) return removedFromFlow(text, collection, item);
  const [start, end] = linesOf(text, collection, item);
  if (collection.items.length === 1 && holder !== undefined) {
    const colon = text.indexOf(':', rangeOf(holder.key)[1]) + 1;
    const before = `${text.slice(0, colon)} ${isMap(collection) ? '{}' : '[]'}${text.slice(colon, start)}`;
    return end === text.length && !text.endsWith('\n') ? before.replace(/\r?\n$/, '') : before + text.slice(end);
  }
  // If the last line has no line break, the line break before it is removed instead.
  const isOpen = end === text.length && text[end - 1] !== '\n' && text[start - 1] === '\n';
  return text.slice(0, isOpen ? start - lineBreak(text).length : start) + text.slice(end);
}

/** The comment on the line behind a value; `undefined` if there is none. */
export function commentBehind(text: string, path: readonly string[]): string | undefined {
  const node = parse(text).getIn(path, true);
  return isScalar(node) && typeof node.comment === 'string' ? node.comment.trim() : undefined;
}

type Collection = YAMLMap | YAMLSeq;

/** A value, with the path of missing members that leads to it. */
interface Added {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly options: YamlOptions;
}

function parse(text: string) {
  return parseDocument(text, { prettyErrors: false, logLevel: 'silent', stringKeys: true, uniqueKeys: false });
}

function notEditable(): FileRefusal {
  return new FileRefusal('it is written in a way that Trunkline cannot edit without changing more than its entry');
}

function itemNamed({ items }: Collection, name: string | undefined): unknown {
  return (items as unknown[]).find((item) => {
    if (isPair(item)) return isScalar(item.key) && item.key.value === name;
    return isMap(item) && item.get('name') === name;
  });
}

function isEmpty(value: unknown): boolean {
  if (isCollection(value)) return value.items.length === 0;
  return value === null || (isScalar(value) && value.value === null);
}

function appended(text: string, added: Added): string {
  return insertedLines(text, text.length, blockLines(added, 0, DEFAULT_INDENT));
}

/** Writes the first item of a collection that is missing or empty. */
function filled(text: string, parent: Collection | undefined, holder: Pair, added: Added): string {
  const [start, end] = isNode(holder.value) ? rangeOf(holder.value) : [rangeOf(holder.key)[1], rangeOf(holder.key)[1]];
  if (parent?.flow === true) return `${text.slice(0, start)}{ ${flowText(added)} }${text.slice(end)}`;
  const column = columnOf(text, rangeOf(holder.key)[0]);
  const at = endOfItem(text, holder, column);
  const lines = blockLines(added, column + DEFAULT_INDENT, DEFAULT_INDENT);
  const after = insertedLines(text, at, lines).slice(end);
  return start === end ? text.slice(0, end) + after : text.slice(0, start).replace(/[ \t]+$/, '') + after;
}

function insertedBehind(text: string, collection: Collection, added: Added): string {
  const last: unknown = collection.items.at(-1);
  if (collection.flow === true) {
    const end = endOfContent(last);
    return `${text.slice(0, end)}, ${flowText(added)}${text.slice(end)}`;
  }
  const column = columnOf(text, startOf(text, collection, last));
  const at = endOfItem(text, last, column);
  return insertedLines(text, at, blockLines(added, column, indentIn(text, collection, column)));
}

function replaced(text: string, collection: Collection, item: unknown, added: Added): string {
  const present = isPair(item) ? item.value : item;
  // A comment behind it stays.
  if (isScalar(present) && present.range != null && typeof added.value !== 'object') {
    return text.slice(0, present.range[0]) + JSON.stringify(added.value) + text.slice(present.range[1]);
  }
  if (collection.flow === true) {
    return text.slice(0, startOf(text, collection, item)) + flowText(added) + text.slice(endOfContent(item));
  }
  const [start, end] = linesOf(text, collection, item);
  const column = columnOf(text, startOf(text, collection, item));
  const lines = blockLines(added, column, indentIn(text, collection, column)).join(lineBreak(text));
  const isOpen = end === text.length && !text.endsWith('\n');
  return text.slice(0, start) + lines + (isOpen ? '' : lineBreak(text)) + text.slice(end);
}

function insertedLines(text: string, at: number, lines: readonly string[]): string {
  const eol = lineBreak(text);
  const isOnNewLine = at === 0 || text[at - 1] === '\n';
  const written = isOnNewLine ? lines.join(eol) + eol : eol + lines.join(eol);
  return text.slice(0, at) + written + text.slice(at);
}

const DEFAULT_INDENT = 2;

function indentIn(text: string, { items }: Collection, column: number): number {
  for (const item of items as unknown[]) {
    const value = isPair(item) ? item.value : undefined;
    const [first] = isMap(value) && value.flow !== true ? value.items : [];
    if (first !== undefined) return columnOf(text, rangeOf(first.key)[0]) - column;
  }
  return DEFAULT_INDENT;
}

/** The range of an item's lines in a block: from the start of its first line to the end of its last line. */
function linesOf(text: string, collection: Collection, item: unknown): [start: number, end: number] {
  const start = startOf(text, collection, item);
  return [startOfLine(text, start), endOfItem(text, item, columnOf(text, start))];
}

/** The start of an item: its key, or the dash of an item of a block. */
function startOf(text: string, { flow }: Collection, item: unknown): number {
  if (isPair(item)) return rangeOf(item.key)[0];
  const [start] = rangeOf(item);
  if (flow === true) return start;
  const dash = /-[ \t]+$/.exec(text.slice(startOfLine(text, start), start));
  if (dash === null) throw notEditable();
  return start - dash[0].length;
}

/** The column of a position before which its line is blank. */
function columnOf(text: string, start: number): number {
  const indent = text.slice(startOfLine(text, start), start);
  if (!/^\uFEFF? *$/.test(indent)) throw notEditable();
  return indent.replace('\uFEFF', '').length;
}

/** The position behind the lines of an item of a block. Comments that are indented deeper belong to the item. */
function endOfItem(text: string, item: unknown, column: number): number {
  const content = endOfContent(item);
  // A block of several lines ends behind its last line break.
  let end = text[content - 1] === '\n' ? content : endOfLine(text, content);
  for (;;) {
    COMMENT_LINE.lastIndex = end;
    const [line, indent = ''] = COMMENT_LINE.exec(text) ?? [];
    if (line === undefined || indent.length <= column) return end;
    end += line.length;
  }
}

const COMMENT_LINE = /( *)#[^\n]*(?:\n|$)/y;

/** The end of an item's value, or of its key if it has no value. */
function endOfContent(item: unknown): number {
  if (!isPair(item)) return endOfNode(item);
  const { key, value } = item;
  if (isCollection(value)) return endOfNode(value);
  if (!isAlias(value) && !isScalar(value)) return rangeOf(key)[1];
  const [start, end] = rangeOf(value);
  return start === end ? rangeOf(key)[1] : end;
}

function endOfNode(node: unknown): number {
  return isCollection(node) && node.flow !== true ? endOfContent(node.items.at(-1)) : rangeOf(node)[1];
}

/** Removes an item of a flow collection, with one comma. Comments around the item stay. */
function removedFromFlow(text: string, collection: Collection, item: unknown): string {
  const items = collection.items as unknown[];
  const at = items.indexOf(item);
  const start = startOf(text, collection, item);
  const end = endOfContent(item);
  if (at > 0) {
    const gapStart = endOfContent(items[at - 1]);
    const gap = text.slice(gapStart, start);
    return text.slice(0, gapStart) + (gap.includes('#') ? gap.trimEnd().replace(/^\s*,/, '') : '') + text.slice(end);
  }
  const next = items[at + 1];
  if (next === undefined) return text.slice(0, start) + text.slice(end);
  const nextStart = startOf(text, collection, next);
  const isCommented = text.slice(end, nextStart).includes('#');
  return text.slice(0, start) + text.slice(isCommented ? text.indexOf(',', end) + 1 : nextStart);
}

function blockLines({ path, value, options }: Added, column: number, indent: number): string[] {
  return yamlLines(nested(path, value, options), {
    indent,
    comment: options.comment,
    commentLine: path.length - 1,
  }).map((line) => ' '.repeat(column) + line);
}

/** A value as lines of YAML. A short list is written on one line, which is easier to read. */
export function yamlLines(
  value: unknown,
  { indent, comment, commentLine }: { indent: number; comment?: string | undefined; commentLine?: number },
): string[] {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Seq: (_, node) => {
      if (node.items.every(isScalar) && JSON.stringify(node.toJSON()).length <= LONGEST_LIST) node.flow = true;
    },
  });
  const text = document.toString({ indent, lineWidth: 0, blockQuote: false, flowCollectionPadding: false });
  return text
    .trimEnd()
    .split('\n')
    .map((line, at) => (comment === undefined || at !== commentLine ? line : `${line} # ${printable(comment)}`));
}

const LONGEST_LIST = 80;

function nested(path: readonly string[], value: unknown, { isList }: YamlOptions): unknown {
  const item = isList === true ? [value] : { [path.at(-1) ?? '']: value };
  return path.slice(0, -1).reduceRight<unknown>((inside, name) => ({ [name]: inside }), item);
}

/** The text of a new item in a flow collection, on one line. */
function flowText({ path, value, options }: Added): string {
  const [name = '', ...rest] = path;
  if (rest.length === 0 && options.isList === true) return oneLine(value);
  return `${JSON.stringify(name)}: ${oneLine(rest.length === 0 ? value : nested(rest, value, options))}`;
}

/** A value as JSON on one line, with spaces. */
function oneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${oneLine(each)}`);
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
}

function rangeOf(node: unknown): readonly [start: number, end: number, nodeEnd: number] {
  const range = (node as Node | null)?.range;
  if (range == null) throw notEditable();
  return range;
}

function lineBreak(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n';
}

function startOfLine(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1;
}

/** The position behind the line break, or the end of the text. */
function endOfLine(text: string, at: number): number {
  const found = text.indexOf('\n', at);
  return found < 0 ? text.length : found + 1;
}
