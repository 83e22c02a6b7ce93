import { readText, type Span } from '../json/json-text.js';

/** An id in a map. Ids that are spelt differently have different ones. */
export type IdKey = string | number;

const ZERO = 0x30;
/** As many as make a number that the engine need not allocate. */
const MAX_DIGITS = 9;

/** The id at `span`: mere digits as their number, since nearly all ids are, and a text would have to be made of each. */
export function idKey(bytes: Uint8Array, span: Span): IdKey {
  const { start, end } = span;
  const isPadded = bytes[start] === ZERO && end - start > 1;
  if (end - start > MAX_DIGITS || isPadded) return readText(bytes, span);
  let key = 0;
  for (let position = start; position < end; position += 1) {
    const digit = (bytes[position] ?? 0) - ZERO;
    if (digit < 0 || digit > 9) return readText(bytes, span);
    key = key * 10 + digit;
  }
  return key;
}
