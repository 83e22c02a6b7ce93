/** Names are short; what is longer is hardly one. */
const MAX_BYTES = 64;
/** A power of two: the names in use at one time, and not many more. */
const SLOTS = 512;

/**
 * Makes texts of bytes, and gives the same text again for the same bytes as long as no other takes its place: the
 * methods and names of a session are few, and a text that was used before is found in maps at once.
 */
export class StringInterner {
  readonly #texts = new Array<string>(SLOTS).fill('');

  /** The characters from `start` to `end`; `undefined` where one is not ASCII or is a backslash, or where it is long. */
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
