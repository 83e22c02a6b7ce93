const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/**
 * Replaces line breaks in JSON by spaces, for transports on which a line break ends the message. Returns the same array
 * if there are none.
 *
 * The bytes must be valid JSON, or a part of it: there, a raw line break occurs only between tokens, where a space
 * means the same.
 */
export function onOneLine(json: Uint8Array): Uint8Array {
  if (!json.includes(LF) && !json.includes(CR)) return json;
  return json.map((byte) => (byte === CR || byte === LF ? SPACE : byte));
}
