const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/**
 * The text with spaces for its line breaks, for ways on which a line break ends the message. The very same bytes when
 * there are none.
 *
 * Only for what is known to be JSON, or a part of it: there a raw line break can only stand between tokens, where a
 * space says the same.
 */
export function onOneLine(json: Uint8Array): Uint8Array {
  if (!json.includes(LF) && !json.includes(CR)) return json;
  return json.map((byte) => (byte === CR || byte === LF ? SPACE : byte));
}
