import { hasTwins, toBytes } from '../../wire/json/json-text.js';
import { printable } from '../../wire/json/printable.js';

/** Longest text in arguments, and all arguments together, that a person is shown, in characters. */
const MAX_TEXT = 400;
const MAX_SHOWN = 2_000;
/** Longest arguments of a call that can be asked about, in characters, because a person reads no more. */
const MAX_ASKED = 1024 * 1024;
/** Longest name that a person is shown. */
const MAX_NAME = 120;

/** Arguments about which a person cannot be asked. The message is a clause about them. */
export class Unaskable extends Error {}

/**
 * Arguments as a person reads them: as most servers read the JSON, without escapes and secrets, with long texts cut in their middle, so
 * that every name is shown. Throws `Unaskable` if servers differ in what they read, or if the arguments are too long.
 */
export function shownArguments(json: string, redact: (text: string) => string): string {
  if (json === '') return '';
  if (json.length > MAX_ASKED) throw new Unaskable('but its arguments are too long for a person to read');
  if (hasTwins(toBytes(json)))
    throw new Unaskable('but servers differ in which of two arguments of one name they take');
  const clean = (each: unknown): unknown => {
    if (typeof each === 'string') return cut(redact(each), MAX_TEXT);
    if (Array.isArray(each)) return each.map(clean);
    if (typeof each !== 'object' || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([name, inner]) => [cut(redact(name), MAX_NAME), clean(inner)]));
  };
  return cut(printable(redact(JSON.stringify(clean(JSON.parse(json))))), MAX_SHOWN);
}

/** A name that a model or a server has chosen, in quotes, on one line and not so long that it hides what follows. */
export function shownName(name: string, redact: (text: string) => string): string {
  return JSON.stringify(cut(printable(redact(name)).replace(/\s+/g, ' '), MAX_NAME));
}

/** Cuts the middle out of a long text, and says how much. The copy keeps nothing of the text in memory. */
function cut(text: string, max: number): string {
  const more = text.length - max;
  if (more <= 0) return text;
  const head = Math.ceil((max * 2) / 3);
  return Buffer.from(`${text.slice(0, head)}…[${more} more characters]…${text.slice(head - max)}`).toString();
}
