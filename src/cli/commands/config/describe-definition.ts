import { diffArrays } from 'diff';
import { isString, readString, readText, type Span, toBytes, visitMembers } from '../../../json/json-text.js';
import { printable } from '../../../json/printable.js';

/** The order in which a person wants to read the members. */
const ORDER = ['title', 'description', 'inputSchema', 'outputSchema', 'annotations'];

/**
 * Shows everything that a model sees of a tool, in lines for a terminal, with invisible characters escaped. With an
 * `earlier` definition, removed lines start with `-` and added lines with `+`.
 */
export function describeDefinition(definition: string, earlier?: string): string[] {
  const now = linesOf(definition);
  if (earlier === undefined) return now.map((line) => printable(`    ${line}`));
  return difference(linesOf(earlier), now).map(([sign, line]) => printable(`  ${sign} ${line}`));
}

/** The lines of all members except the name, which the caller prints. */
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

/** Indents JSON that has no spaces, one member or element per line. Numbers and strings do not change. */
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

/** The time to find the fewest changed lines grows with their square. With more of them, the search is given up. */
const MAX_CHANGED_LINES = 1_000;

/** The fewest lines that were removed and added. With too many, everything after the equal beginning counts as changed. */
function difference(before: readonly string[], after: readonly string[]): Line[] {
  const changes = diffArrays([...before], [...after], { maxEditLength: MAX_CHANGED_LINES });
  if (changes !== undefined) {
    return changes.flatMap(({ value, added, removed }) =>
      value.map((line): Line => [added ? '+' : removed ? '-' : ' ', line]),
    );
  }
  let start = 0;
  while (start < before.length && before[start] === after[start]) start += 1;
  return [
    ...before.slice(0, start).map((line): Line => [' ', line]),
    ...before.slice(start).map((line): Line => ['-', line]),
    ...after.slice(start).map((line): Line => ['+', line]),
  ];
}
