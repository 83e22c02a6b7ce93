import { diffArrays } from 'diff';
import { applyEdits, format } from 'jsonc-parser';
import type { DiffLine } from '../web/server/contract.js';
import { isString, readString, readText, toBytes, visitMembers } from '../wire/json/json-text.js';
import { printable } from '../wire/json/printable.js';

/** The order in which users want to read the members. */
const ORDER = ['title', 'description', 'inputSchema', 'outputSchema', 'annotations'];

/**
 * Shows everything that a model sees of a tool, in lines for a terminal, with invisible characters escaped. With an
 * `earlier` definition, removed lines start with `-` and added lines with `+`.
 */
export function describeDefinition(definition: string, earlier?: string): string[] {
  return definitionLines(definition, earlier).map(({ sign, text }) => printable(`  ${sign} ${text}`));
}

/** The same lines with their signs, and without escapes. Without an `earlier` definition, no line has a sign. */
export function definitionLines(definition: string, earlier?: string): DiffLine[] {
  const now = linesOf(definition);
  return earlier === undefined ? now.map((text) => ({ sign: ' ', text })) : difference(linesOf(earlier), now);
}

/** The lines of all members except the name, which the caller prints. */
function linesOf(definition: string): string[] {
  const bytes = toBytes(definition);
  const members: { readonly name: string; readonly lines: readonly string[] }[] = [];
  visitMembers(bytes, 0, Number.POSITIVE_INFINITY, (key, value) => {
    const name = readString(bytes, key);
    const text = isString(bytes, value) ? readString(bytes, value) : indented(readText(bytes, value));
    if (name !== 'name') members.push({ name, lines: text.split('\n') });
  });
  const sorted = members.sort((one, other) => ORDER.indexOf(one.name) - ORDER.indexOf(other.name));
  return sorted.flatMap(({ name, lines }) => [`${name}:`, ...lines.map((line) => `  ${line}`)]);
}

/** Indents JSON, one member or element per line. Numbers and strings do not change. */
function indented(json: string): string {
  return applyEdits(json, format(json, undefined, { insertSpaces: true, tabSize: 2, eol: '\n' }));
}

/** Most changed lines for which the shortest difference is searched, because the time grows with their square. */
const MAX_CHANGED_LINES = 1_000;

/** Returns the shortest difference in lines. If too many lines differ, all count as changed. */
export function difference(before: readonly string[], after: readonly string[]): DiffLine[] {
  const changes = diffArrays([...before], [...after], { maxEditLength: MAX_CHANGED_LINES });
  const signed = (sign: DiffLine['sign'], lines: readonly string[]) => lines.map((text) => ({ sign, text }));
  if (changes === undefined) return [...signed('-', before), ...signed('+', after)];
  return changes.flatMap(({ value, added, removed }) => signed(added ? '+' : removed ? '-' : ' ', value));
}
