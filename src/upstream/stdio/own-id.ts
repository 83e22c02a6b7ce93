import { isNumber, readText, type Span } from '../../json/json-text.js';

/** An id of ours as the child spelt it: a number by value (`1.0` is 1), never a string, which would be another id. */
export function readOwnId(bytes: Uint8Array, token: Span): number | undefined {
  let id = 0;
  for (let position = token.start; position < token.end; position += 1) {
    const digit = (bytes[position] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return isNumber(bytes, token) ? Number(readText(bytes, token)) : undefined;
    id = id * 10 + digit;
  }
  return id;
}
