import { NOT_JSON, QUOTE, skipString } from './json-string.js';

/** A range of bytes, `end` exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Result of the functions below if the text nests deeper than the limit, which is reached before the call stack overflows. */
export const TOO_DEEP = -2;

export const COMMA = 0x2c;
const COLON = 0x3a;
const ZERO = 0x30;
const NINE = 0x39;
export const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** Returns the first position at or after `at` that is not JSON white space. */
export function skipWhitespace(bytes: Uint8Array, at: number): number {
  let position = at;
  for (;;) {
    const byte = bytes[position];
    // Most messages have no white space between tokens, so one comparison decides.
    if (byte === undefined || byte > 0x20) return position;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return position;
    position += 1;
  }
}

/**
 * Returns the position after the JSON value that starts at `at`, or `NOT_JSON` or `TOO_DEEP`.
 *
 * As strict as `JSON.parse`, except that bytes above 0x7F inside strings are not checked, because the caller checks the whole
 * line for UTF-8 once. `depth` is how many more levels of nesting are allowed.
 */
export function skipValue(bytes: Uint8Array, at: number, depth: number): number {
  switch (bytes[at]) {
    case QUOTE:
      return skipString(bytes, at);
    case OPEN_BRACE:
      return depth === 0 ? TOO_DEEP : visitMembers(bytes, at, depth - 1);
    case OPEN_BRACKET:
      return depth === 0 ? TOO_DEEP : visitElements(bytes, at, depth - 1);
    case 0x74:
      return skipLiteral(bytes, at, TRUE);
    case 0x66:
      return skipLiteral(bytes, at, FALSE);
    case 0x6e:
      return skipLiteral(bytes, at, NULL);
    default:
      return skipNumber(bytes, at);
  }
}

/** Whether these bytes stand at `at`. */
export function equalsAt(bytes: Uint8Array, at: number, expected: Uint8Array): boolean {
  for (let index = 0; index < expected.length; index += 1) {
    if (bytes[at + index] !== expected[index]) return false;
  }
  return true;
}

/** Calls `visit` with the spans of each member's key (quotes included) and value; returns as `skipValue` does. */
export function visitMembers(
  bytes: Uint8Array,
  at: number,
  depth: number,
  visit?: (key: Span, value: Span) => void,
): number {
  if (bytes[at] !== OPEN_BRACE) return NOT_JSON;
  let position = skipWhitespace(bytes, at + 1);
  if (bytes[position] === CLOSE_BRACE) return position + 1;
  for (;;) {
    const keyEnd = skipString(bytes, position);
    if (keyEnd < 0) return keyEnd;
    const valueStart = skipColon(bytes, keyEnd);
    if (valueStart < 0) return valueStart;
    const valueEnd = skipValue(bytes, valueStart, depth);
    if (valueEnd < 0) return valueEnd;
    visit?.({ start: position, end: keyEnd }, { start: valueStart, end: valueEnd });
    position = skipWhitespace(bytes, valueEnd);
    if (bytes[position] === CLOSE_BRACE) return position + 1;
    if (bytes[position] !== COMMA) return NOT_JSON;
    position = skipWhitespace(bytes, position + 1);
  }
}

/** Calls `visit` with the span of each element; returns as `skipValue` does. */
export function visitElements(bytes: Uint8Array, at: number, depth: number, visit?: (element: Span) => void): number {
  if (bytes[at] !== OPEN_BRACKET) return NOT_JSON;
  let position = skipWhitespace(bytes, at + 1);
  if (bytes[position] === CLOSE_BRACKET) return position + 1;
  for (;;) {
    const end = skipValue(bytes, position, depth);
    if (end < 0) return end;
    visit?.({ start: position, end });
    position = skipWhitespace(bytes, end);
    if (bytes[position] === CLOSE_BRACKET) return position + 1;
    if (bytes[position] !== COMMA) return NOT_JSON;
    position = skipWhitespace(bytes, position + 1);
  }
}

/** Returns the start of the value whose key ends at `at`, or `NOT_JSON`. */
export function skipColon(bytes: Uint8Array, at: number): number {
  const position = skipWhitespace(bytes, at);
  return bytes[position] === COLON ? skipWhitespace(bytes, position + 1) : NOT_JSON;
}

/** Returns the text of the string literal at `span`, which must be valid. */
export function readString(bytes: Uint8Array, { start, end }: Span): string {
  const text = shortText(bytes, start + 1, end - 1);
  if (text !== undefined && !text.includes('\\')) return text;
  return JSON.parse(decoder.decode(bytes.subarray(start, end))) as string;
}

/**
 * Returns a key as readers that ignore case compare it. For some of them, such as Go's `encoding/json`, a long s (U+017F) is
 * an s and the Kelvin sign (U+212A) a k, and for others an i without a dot, or a capital one with a dot, is an i.
 * Readers in C end a text at its first NUL.
 */
export function foldKey(key: string): string {
  return key
    .replace(/\0.*/s, '')
    .toLowerCase()
    .replace(/\u017f/g, 's')
    .replace(/\u0131|i\u0307/g, 'i');
}

export function readText(bytes: Uint8Array, { start, end }: Span): string {
  return shortText(bytes, start, end) ?? decoder.decode(bytes.subarray(start, end));
}

/** Short texts by a hash of their bytes. A session uses few methods and names, and to make their texts anew for each call costs more. */
const recentTexts = new Array<string>(512).fill('');

