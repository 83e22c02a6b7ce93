import { createSimdScan, type SimdScan } from './simd-scan.js';

/** Result of the skip functions, instead of a position, if the text is not JSON. */
export const NOT_JSON = -1;

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;

/** Returns the position after the string literal whose opening quote is at `at`. */
export function skipString(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return NOT_JSON;
  let position = skipInside(bytes, at + 1, at + LONG_STRING);
  if (scan === undefined && !hasEnded(bytes, position)) position = skipInside(bytes, position, at + VERY_LONG_STRING);
  while (!hasEnded(bytes, position)) {
    scan ??= createSimdScan() ?? skipNothing;
    position = scan(bytes, position, Math.min(position - at, bytes.length - position));
    // Judges the byte that the scan stopped at: the end, a fault, or an escape that the scan saw only in part.
    position = skipInside(bytes, position, scan === skipNothing ? bytes.length : position + 1);
  }
  return position < 0 ? NOT_JSON : position + 1;
}

/** Length beyond which it pays to copy the string for the SIMD scan. A copy is never larger than what was scanned before it. */
const LONG_STRING = 1024;
/** Length beyond which it pays to make the SIMD scan, which takes most of a millisecond and some memory. */
const VERY_LONG_STRING = 16 * 1024;

/** Made for the first very long string. */
let scan: SimdScan | undefined;

/** Replaces the scan on a platform that has none. */
const skipNothing: SimdScan = (_, at) => at;

/** Whether the literal has ended at `position`, or is not valid. */
function hasEnded(bytes: Uint8Array, position: number): boolean {
  return position < 0 || bytes[position] === QUOTE;
}

/**
 * Returns the position of the quote that ends the literal, or else a position outside of escapes at or shortly after
 * `until`. Returns `NOT_JSON` if the literal is not valid or does not end.
 */
function skipInside(bytes: Uint8Array, at: number, until: number): number {
  let position = at;
  for (;;) {
    const byte = bytes[position];
    if (byte === undefined || byte < 0x20) return NOT_JSON;
    if (byte === QUOTE || position >= until) return position;
    position = byte === BACKSLASH ? skipEscape(bytes, position) : position + 1;
    if (position < 0) return NOT_JSON;
  }
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
