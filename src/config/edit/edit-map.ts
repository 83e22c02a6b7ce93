import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap } from 'yaml';
import { blockLines, flowText, type PairText } from './pair-text.js';

/** A piece of the text and what replaces it. Everything outside of it stays as it is, byte for byte. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Thrown for a notation that cannot be edited without touching what surrounds it. */
export const NOT_EDITABLE = Symbol('not editable');

export function applyEdit(text: string, { start, end, text: replacement }: TextEdit): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

/** Adds a pair behind the last one of a map. Removing it again with `removePair` restores the text. */
export function addPair(text: string, map: YAMLMap, pair: PairText): TextEdit {
  return map.flow === true ? addToFlow(text, map, pair) : addToBlock(text, map, pair);
}

/** Removes a pair of a map that has others, with the comments inside of its value. */
export function removePair(text: string, map: YAMLMap, pair: Pair): TextEdit {
  return map.flow === true ? removeFromFlow(text, map, pair) : removeFromBlock(text, pair);
}

/** Writes the first pair of a map below a key without a value. */
export function addFirstPair(text: string, parent: Pair, pair: PairText): TextEdit {
  const column = columnOf(text, parent);
  return insertLines(text, endOfPair(text, parent, column), pair, column + DEFAULT_INDENT, DEFAULT_INDENT);
}

/** Writes lines behind everything else. */
export function appendPair(text: string, pair: PairText): TextEdit {
  return insertLines(text, text.length, pair, 0, DEFAULT_INDENT);
}

/** Whether a comment stands on the line behind the value of a pair. */
export function hasComment(text: string, pair: Pair): boolean {
  const end = endOfContent(pair);
  return text.slice(end, endOfLine(text, end)).includes('#');
}

const DEFAULT_INDENT = 2;

function addToBlock(text: string, map: YAMLMap, pair: PairText): TextEdit {
  const [first] = map.items;
  const last = map.items.at(-1);
  if (first === undefined || last === undefined) throw NOT_EDITABLE;
  const column = columnOf(text, first);
  return insertLines(text, endOfPair(text, last, column), pair, column, indentOf(text, map, column));
}

function insertLines(text: string, at: number, pair: PairText, column: number, indent: number): TextEdit {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const lines = blockLines(pair, indent).map((line) => ' '.repeat(column) + line);
  const isOnNewLine = at === 0 || text[at - 1] === '\n';
  const written = isOnNewLine ? lines.join(eol) + eol : eol + lines.join(eol);
  return { start: at, end: at, text: written };
}

function removeFromBlock(text: string, pair: Pair): TextEdit {
  const column = columnOf(text, pair);
  const start = startOfLine(text, startOf(pair));
  const end = endOfPair(text, pair, column);
  // The last line of the text has no line break, so the one before it goes.
  const isOpen = end === text.length && text[end - 1] !== '\n' && text[start - 1] === '\n';
  const lineBreak = text[start - 2] === '\r' ? 2 : 1;
  return { start: isOpen ? start - lineBreak : start, end, text: '' };
}

/** How far the maps in this map are indented. */
function indentOf(text: string, map: YAMLMap, column: number): number {
  for (const { value } of map.items) {
    const [first] = isMap(value) && value.flow !== true ? value.items : [];
    if (first !== undefined) return columnOf(text, first) - column;
  }
  return DEFAULT_INDENT;
}

/** The position of the first line that does not belong to the pair. Comments belong to it if they are indented deeper. */
function endOfPair(text: string, pair: Pair, column: number): number {
  const content = endOfContent(pair);
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

/** The position behind the last character of the value, or of the key if there is no value. */
function endOfContent({ key, value }: Pair): number {
  if (isAlias(value) || isScalar(value)) {
    const [start, end] = rangeOf(value);
    return start === end ? rangeOf(key)[1] : end;
  }
  if (!isMap(value) && !isSeq(value)) return rangeOf(key)[1];
  if (value.flow === true) return rangeOf(value)[1];
  const last: unknown = value.items.at(-1);
  if (isMap(value)) return endOfContent(last as Pair);
  return endOfContent({ key: value, value: last } as Pair);
}

function addToFlow(text: string, map: YAMLMap, pair: PairText): TextEdit {
  const last = map.items.at(-1);
  if (last === undefined) {
    const inside = rangeOf(map)[0] + 1;
    return { start: inside, end: inside, text: ` ${flowText(pair, undefined)} ` };
  }
  const at = endOfContent(last);
  const start = startOf(last);
  const indent = text.slice(startOfLine(text, start), start);
  if (indent.trim() !== '') return { start: at, end: at, text: `, ${flowText(pair, undefined)}` };
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const isOneLine = isMap(last.value) && !text.slice(start, at).includes('\n');
  const written = isOneLine ? flowText(pair, undefined) : flowText(pair, unitOf(text, map, indent));
  return { start: at, end: at, text: `,${eol}${indent}${written.replaceAll('\n', `${eol}${indent}`)}` };
}

/** One step of indentation, as it is between this map and the brace that closes it. */
function unitOf(text: string, map: YAMLMap, indent: string): string {
  const closing = rangeOf(map)[1] - 1;
  const outer = text.slice(startOfLine(text, closing), closing);
  return outer.trim() === '' && indent.startsWith(outer) && indent.length > outer.length
    ? indent.slice(outer.length)
    : '  ';
}

function removeFromFlow(text: string, map: YAMLMap, pair: Pair): TextEdit {
  const at = map.items.indexOf(pair);
  const before = map.items[at - 1];
  const after = map.items[at + 1];
  const end = endOfContent(pair);
  if (before !== undefined) {
    const start = endOfContent(before);
    const gap = text.slice(start, startOf(pair));
    return { start, end, text: gap.includes('#') ? gap.trimEnd().replace(/^\s*,/, '') : '' };
  }
  if (after === undefined) return { start: startOf(pair), end, text: '' };
  const isCommented = text.slice(end, startOf(after)).includes('#');
  return { start: startOf(pair), end: isCommented ? text.indexOf(',', end) + 1 : startOf(after), text: '' };
}

/** The column of a key that is the first text of its line. */
function columnOf(text: string, pair: Pair): number {
  const start = startOf(pair);
  const indent = text.slice(startOfLine(text, start), start);
  if (!/^\uFEFF? *$/.test(indent)) throw NOT_EDITABLE;
  return indent.replace('\uFEFF', '').length;
}

function startOf({ key }: Pair): number {
  return rangeOf(key)[0];
}

function rangeOf(node: unknown): readonly [start: number, end: number, nodeEnd: number] {
  const range = (node as Node | null)?.range;
  if (range == null) throw NOT_EDITABLE;
  return range;
}

function startOfLine(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1;
}

/** The position behind the line break, or the end of the text. */
function endOfLine(text: string, at: number): number {
  const lineBreak = text.indexOf('\n', at);
  return lineBreak < 0 ? text.length : lineBreak + 1;
}
