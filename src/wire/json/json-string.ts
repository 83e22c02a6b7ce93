import { SEARCH_MODULE } from './simd-search.js';

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

/** Length beyond which it pays to copy the string for the SIMD scan. A copy is never larger than the part that was scanned before it. */
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

/**
 * Returns the first position from `at` on that needs a closer look: a quote, a control character, a backslash that
 * begins no escape, or a backslash whose escape is incomplete. Returns `at + length` if there is none.
 *
 * `at` must be inside a string literal and outside of escapes, and `bytes` must have `length` bytes from there on. All
 * bytes before the returned position are valid, except that bytes above 0x7F are not checked.
 */
export type SimdScan = (bytes: Uint8Array, at: number, length: number) => number;

/** Limit of the bytes that one call searches, however large `length` is. The memory in `simd-search.wat` has space for them. */
export const WINDOW_BYTES = 64 * 1024;

/**
 * A scan of 64 bytes at a time in WebAssembly, which copies the bytes to its memory and searches them there. Returns `undefined` if the
 * platform has no WebAssembly, the processor lacks the instructions, or the address space is too small.
 */
export function createSimdScan(): SimdScan | undefined {
  const instance = instantiate();
  if (instance === undefined) return undefined;
  const { run } = instance;
  const memory = new Uint8Array(instance.memory.buffer);
  return (bytes, at, length) => {
    const size = Math.min(length, WINDOW_BYTES);
    memory.set(new Uint8Array(bytes.buffer, bytes.byteOffset + at, size));
    memory[size] = STOP;
    return at + run(0);
  };
}

/** A control character behind the copied bytes. It ends every search and every escape, so older bytes behind it have no effect. */
const STOP = 0;

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly run: (at: number) => number;
}

/** The parts of the global `WebAssembly` that are used here. The types of Node do not declare it. */
declare const WebAssembly:
  | {
      readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
      readonly Instance: new (module: object) => { readonly exports: unknown };
    }
  | undefined;

function instantiate(): Exports | undefined {
  if (typeof WebAssembly === 'undefined') return undefined;
  try {
    const bytes = Uint8Array.from(atob(SEARCH_MODULE), (character) => character.charCodeAt(0));
    return new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as Exports;
  } catch {
    // Only speed is lost, because the caller finds the same position byte by byte.
    return undefined;
  }
}
