import { NOT_JSON, QUOTE, skipString } from '../../wire/json/json-string.js';
import {
  elementsOf,
  isNumber,
  isObject,
  isString,
  OPEN_BRACE,
  OPEN_BRACKET,
  readString,
  readText,
  type Span,
  skipValue,
  skipWhitespace,
  TOO_DEEP,
  toBytes,
  visitMembers,
} from '../../wire/json/json-text.js';
import { fold } from './spellings.js';

/** Arguments about which no rule can decide, because servers differ in how they read them. The message is a clause about them. */
export class AmbiguousArguments extends Error {}

/** Lists within lists, and JSON within texts, that are followed. */
const MAX_NESTED = 8;
/** Levels of nesting in JSON within a text. */
const MAX_DEPTH = 512;
/** Limits of the keys and values that one path reads, in bytes and in number, because all clients wait while a rule decides. */
const MAX_BYTES = 65_536;
const MAX_BYTES_IN_ALL = 1_048_576;
const MAX_COUNT = 10_000;

/**
 * The values at a path of names into the arguments of a call, as texts: numbers, true and false as JSON. `undefined` stands for a
 * missing value and for null. A list on the way stands for each of its elements, and a list or a map at the end for all values in
 * it. JSON in a text is read, too, because some servers take a text with JSON for a value.
 *
 * Throws `AmbiguousArguments` if a name on the way is there twice, or in another spelling, or if the path has to read too much.
 */
export function valuesAtPath(
  bytes: Uint8Array,
  args: Span | undefined,
  path: readonly string[],
): readonly (string | undefined)[] {
  const reading = new Reading();
  if (args === undefined || readText(bytes, args) === 'null') return [undefined];
  if (!isObject(bytes, args)) throw new AmbiguousArguments('they are no object');
  follow(bytes, args, path, MAX_NESTED, reading);
  return reading.found;
}

/** The values that a path has led to, within the limits. Other values, such as the content of a file beside its path, do not count. */
class Reading {
  readonly found: (string | undefined)[] = [];
  #bytes = 0;
  #count = 0;

  /** Called for each key and value before its text is read. */
  take({ start, end }: Span): void {
    this.#bytes += end - start;
    if (end - start > MAX_BYTES) throw new AmbiguousArguments('a key or a value that it reads is larger than 64 KiB');
    if (this.#bytes > MAX_BYTES_IN_ALL)
      throw new AmbiguousArguments('the keys and values that it reads are larger than 1 MiB in all');
    this.takeOne();
  }

  takeOne(): void {
    this.#count += 1;
    if (this.#count > MAX_COUNT) throw new AmbiguousArguments('it would have to read more than 10,000 keys and values');
  }
}

function follow(bytes: Uint8Array, at: Span, path: readonly string[], depth: number, reading: Reading): void {
  if (depth < 0) throw new AmbiguousArguments('they nest lists too deep');
  const [name, ...rest] = path;
  if (name === undefined) {
    addScalars(bytes, at, depth, reading);
  } else if (bytes[at.start] === OPEN_BRACKET) {
    const elements = elementsOf(bytes, at, MAX_COUNT + 1);
    if (elements.length === 0) reading.found.push(undefined);
    for (const element of elements) {
      reading.takeOne();
      follow(bytes, element, path, depth - 1, reading);
    }
  } else if (isObject(bytes, at)) {
    const value = memberAt(bytes, at, name, reading);
    if (value === undefined) reading.found.push(undefined);
    else follow(bytes, value, rest, depth, reading);
  } else {
    reading.take(at);
    const inner = jsonIn(bytes, at);
    // Takes a value in place of a map as the value that the rule looks for.
    if (inner === undefined) addScalars(bytes, at, depth, reading);
    else follow(inner, wholeOf(inner), path, depth - 1, reading);
  }
}

/** The only member of this name. */
function memberAt(bytes: Uint8Array, object: Span, name: string, reading: Reading): Span | undefined {
  const folded = fold(name);
  const all: [key: string, value: Span][] = [];
  visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (span, value) => {
    reading.take(span);
    const key = readString(bytes, span);
    if (key === name || fold(key) === folded) all.push([key, value]);
  });
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
function addScalars(bytes: Uint8Array, { start, end }: Span, depth: number, reading: Reading): void {
  const count = reading.found.length;
  for (let at = start; at < end; ) {
    const byte = bytes[at] ?? 0;
    const stop = byte === QUOTE ? skipString(bytes, at) : skipLiteral(bytes, at, end);
    const isKey = byte === QUOTE && stop < end && bytes[skipWhitespace(bytes, stop)] === COLON;
    if (stop > at && !isKey) addScalar(bytes, { start: at, end: stop }, depth, reading);
    at = Math.max(stop, at + 1);
  }
  if (reading.found.length === count) reading.found.push(undefined);
}

function addScalar(bytes: Uint8Array, span: Span, depth: number, reading: Reading): void {
  reading.take(span);
  const text = isString(bytes, span) ? readString(bytes, span) : readText(bytes, span);
  const isNull = text === 'null' && !isString(bytes, span);
  reading.found.push(isNull ? undefined : text);
  if (isNumber(bytes, span)) reading.found.push(JSON.stringify(Number(text)));
  const inner = jsonIn(bytes, span);
  if (inner === undefined) return;
  if (depth === 0) throw new AmbiguousArguments('they nest JSON in texts too deep');
  addScalars(inner, wholeOf(inner), depth - 1, reading);
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