/** Reads up to 64 ASCII characters without the decoder, because a call of it costs more. Returns `undefined` for any other text. */
function shortText(bytes: Uint8Array, start: number, end: number): string | undefined {
  if (end - start > SHORT_TEXT) return undefined;
  let hash = 0;
  for (let position = start; position < end; position += 1) {
    const byte = bytes[position] ?? 0x80;
    if (byte >= 0x80) return undefined;
    hash = (Math.imul(hash, 31) + byte) | 0;
  }
  const slot = (hash ^ (hash >>> 9)) & 511;
  const recent = recentTexts[slot] ?? '';
  if (isSame(recent, bytes, start, end)) return recent;
  let text = '';
  for (let position = start; position < end; position += 1) text += String.fromCharCode(bytes[position] ?? 0);
  recentTexts[slot] = text;
  return text;
}

function isSame(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let index = 0; index < text.length; index += 1)
    if (text.charCodeAt(index) !== bytes[start + index]) return false;
  return true;
}

/** Whether a string literal starts at `span`. */
export function isString(bytes: Uint8Array, span: Span): boolean {
  return bytes[span.start] === QUOTE;
}

/** The string at the span; `undefined` if there is no span or another value. */
export function stringAt(bytes: Uint8Array, span: Span | undefined): string | undefined {
  return span !== undefined && isString(bytes, span) ? readString(bytes, span) : undefined;
}

/** Whether a number starts at `span`. */
export function isNumber(bytes: Uint8Array, span: Span): boolean {
  const byte = bytes[span.start] ?? 0;
  return byte === 0x2d || isDigit(byte);
}

/** Whether an object starts at `span`. */
export function isObject(bytes: Uint8Array, span: Span): boolean {
  return bytes[span.start] === OPEN_BRACE;
}

export function toBytes(text: string): Uint8Array {
  return text.length <= SHORT_TEXT ? (asciiBytes(text) ?? encoder.encode(text)) : encoder.encode(text);
}

/** The engine keeps arrays up to this size on its own heap; the encoder allocates memory outside of it for each text. */
const SHORT_TEXT = 64;

function asciiBytes(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code >= 0x80) return undefined;
    bytes[index] = code;
  }
  return bytes;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const TRUE = encoder.encode('true');
const FALSE = encoder.encode('false');
const NULL = encoder.encode('null');

function skipLiteral(bytes: Uint8Array, at: number, literal: Uint8Array): number {
  return equalsAt(bytes, at, literal) ? at + literal.length : NOT_JSON;
}

function skipNumber(bytes: Uint8Array, at: number): number {
  let position = bytes[at] === 0x2d ? at + 1 : at;
  if (bytes[position] === ZERO) position += 1;
  else if (isDigit(bytes[position])) position = skipDigits(bytes, position);
  else return NOT_JSON;
  if (bytes[position] === 0x2e) {
    if (!isDigit(bytes[position + 1])) return NOT_JSON;
    position = skipDigits(bytes, position + 1);
  }
  if (bytes[position] === 0x65 || bytes[position] === 0x45) {
    position += 1;
    if (bytes[position] === 0x2b || bytes[position] === 0x2d) position += 1;
    if (!isDigit(bytes[position])) return NOT_JSON;
    position = skipDigits(bytes, position);
  }
  return position;
}

function skipDigits(bytes: Uint8Array, at: number): number {
  let position = at;
  while (isDigit(bytes[position])) position += 1;
  return position;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** The members of the object at the span, each with its value and its key; none if there is no object. */
export function membersOf(bytes: Uint8Array, object: Span | undefined): [name: string, value: Span, key: Span][] {
  const members: [string, Span, Span][] = [];
  if (object !== undefined)
    visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (key, value) => {
      members.push([readString(bytes, key), value, key]);
    });
  return members;
}

/** The elements of the array at the span, at most `limit`; none if there is no array. */
export function elementsOf(bytes: Uint8Array, array: Span | undefined, limit = Number.POSITIVE_INFINITY): Span[] {
  const elements: Span[] = [];
  if (array !== undefined)
    visitElements(bytes, array.start, Number.POSITIVE_INFINITY, (element) => {
      if (elements.length < limit) elements.push(element);
    });
  return elements;
}

/**
 * Returns the values at a path of member names within the object at `span`. Returns none if there is no such path, and
 * several if a member on the path is duplicated, because readers differ in which of the duplicates they take.
 */
export function valuesAt(bytes: Uint8Array, span: Span, path: readonly string[]): readonly Span[] {
  const [name, ...rest] = path;
  if (name === undefined) return [span];
  const found: Span[] = [];
  visitMembers(bytes, span.start, Number.POSITIVE_INFINITY, (key, value) => {
    if (readString(bytes, key) === name) found.push(...valuesAt(bytes, value, rest));
  });
  return found;
}

/**
 * Whether an object within the JSON value has two members whose names are the same, or the same for a reader that ignores case.
 * Reads the bytes once, however deep they nest, because each text before a colon is the name of a member of the innermost object.
 */
export function hasTwins(bytes: Uint8Array): boolean {
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at] === OPEN_BRACE) open.push(undefined);
    else if (bytes[at] === CLOSE_BRACE) open.pop();
    if (bytes[at] !== QUOTE) continue;
    const end = skipString(bytes, at);
    if (end < 0) return false;
    if (skipColon(bytes, end) !== NOT_JSON) {
      const name = foldKey(readString(bytes, { start: at, end }));
      const names = open.pop() ?? new Set();
      if (names.has(name)) return true;
      open.push(names.add(name));
    }
    at = end - 1;
  }
  return false;
}
