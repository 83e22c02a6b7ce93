import { readText, type Span } from '../json/json-text.js';

/** An id as the key of a map. Ids with different raw texts have different keys. */
export type IdKey = string | number;

const ZERO = 0x30;
/** The most digits of a number for which the engine allocates no object. */
const MAX_DIGITS = 9;

/**
 * Returns the key of the id at `span`: a number for up to nine digits, which saves making a text of nearly every id,
 * otherwise the raw text.
 */
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

/** The id of a message as raw JSON: a view of the message's memory. */
export function rawId({ bytes, id }: { readonly bytes: Uint8Array; readonly id: Span }): Uint8Array {
  return bytes.subarray(id.start, id.end);
}
