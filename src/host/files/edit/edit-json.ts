import { applyEdits, findNodeAtLocation, format, modify, type Node } from 'jsonc-parser';
import { parseJsonTree } from './parse-text.js';

/*
 * Edits of JSON with comments. Inserts with `modify` of jsonc-parser, and formats the inserted text afterwards, because `modify`
 * would format whole lines. Removes without `modify`, because it would also remove comments of other entries.
 */

/** Adds a member behind the others, or replaces the value of the existing member. */
export function setInJson(content: string, path: readonly string[], value: unknown): string {
  if (content.trim() === '') return `${JSON.stringify(nested(path, value), null, 2)}\n`;
  const tree = parseJsonTree(content);
  // The library adds no member to `null`.
  const at = path.findIndex((_, depth) => findNodeAtLocation(tree, path.slice(0, depth + 1))?.type === 'null') + 1;
  const way = at > 0 ? path.slice(0, at) : path;
  const [edit] = modify(content, [...way], nested(path.slice(way.length), value), {});
  if (edit === undefined) return content;
  const changed = applyEdits(content, [edit]);
  // A file with one line keeps one line.
  if (!content.includes('\n') && tree.children?.length) return changed;
  // Formats the braces of an object that was empty, too, so that they get lines of their own.
  const isFirst = edit.length === 0 && !edit.content.startsWith(',');
  const { offset, content: added } = edit;
  const range = isFirst ? { offset: offset - 1, length: added.length + 2 } : { offset, length: added.length };
  return applyEdits(changed, format(changed, range, styleOf(content)));
}

/** Removes a member with its comma. Comments around it stay. */
export function removeFromJson(content: string, path: readonly string[]): string {
  const property = findNodeAtLocation(parseJsonTree(content), [...path])?.parent;
  const members = property?.parent?.children ?? [];
  if (property === undefined) return content;
  const { offset: start } = property;
  const end = endOf(property);
  const previous = members[members.indexOf(property) - 1];
  const previousEnd = previous && endOf(previous);
  // Restores the text before the insertion if the member is written as `setInJson` inserts it.
  if (previousEnd !== undefined && /^\s*,\s*$/.test(content.slice(previousEnd, start)))
    return cut(content, previousEnd, end);
  const after = commaFrom(content, end);
  const before = previousEnd === undefined ? undefined : commaFrom(content, previousEnd);
  if (after !== undefined) return withoutLine(cut(content, after, after + 1), start, end);
  if (before !== undefined) return cut(withoutLine(content, start, end), before, before + 1);
  const rest = withoutLine(content, start, end);
  const { offset = 0 } = property.parent ?? {};
  return rest.slice(0, offset + 1) + rest.slice(offset + 1).replace(/^\s+\}/, '}');
}

function nested(path: readonly string[], value: unknown): unknown {
  return path.reduceRight<unknown>((inside, name) => Object.fromEntries([[name, inside]]), value);
}

/** Line ends and indentation of a text, for what is added to it. */
function styleOf(content: string) {
  const [, indent = '  '] = /\n([ \t]+)\S/.exec(content) ?? [];
  const insertSpaces = !indent.startsWith('\t');
  return { insertSpaces, tabSize: insertSpaces ? indent.length : 4, eol: content.includes('\r\n') ? '\r\n' : '\n' };
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

/** Removes a text, and the line break before it if the text is alone on its line. */
function withoutLine(content: string, start: number, end: number): string {
  const isAlone = /^[ \t]*\r?\n/.test(content.slice(end));
  return cut(content, isAlone ? content.slice(0, start).trimEnd().length : start, end);
}

function cut(content: string, start: number, end: number): string {
  return content.slice(0, start) + content.slice(end);
}

/** The position of the next comma, if only blanks and comments stand before it. */
function commaFrom(content: string, from: number): number | undefined {
  const comma = /(?:\s|\/\/[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)*,/y;
  comma.lastIndex = from;
  return comma.test(content) ? comma.lastIndex - 1 : undefined;
}
