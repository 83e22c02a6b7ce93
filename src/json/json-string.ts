import { createSimdScan, type SimdScan } from './simd-scan.js';

/** What the functions that skip return instead of a position when the text is not JSON. */
export const NOT_JSON = -1;

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;

/** The position after the string literal whose opening quote is at `at`. */
export function skipString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return NOT_JSON;
  const longFrom = at + SHORT_STRING;
  let position = at + 1;
  while (position < longFrom) {
    const byte = bytes[position];
    if (byte === undefined || byte < 0x20) return NOT_JSON;
    if (byte === QUOTE) return position + 1;
    if (byte === BACKSLASH) {
      position = skipEscape(bytes, position);
      if (position < 0) return NOT_JSON;
    } else {
      position += 1;
    }
  }
  return skipLongString(bytes, position);
}

/** A string that has not ended after so many bytes is worth a view of four bytes at a time. */
const SHORT_STRING = 64;

/** One that has not ended after so many more is worth a copy, which is never larger than what was passed already. */
const LONG_STRING = 1024;
/** One that has not ended after so many is worth making what scans the copy. */
const VERY_LONG_STRING = 16 * 1024;
/** So are as many of the former: most servers have some in what they list, and clients wait for that. */
const MANY_LONG_STRINGS = 256;

/** The faster scan, if there is one; whether it is worth making decides the caller. */
type FindScan = (isWorthMaking: boolean) => SimdScan | undefined;

/** Goes on at `at`, inside a string literal. */
export function skipLongString(bytes: Uint8Array, at: number, findScan: FindScan = sharedScan): number {
  let position = skipInside(bytes, at, at + LONG_STRING);
  let scan = hasEnded(bytes, position) ? undefined : findScan(false);
  if (scan === undefined && !hasEnded(bytes, position)) {
    position = skipInside(bytes, position, at + VERY_LONG_STRING);
    scan = hasEnded(bytes, position) ? undefined : findScan(true);
  }
  while (!hasEnded(bytes, position)) {
    if (scan === undefined) {
      position = skipInside(bytes, position, bytes.length);
    } else {
      position = scan(bytes, position, Math.min(position - at, bytes.length - position));
      // A closer look at what is there: the end, a fault, or an escape that was not all in the scan's window.
      position = skipInside(bytes, position, position + 1);
    }
  }
  return position < 0 ? NOT_JSON : position + 1;
}

/** At its end, or at a fault. */
function hasEnded(bytes: Uint8Array, position: number): boolean {
  return position < 0 || bytes[position] === QUOTE;
}

let shared: { readonly scan: SimdScan | undefined } | undefined;
let longStrings = 0;

/** It takes most of a millisecond to make, and some memory. */
function sharedScan(isWorthMaking: boolean): SimdScan | undefined {
  if (shared === undefined && !isWorthMaking) {
    longStrings += 1;
    if (longStrings < MANY_LONG_STRINGS) return undefined;
  }
  shared ??= { scan: createSimdScan() };
  return shared.scan;
}

/**
 * The position of the quote that ends the literal, or the first position from `until` on that is outside of escapes, or
 * one not far behind; `NOT_JSON` if the literal is broken or does not end. Four plain bytes are passed at a time.
 */
function skipInside(bytes: Uint8Array, at: number, until: number): number {
  const unaligned = -bytes.byteOffset & 3;
  const words = new Int32Array(
    bytes.buffer,
    bytes.byteOffset + unaligned,
    Math.max(0, (Math.min(bytes.length, until) - unaligned) >> 2),
  );
  let position = at;
  for (;;) {
    if (((position - unaligned) & 3) === 0)
      position = skipPlainWords(words, (position - unaligned) >> 2) * 4 + unaligned;
    const byte = bytes[position];
    if (byte === undefined || byte < 0x20) return NOT_JSON;
    if (byte === QUOTE || position >= until) return position;
    if (byte === BACKSLASH) {
      position = skipEscape(bytes, position);
      if (position < 0) return NOT_JSON;
    } else {
      position += 1;
    }
  }
}

/** The first word from `from` on in which a quote, a backslash or a control character may be, or one before it. */
function skipPlainWords(words: Int32Array, from: number): number {
  const last = words.length - 1;
  let index = from;
  while (index < last && ((suspects(words[index] ?? 0) | suspects(words[index + 1] ?? 0)) & 0x80808080) === 0)
    index += 2;
  return index;
}

/**
 * The top bits of those bytes that are below 0x20, a quote or a backslash, and perhaps of some behind one: a byte that
 * has not got its top bit gets it from a subtraction only by a borrow.
 */
function suspects(word: number): number {
  return (((word ^ 0x22222222) - 0x01010101) | ((word ^ 0x5c5c5c5c) - 0x01010101) | (word - 0x20202020)) & ~word;
}

function skipEscape(bytes: Uint8Array, at: number): number {
  switch (bytes[at + 1]) {
    case 0x22: // "
    case 0x5c: // \
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return at + 2;
    case 0x75: // u
      for (let digit = at + 2; digit < at + 6; digit += 1) if (!isHexDigit(bytes[digit])) return NOT_JSON;
      return at + 6;
    default:
      return NOT_JSON;
  }
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);
}
