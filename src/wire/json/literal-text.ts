import { BACKSLASH } from './json-string.js';
import { toBytes } from './json-text.js';

/*
 * The text of a long string literal, measured and cut without decoding the literal. `inside` is a valid literal without its
 * quotes. Positions are those of bytes.
 */

const LETTER_U = 0x75;

/** Returns the number of bytes that the text has in UTF-8. */
export function textLength(inside: Uint8Array): number {
  let { length } = inside;
  // Faster than `indexOf`, because most texts have an escape in each line.
  for (let at = 0; at < inside.length; at += 1) {
    if (inside[at] !== BACKSLASH) continue;
    if (inside[at + 1] !== LETTER_U) {
      length -= 1;
      at += 1;
      continue;
    }
    const size = escapeLength(inside, at);
    length -= size - (size === 12 ? 4 : utf8LengthOf(codeUnit(inside, at)));
    at += size - 1;
  }
  return length;
}

/** Returns the last position up to `at` that is between two characters. `from` must be such a position. */
export function boundaryBefore(inside: Uint8Array, at: number, from = 0): number {
  if (at >= inside.length) return inside.length;
  let cut = at;
  for (let start = at - 1; start >= Math.max(from, at - 5); start -= 1) {
    if (inside[start] !== BACKSLASH) continue;
    // An escape before the nearest backslash ends there.
    if (isEscape(inside, start, from) && start + (inside[start + 1] === LETTER_U ? 6 : 2) > at) cut = start;
    break;
  }
  while (cut > from && isContinuation(inside[cut])) cut -= 1;
  const half = cut - 6;
  return half >= from && isEscape(inside, half, from) && escapeLength(inside, half) === 12 ? half : cut;
}

/** Returns the first position from `at` on that is between two characters. */
export function boundaryAfter(inside: Uint8Array, at: number): number {
  let after = boundaryBefore(inside, at);
  if (after === at || after === inside.length) return after;
  if (inside[after] === BACKSLASH) return after + escapeLength(inside, after);
  do after += 1;
  while (isContinuation(inside[after]));
  return after;
}

export function textInside(inside: Uint8Array): string {
  const text = decoder.decode(inside);
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}

export function insideOf(text: string): Uint8Array {
  return toBytes(JSON.stringify(text).slice(1, -1));
}

/** A byte order mark within a text is a character like any other. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Whether an escape starts at `at`. The second of two backslashes starts none. */
function isEscape(inside: Uint8Array, at: number, from: number): boolean {
  if (inside[at] !== BACKSLASH) return false;
  let start = at;
  while (start > from && inside[start - 1] === BACKSLASH) start -= 1;
  return (at - start) % 2 === 0;
}

/** Length of the escape at `at`. Two escapes that are the halves of one character count as one. */
function escapeLength(inside: Uint8Array, at: number): number {
  if (inside[at + 1] !== LETTER_U) return 2;
  const isHigh = (codeUnit(inside, at) & 0xfc00) === 0xd800;
  if (!isHigh || inside[at + 6] !== BACKSLASH || inside[at + 7] !== LETTER_U) return 6;
  return (codeUnit(inside, at + 6) & 0xfc00) === 0xdc00 ? 12 : 6;
}

/** The code unit of the escape `\uXXXX` at `at`. */
function codeUnit(inside: Uint8Array, at: number): number {
  let code = 0;
  for (let digit = at + 2; digit < at + 6; digit += 1) {
    const byte = inside[digit] ?? 0;
    // A letter has bit 6, and its lower bits count from 1.
    code = code * 16 + (byte & 0x0f) + (byte >> 6) * 9;
  }
  return code;
}

/** A half of a character alone becomes U+FFFD, which takes three bytes. */
function utf8LengthOf(code: number): number {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
