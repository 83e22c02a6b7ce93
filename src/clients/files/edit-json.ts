import type { Node } from 'jsonc-parser';
import type { EditedPlace, Entry } from './found-server.js';
import { parseJsonTree } from './parse-file.js';
import { Refusal } from './refusal.js';

/*
 * Edits of JSON with comments. `modify` of jsonc-parser reformats the lines that it touches, and so would change text
 * of the user. The edits here insert one piece of text, and removing an entry removes exactly that piece.
 */

/** Adds the entry as the last one, or replaces the value of the existing one. */
export function insertJson(content: string, { path }: EditedPlace, name: string, entry: Entry): string {
  const style = styleOf(content);
  if (content.trim() === '') return `${JSON.stringify(nested([...path, name], entry), null, 2)}\n`;
  const way = [...path, name];
  let object = parseJsonTree(content);
  for (let depth = 0; depth < way.length; depth += 1) {
    const value = nested(way.slice(depth + 1), entry);
    const found = memberOf(object, way[depth] ?? '');
    const isLast = depth === way.length - 1;
    if (found === undefined) return addMember(content, object, way[depth] ?? '', value, style);
    if (isLast || found.value.type === 'null') {
      return replaced(content, found.value, text(value, indentAt(content, found.property.offset), style, true));
    }
    object = found.value;
  }
  return content;
}

export function removeJson(content: string, { path }: EditedPlace, name: string): string {
  let object = parseJsonTree(content);
  for (const member of path) object = memberOf(object, member)?.value ?? object;
  const property = memberOf(object, name)?.property;
  if (property === undefined) return content;
  const all = object.children ?? [];
  const at = all.indexOf(property);
  const previous = all[at - 1];
  const end = property.offset + property.length;
  if (previous !== undefined) {
    const previousEnd = previous.offset + previous.length;
    // As it was inserted.
    if (/^,\s*$/.test(content.slice(previousEnd, property.offset))) return cut(content, previousEnd, end);
  }
  const commaAfter = commaFrom(content, end);
  // Comments between the entry and its comma stay.
  if (commaAfter !== undefined) return withoutLine(cut(content, commaAfter, commaAfter + 1), property);
  if (previous === undefined) {
    const start = startOfBlank(content, property.offset);
    const blankEnd = endOfBlank(content, end);
    // A comment behind the entry stays on its line.
    if (content[start - 1] === '{') return cut(content, start, content[blankEnd] === '}' ? blankEnd : end);
    return withoutLine(content, property);
  }
  const commaBefore = commaFrom(content, previous.offset + previous.length) ?? property.offset;
  return cut(withoutLine(content, property), commaBefore, commaBefore + 1);
}

/** Removes a text and its line. What shares the line, or a comment that ends with it, stays on a line of its own. */
function withoutLine(content: string, { offset, length }: Node): string {
  const end = offset + length;
  if (/^[ \t]*\r?\n/.test(content.slice(end))) return cut(content, startOfBlank(content, offset), end);
  return cut(content, offset, endOfBlank(content, end));
}

interface Style {
  readonly lineEnd: string;
  readonly indent: string;
}

/** Line ends and indentation of a text, for what is added to it. */
function styleOf(content: string): Style {
  const [, indent = '  '] = /\n([ \t]+)\S/.exec(content) ?? [];
  return { lineEnd: content.includes('\r\n') ? '\r\n' : '\n', indent: indent.startsWith('\t') ? '\t' : indent };
}

function addMember(content: string, object: Node, name: string, value: unknown, style: Style): string {
  if (object.type !== 'object') throw new Refusal('what should hold the servers is something else there');
  const last = object.children?.at(-1);
  const key = JSON.stringify(name);
  if (last !== undefined) {
    const start = startOfBlank(content, last.offset);
    const blank = content.slice(start, last.offset);
    const isOnOwnLine = blank.includes('\n');
    const separator = isOnOwnLine ? style.lineEnd + indentAt(content, last.offset) : blank;
    const added = `,${separator}${key}: ${text(value, indentAt(content, last.offset), style, isOnOwnLine)}`;
    return spliced(content, last.offset + last.length, added);
  }
  const isInLine = !content.includes('\n') && content.trim() !== '{}';
  if (isInLine) return spliced(content, object.offset + 1, `${key}: ${text(value, '', style, false)}`);
  const outer = indentAt(content, object.offset);
  const inner = outer + style.indent;
  const added = `${style.lineEnd}${inner}${key}: ${text(value, inner, style, true)}`;
  const rest = content.slice(object.offset + 1);
  // Text of an empty object begins on its own line after the entry.
  return spliced(content, object.offset + 1, /^[ \t]*\r?\n/.test(rest) ? added : added + style.lineEnd + outer);
}

function text(value: unknown, indent: string, { lineEnd, indent: unit }: Style, isOnLines: boolean): string {
  if (!isOnLines) return JSON.stringify(value);
  return JSON.stringify(value, null, unit).replaceAll('\n', lineEnd + indent);
}

function nested(path: readonly string[], entry: unknown): unknown {
  return path.reduceRight<unknown>((value, name) => Object.fromEntries([[name, value]]), entry);
}

function memberOf(object: Node, name: string): { property: Node; value: Node } | undefined {
  if (object.type !== 'object') throw new Refusal('what should hold the servers is something else there');
  for (const property of object.children ?? []) {
    const [key, value] = property.children ?? [];
    if (key?.value === name && value !== undefined) return { property, value };
  }
  return undefined;
}

function replaced(content: string, { offset, length }: Node, by: string): string {
  return content.slice(0, offset) + by + content.slice(offset + length);
}

function spliced(content: string, at: number, added: string): string {
  return content.slice(0, at) + added + content.slice(at);
}

function cut(content: string, start: number, end: number): string {
  return content.slice(0, start) + content.slice(end);
}

/** The blanks at the beginning of the line of a position. */
function indentAt(content: string, offset: number): string {
  const start = content.lastIndexOf('\n', offset - 1) + 1;
  return /^[ \t]*/.exec(content.slice(start, offset))?.[0] ?? '';
}

function startOfBlank(content: string, from: number): number {
  let start = from;
  while (start > 0 && /\s/.test(content[start - 1] ?? '')) start -= 1;
  return start;
}

function endOfBlank(content: string, from: number): number {
  let end = from;
  while (/\s/.test(content[end] ?? '')) end += 1;
  return end;
}

const BLANK_OR_COMMENT = /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\//y;

/** Where the next comma is, if nothing but blanks and comments comes before it. */
function commaFrom(content: string, from: number): number | undefined {
  let at = from;
  for (;;) {
    BLANK_OR_COMMENT.lastIndex = at;
    if (!BLANK_OR_COMMENT.test(content)) return content[at] === ',' ? at : undefined;
    at = BLANK_OR_COMMENT.lastIndex;
  }
}
