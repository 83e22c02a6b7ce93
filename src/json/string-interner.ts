/** Longer texts are hardly names. */
const MAX_BYTES = 64;
/** A power of two, somewhat more than the names in use at one time. */
const SLOTS = 512;

/**
 * Decodes bytes to texts, and returns the same text object for the same bytes until another text takes its slot. A
 * session uses few methods and names, and maps find a text object that was used before faster.
 */
export class StringInterner {
  readonly #texts = new Array<string>(SLOTS).fill('');

  /** Returns the text from `start` to `end`; `undefined` if it is long, is not ASCII or contains a backslash. */
  read(bytes: Uint8Array, start: number, end: number): string | undefined {
    if (end - start > MAX_BYTES) return undefined;
    let hash = 0;
    for (let position = start; position < end; position += 1) {
      const byte = bytes[position] ?? 0x80;
      if (byte >= 0x80 || byte === 0x5c) return undefined;
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    const slot = (hash ^ (hash >>> 9)) & (SLOTS - 1);
    const known = this.#texts[slot] ?? '';
    if (isSame(known, bytes, start, end)) return known;
    const text = String.fromCharCode(...bytes.subarray(start, end));
    this.#texts[slot] = text;
    return text;
  }
}

function isSame(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let index = 0; index < text.length; index += 1) {
    if (text.charCodeAt(index) !== bytes[start + index]) return false;
  }
  return true;
}
