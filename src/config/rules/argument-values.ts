import { NOT_JSON, QUOTE, skipString } from '../../wire/json/json-string.js';
import {
  elementsOf,
  isNumber,
  isObject,
  isString,
  membersOf,
  OPEN_BRACE,
  OPEN_BRACKET,
  readString,
  readText,
  type Span,
  skipValue,
  skipWhitespace,
  TOO_DEEP,
  toBytes,
} from '../../wire/json/json-text.js';
import { fold } from './spellings.js';

/** Arguments about which no rule can decide, because servers differ in how they read them. The message is a clause about them. */
export class AmbiguousArguments extends Error {}

/** Lists within lists, and JSON within texts, that are followed. */
const MAX_NESTED = 8;
/** Levels of nesting in JSON within a text. */
const MAX_DEPTH = 512;

/**
 * The values at a path of names into the arguments of a call, as texts: numbers, true and false as JSON. `undefined` stands for a
 * missing value and for null. A list on the way stands for each of its elements, and a list or a map at the end for all values in
 * it. JSON in a text is read, too, because some servers take a text with JSON for a value.
 *
 * Throws `AmbiguousArguments` if a name on the way is there twice, or in another spelling.
 */
export function valuesAtPath(
  bytes: Uint8Array,
  args: Span | undefined,
  path: readonly string[],
): readonly (string | undefined)[] {
  const found: (string | undefined)[] = [];
  if (args === undefined || readText(bytes, args) === 'null') return [undefined];
  if (!isObject(bytes, args)) throw new AmbiguousArguments('they are no object');
  follow(bytes, args, path, MAX_NESTED, found);
  return found;
}

function follow(bytes: Uint8Array, at: Span, path: readonly string[], depth: number, found: (string | undefined)[]) {
  if (depth < 0) throw new AmbiguousArguments('they nest lists too deep');
  const [name, ...rest] = path;
  if (name === undefined) {
    addScalars(bytes, at, depth, found);
  } else if (bytes[at.start] === OPEN_BRACKET) {
    const elements = elementsOf(bytes, at);
    if (elements.length === 0) found.push(undefined);
    for (const element of elements) follow(bytes, element, path, depth - 1, found);
  } else if (isObject(bytes, at)) {
    const value = memberAt(bytes, at, name);
    if (value === undefined) found.push(undefined);
    else follow(bytes, value, rest, depth, found);
  } else {
    const inner = jsonIn(bytes, at);
    // Takes a value in place of a map as the value that the rule looks for.
    if (inner === undefined) addScalars(bytes, at, depth, found);
    else follow(inner, wholeOf(inner), path, depth - 1, found);
  }
}

/** The only member of this name. */
function memberAt(bytes: Uint8Array, object: Span, name: string): Span | undefined {
  const folded = fold(name);
  const all = membersOf(bytes, object).filter(([key]) => key === name || fold(key) === folded);
  const [first, second] = all;
  if (second !== undefined) {
    const keys = [...new Set(all.map(([key]) => JSON.stringify(key)))].join(' and ');
    throw new AmbiguousArguments(`servers differ in which of several values of ${keys} they take`);
  }
  if (first !== undefined && first[0] !== name)
    throw new AmbiguousArguments(`some servers take the key ${JSON.stringify(first[0])} for ${JSON.stringify(name)}`);
  return first?.[1];
}

/** Adds the texts, numbers and literals of a value, at whatever level, but no keys. */
function addScalars(bytes: Uint8Array, { start, end }: Span, depth: number, found: (string | undefined)[]): void {
  const count = found.length;
  for (let at = start; at < end; ) {
    const byte = bytes[at] ?? 0;
    const stop = byte === QUOTE ? skipString(bytes, at) : skipLiteral(bytes, at, end);
    const isKey = byte === QUOTE && stop < end && bytes[skipWhitespace(bytes, stop)] === COLON;
    if (stop > at && !isKey) addScalar(bytes, { start: at, end: stop }, depth, found);
    at = Math.max(stop, at + 1);
  }
  if (found.length === count) found.push(undefined);
}

function addScalar(bytes: Uint8Array, span: Span, depth: number, found: (string | undefined)[]): void {
  const text = isString(bytes, span) ? readString(bytes, span) : readText(bytes, span);
  const isNull = text === 'null' && !isString(bytes, span);
  found.push(isNull ? undefined : text);
  if (isNumber(bytes, span)) found.push(JSON.stringify(Number(text)));
  const inner = jsonIn(bytes, span);
  if (inner === undefined) return;
  if (depth === 0) throw new AmbiguousArguments('they nest JSON in texts too deep');
  addScalars(inner, wholeOf(inner), depth - 1, found);
}

/** The end of a number, `true`, `false` or `null` at `at`; `at` if there is none. */
function skipLiteral(bytes: Uint8Array, at: number, end: number): number {
  let stop = at;
  while (stop < end && !BETWEEN.has(bytes[stop] ?? 0)) stop += 1;
  return stop;
}

const COLON = 0x3a;
/** The bytes between scalars in valid JSON: brackets, braces, commas, colons and white space. */
const BETWEEN = new Set([OPEN_BRACKET, 0x5d, OPEN_BRACE, 0x7d, 0x2c, COLON, 0x20, 0x09, 0x0a, 0x0d]);

/** The list or the map that a text contains as JSON. */
function jsonIn(bytes: Uint8Array, span: Span): Uint8Array | undefined {
  if (!isString(bytes, span)) return undefined;
  const text = readString(bytes, span).trim();
  if (!text.startsWith('{') && !text.startsWith('[')) return undefined;
  const inner = toBytes(text);
  const end = skipValue(inner, 0, MAX_DEPTH);
  if (end === TOO_DEEP) throw new AmbiguousArguments('they nest JSON in texts too deep');
  return end === NOT_JSON || end !== inner.length ? undefined : inner;
}

function wholeOf(bytes: Uint8Array): Span {
  return { start: 0, end: bytes.length };
}
