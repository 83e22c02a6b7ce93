import { printableLines } from '../../wire/json/printable.js';

/** Number with separators of thousands, such as `12,345`. */
export function number(value: number): string {
  return value.toLocaleString('en-US');
}

/** Duration in words: in milliseconds below `exactBelow`, otherwise in seconds or minutes. */
export function milliseconds(value: number, exactBelow = 1_000): string {
  if (value < 1) return '< 1 ms';
  if (value < exactBelow) return `${number(Math.round(value))} ms`;
  return value < 60_000 ? `${(value / 1_000).toFixed(1)} s` : `${(value / 60_000).toFixed(1)} min`;
}

/** Locale for dates and times. Swedish writes them as in ISO 8601. */
const LOCAL = 'sv-SE';

/** Local time of a day, such as `14:03:59`. */
export function clock(at: number): string {
  return new Date(at).toLocaleTimeString(LOCAL);
}

/** Local time, with the date if it is another day than `now`. */
export function when(at: number, now = Date.now()): string {
  const date = new Date(at);
  return date.toDateString() === new Date(now).toDateString() ? clock(at) : dateTime(date.toISOString());
}

/** Date and time for people in all countries, such as `2026-11-24 14:03`. */
export function dateTime(iso: string): string {
  return new Date(iso).toLocaleString(LOCAL, { dateStyle: 'short', timeStyle: 'short' });
}

/** Whether each word of a filter is in the text. Case does not matter. */
export function matches(text: string, filter: string): boolean {
  const low = text.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => low.includes(word));
}

/** Tokens of JSON: strings, white space, punctuation, and runs of other characters. */
const TOKENS = /"(?:[^"\\]|\\.)*"|\s+|[[\]{}:,]|[^\s[\]{}:,"]+/g;

/**
 * Indents JSON, and escapes characters that could hide text. Numbers stay as they were written, because a parser would round
 * large ones. A text that is not JSON is only escaped.
 */
export function prettyJson(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return printableLines(text);
  }
  let depth = 0;
  let previous = '';
  let pretty = '';
  const line = () => `\n${'  '.repeat(depth)}`;
  for (const token of text.match(TOKENS) ?? []) {
    if (token.trim() === '') continue;
    const closes = token === '}' || token === ']';
    if (closes) depth -= 1;
    const opened = previous === '{' || previous === '[';
    if (closes ? !opened : opened || previous === ',') pretty += line();
    pretty += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth += 1;
    previous = token;
  }
  return printableLines(pretty);
}
