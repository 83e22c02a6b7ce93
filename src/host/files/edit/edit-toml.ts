import { parse, stringify } from 'smol-toml';

/*
 * Edits of TOML as text, because no library keeps every comment when it writes TOML. An entry consists of its table and of
 * the tables below it.
 */

/** Adds a table behind all others, or replaces the table at this path in its place. */
export function setInToml(content: string, path: readonly string[], value: unknown): string {
  const lineEnd = content.includes('\r\n') ? '\r\n' : '\n';
  const table = path.reduceRight<unknown>((inside, name) => Object.fromEntries([[name, inside]]), value);
  const block = stringify(table as Record<string, unknown>)
    .trimEnd()
    .replaceAll('\n', lineEnd);
  const [first, ...others] = tablesAt(content, path);
  if (first !== undefined) {
    const rest = others.reduceRight((text, { start, end }) => text.slice(0, start) + text.slice(end), content);
    return rest.slice(0, first.start) + block + rest.slice(first.end);
  }
  if (content === '') return block + lineEnd;
  // A missing line end at the end of the file stays missing.
  return content.endsWith('\n') ? content + lineEnd + block + lineEnd : content + lineEnd + lineEnd + block;
}

/** Removes a table, and the blank line that `setInToml` inserts before it. */
export function removeFromToml(content: string, path: readonly string[]): string {
  return tablesAt(content, path).reduceRight((text, { start, end }) => {
    const before = text.slice(0, start);
    const after = text.slice(end);
    if (after === '') return before.replace(/(?:\r?\n){1,2}$/, '');
    return before.replace(/(?<=\n)\r?\n$/, '') + after.replace(/^\r?\n/, '');
  }, content);
}

interface Piece {
  readonly start: number;
  /** The end of the last line with content, without the line end. */
  readonly end: number;
}

/** The table at this path and the tables below it; adjacent tables are one piece. Comments behind a table are left out. */
function tablesAt(content: string, path: readonly string[]): Piece[] {
  const pieces: Piece[] = [];
  let isOpen = false;
  for (const { start, text } of tablesIn(content)) {
    const header = namesIn(text);
    const isOwn = header.length > 0 && path.every((name, at) => header[at] === name);
    const end = start + text.replace(/(?:\r?\n[ \t]*(?:#[^\n]*)?)+$/, '').length;
    if (isOwn) pieces.push({ start: isOpen ? (pieces.pop()?.start ?? start) : start, end });
    isOpen = isOwn;
  }
  return pieces;
}

/** The tables of valid TOML, from header to header. In a multiline value, a line with a bracket is no header. */
function* tablesIn(content: string): Generator<{ start: number; text: string }> {
  let start = 0;
  for (const { index } of content.matchAll(/^[ \t]*\[/gm)) {
    const text = content.slice(start, index);
    // Within a multiline value, the text before the line does not parse.
    if (!isToml(text)) continue;
    yield { start, text };
    start = index;
  }
  yield { start, text: content.slice(start) };
}

function isToml(text: string): boolean {
  try {
    parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The names in the header of a table. Empty for the text before the first header. */
function namesIn(table: string): string[] {
  const names: string[] = [];
  const header = /^[ \t]*\[.*/.exec(table)?.[0] ?? '';
  let value: unknown = parse(header);
  for (;;) {
    if (Array.isArray(value)) [value] = value;
    const [name] = Object.keys(value ?? {});
    if (name === undefined) return names;
    names.push(name);
    value = (value as Record<string, unknown>)[name];
  }
}
