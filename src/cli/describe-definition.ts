import { isString, readString, readText, type Span, toBytes, visitMembers } from '../json/json-text.js';
import { printable } from '../json/printable.js';

/** In the order in which a person wants to read them. */
const ORDER = ['title', 'description', 'inputSchema', 'outputSchema', 'annotations'];

/**
 * All that a model would see of a tool, in lines for a terminal, with what hides in it spelt out. Where there was an
 * `earlier` definition, lines that are gone begin with `-` and those that are new with `+`.
 */
export function describeDefinition(definition: string, earlier?: string): string[] {
  const now = linesOf(definition);
  if (earlier === undefined) return now.map((line) => printable(`    ${line}`));
  return difference(linesOf(earlier), now).map(([sign, line]) => printable(`  ${sign} ${line}`));
}

/** Without the name, which stands above it. */
function linesOf(definition: string): string[] {
  const bytes = toBytes(definition);
  const members: { readonly name: string; readonly value: Span }[] = [];
  visitMembers(bytes, 0, Number.POSITIVE_INFINITY, (key, value) => {
    const name = readString(bytes, key);
    if (name !== 'name') members.push({ name, value });
  });
  const sorted = members.sort((one, other) => ORDER.indexOf(one.name) - ORDER.indexOf(other.name));
  return sorted.flatMap(({ name, value }) => {
    const text = isString(bytes, value) ? readString(bytes, value).split('\n') : laidOut(readText(bytes, value));
    return [`${name}:`, ...text.map((line) => `  ${line}`)];
  });
}

/** JSON without spaces, a member or an element on each line; as it is spelt otherwise. */
function laidOut(json: string): string[] {
  let text = '';
  let depth = 0;
  const breakLine = () => `\n${'  '.repeat(depth)}`;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}[\],:]|[^"{}[\],:]+/gs)) {
    if (token === '{' || token === '[') {
      depth += 1;
      text += token + breakLine();
    } else if (token === '}' || token === ']') {
      depth -= 1;
      text += breakLine() + token;
    } else if (token === ',') text += token + breakLine();
    else text += token === ':' ? ': ' : token;
  }
  return text.split('\n');
}

type Line = readonly [sign: ' ' | '-' | '+', line: string];

/** Fewest lines that are gone and new; where that would take too long, all between the equal ends. */
function difference(before: readonly string[], after: readonly string[]): Line[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let tail = 0;
  const rest = Math.min(before.length, after.length) - start;
  while (tail < rest && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const gone = before.slice(start, before.length - tail);
  const added = after.slice(start, after.length - tail);
  const same = (line: string): Line => [' ', line];
  return [...after.slice(0, start).map(same), ...between(gone, added), ...after.slice(after.length - tail).map(same)];
}

const MAX_PAIRS = 4_000_000;

/** By the longest common subsequence: `lengths[i][j]` is that of what follows line i of one and line j of the other. */
function between(gone: readonly string[], added: readonly string[]): Line[] {
  const removed = (line: string): Line => ['-', line];
  const inserted = (line: string): Line => ['+', line];
  if (gone.length * added.length > MAX_PAIRS) return [...gone.map(removed), ...added.map(inserted)];
  const lengths = Array.from({ length: gone.length + 1 }, () => new Uint32Array(added.length + 1));
  const lengthAt = (i: number, j: number) => lengths[i]?.[j] ?? 0;
  for (let i = gone.length - 1; i >= 0; i -= 1) {
    const row = lengths[i] ?? [];
    for (let j = added.length - 1; j >= 0; j -= 1) {
      row[j] = gone[i] === added[j] ? lengthAt(i + 1, j + 1) + 1 : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1));
    }
  }
  const lines: Line[] = [];
  let j = 0;
  for (const [i, line] of gone.entries()) {
    while (j < added.length && added[j] !== line && lengthAt(i, j + 1) > lengthAt(i + 1, j)) {
      lines.push(inserted(added[j] ?? ''));
      j += 1;
    }
    if (j < added.length && added[j] === line) {
      lines.push([' ', line]);
      j += 1;
    } else lines.push(removed(line));
  }
  return [...lines, ...added.slice(j).map(inserted)];
}
