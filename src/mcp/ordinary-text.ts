/**
 * Whether a JSON text has only visible ASCII characters, and no escapes but those of quotes, backslashes, line breaks and
 * tabs. Nothing is hidden in its strings, each byte is a character, and each key stands there as it reads. Most entries of
 * lists are like that, so that their checks can be short.
 */
export function isOrdinary(json: string): boolean {
  return VISIBLE.test(json) && !RARE_ESCAPE.test(json);
}

const VISIBLE = /^[ -~]*$/;
/** Also matches the character after an escaped backslash, which costs only time. */
const RARE_ESCAPE = /\\[^"\\nrt]/;
