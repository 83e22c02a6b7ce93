import { parse, stringify } from 'smol-toml';
import type { EditedPlace, Entry } from './found-server.js';

/*
 * Edits of TOML: only the tables of the entry, as text. No library writes TOML and keeps comments.
 */

export function insertToml(content: string, { path }: EditedPlace, name: string, entry: Entry): string {
  const lineEnd = content.includes('\r\n') ? '\r\n' : '\n';
  const table = [...path, name].reduceRight<unknown>((value, each) => Object.fromEntries([[each, value]]), entry);
  const block = stringify(table as Record<string, unknown>)
    .trimEnd()
    .replaceAll('\n', lineEnd);
  const existing = blocksOf(content, [...path, name]);
  const [first] = existing;
  if (first !== undefined) {
    const rest = existing.slice(1).reverse();
    const shorter = rest.reduce((text, { start, end }) => text.slice(0, start) + text.slice(end), content);
    return shorter.slice(0, first.start) + block + shorter.slice(first.end);
  }
  if (content === '') return block + lineEnd;
  // A missing line end at the end of the file stays missing.
  return content.endsWith('\n') ? content + lineEnd + block + lineEnd : content + lineEnd + lineEnd + block;
}

export function removeToml(content: string, { path }: EditedPlace, name: string): string {
  const blocks = blocksOf(content, [...path, name]).reverse();
  return blocks.reduce((text, { start, end }) => {
    const before = text.slice(0, start);
    const after = text.slice(end);
    // With the block goes the blank line before it, which was inserted with it.
    if (after === '') return before.replace(/(?:\r?\n){1,2}$/, '');
    return before.replace(/(?<=\n)\r?\n$/, '') + after.replace(/^\r?\n/, '');
  }, content);
}

interface Block {
  /** Where the header begins. */
  readonly start: number;
  /** The end of its last line with content, without the line end. */
  readonly end: number;
}

/** The table of an entry and the tables below it. Comments before the next header belong to that. */
function blocksOf(content: string, path: readonly string[]): Block[] {
  const blocks: Block[] = [];
  let open: { start: number; end: number } | undefined;
  for (const line of linesOf(content)) {
    const header = line.isHeader ? headerPath(line.text) : undefined;
    if (header === undefined) {
      if (open !== undefined && (line.isInside || !/^\s*(?:#|$)/.test(line.text))) open.end = line.end;
      continue;
    }
    const isOwn = path.every((member, at) => header[at] === member);
    if (isOwn && open === undefined) open = { start: line.start, end: line.end };
    else if (isOwn && open !== undefined) open.end = line.end;
    else if (open !== undefined) {
      blocks.push(open);
      open = undefined;
    }
  }
  if (open !== undefined) blocks.push(open);
  return blocks;
}

interface Line {
  readonly text: string;
  readonly start: number;
  /** Without the line end. */
  readonly end: number;
  readonly isHeader: boolean;
  /** Whether the line begins inside a text or a list of several lines. */
  readonly isInside: boolean;
}

/** The lines of valid TOML. A line that begins with `[` is no header inside a text or a list of several lines. */
function* linesOf(content: string): Generator<Line> {
  let start = 0;
  let state: State = { quote: '', depth: 0 };
  while (start < content.length) {
    const at = content.indexOf('\n', start);
    const next = at < 0 ? content.length : at + 1;
    const text = content.slice(start, next).replace(/\r?\n$/, '');
    const isInside = state.quote !== '' || state.depth > 0;
    const isHeader = !isInside && /^\s*\[/.test(text);
    yield { text, start, end: start + text.length, isHeader, isInside };
    if (!isHeader) state = afterLine(text, state);
    start = next;
  }
}

interface State {
  /** The quotes of a text of several lines that is open. */
  readonly quote: string;
  /** How many lists are open. */
  readonly depth: number;
}

const TOKEN = /"""|'''|"(?:[^"\\]|\\.)*"|'[^']*'|#.*$|[[\]{}]/g;

function afterLine(text: string, state: State): State {
  let { quote, depth } = state;
  let at = 0;
  while (at < text.length) {
    if (quote !== '') {
      const end = endOfText(text, at, quote);
      if (end < 0) return { quote, depth };
      at = end;
      quote = '';
      continue;
    }
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    if (found === null) break;
    const [token] = found;
    at = found.index + token.length;
    if (token === '"""' || token === "'''") quote = token;
    else if (token === '[' || token === '{') depth += 1;
    else if (token === ']' || token === '}') depth -= 1;
  }
  return { quote, depth };
}

/** Where a text of several lines ends in this line; -1 if it goes on. Up to two quotes may stand before the last three. */
function endOfText(text: string, from: number, quote: string): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '\\' && quote === '"""') at += 1;
    else if (text.startsWith(quote, at)) {
      let end = at + quote.length;
      while (end < at + 5 && text[end] === quote[0]) end += 1;
      return end;
    }
  }
  return -1;
}

/** The names in a header. The library reads them, with their quotes and escapes. */
function headerPath(line: string): string[] | undefined {
  try {
    const path: string[] = [];
    let value: unknown = parse(line);
    for (;;) {
      if (Array.isArray(value)) [value] = value;
      const [name] = Object.keys(value ?? {});
      if (name === undefined) return path;
      path.push(name);
      value = (value as Record<string, unknown>)[name];
    }
  } catch {
    return undefined;
  }
}
