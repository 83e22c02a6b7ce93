import { createSimdScan, type SimdScan } from './simd-scan.js';

/** Result of the skip functions, instead of a position, if the text is not JSON. */
export const NOT_JSON = -1;

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;

/** Returns the position after the string literal whose opening quote is at `at`. */
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

/** From this length on, it pays to make a view of the string that reads four bytes at a time. */
const SHORT_STRING = 64;

/**
 * Length beyond which it pays to copy the string for the SIMD scan. A copy is never larger than what was scanned
 * before it.
 */
const LONG_STRING = 1024;
/** Length beyond which it pays to make the SIMD scan if there is none yet. */
const VERY_LONG_STRING = 16 * 1024;
/**
 * Number of strings that could use the scan for which it pays to make it, too. Fewer are not: most servers list some, and clients
 * wait for the list.
 */
const MANY_LONG_STRINGS = 256;

/** Returns the SIMD scan, if the platform has one. Makes it on demand if the caller says that it is worth making. */
type FindScan = (isWorthMaking: boolean) => SimdScan | undefined;

/** As `skipString`, from a position inside the string literal on. */
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
      // Judges the byte that the scan stopped at: the end, a fault, or an escape that the scan saw only in part.
      position = skipInside(bytes, position, position + 1);
    }
  }
  return position < 0 ? NOT_JSON : position + 1;
}

/** Whether the literal has ended at `position`, or is not valid. */
function hasEnded(bytes: Uint8Array, position: number): boolean {
  return position < 0 || bytes[position] === QUOTE;
}

let shared: { readonly scan: SimdScan | undefined } | undefined;
let longStrings = 0;

/** Made on demand, because that takes most of a millisecond and some memory. */
function sharedScan(isWorthMaking: boolean): SimdScan | undefined {
  if (shared === undefined && !isWorthMaking) {
    longStrings += 1;
    if (longStrings < MANY_LONG_STRINGS) return undefined;
  }
  shared ??= { scan: createSimdScan() };
  return shared.scan;
}

/**
 * Returns the position of the quote that ends the literal, or else a position outside of escapes at or shortly after
 * `until`. Returns `NOT_JSON` if the literal is not valid or does not end. Skips four plain bytes at a time.
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

/**
 * Returns the index of the first word from `from` on that may contain a quote, a backslash or a control character, or
 * of the word before it.
 */
function skipPlainWords(words: Int32Array, from: number): number {
  const last = words.length - 1;
  let index = from;
  while (index < last && ((suspects(words[index] ?? 0) | suspects(words[index + 1] ?? 0)) & 0x80808080) === 0)
    index += 2;
  return index;
}

/**
 * Returns a word in which the top bit of each byte below 0x20, each quote and each backslash is set. The borrow of a
 * subtraction may also set the top bit of a byte behind one of those. The other bits mean nothing.
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
