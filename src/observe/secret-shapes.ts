import type { Span } from '../json/json-text.js';

/**
 * Finds what looks like a secret: texts that have the form of a well-known token, and values that stand after a name such as
 * `password=` or in a header such as `Cookie:`.
 *
 * A hostile server can write the text, so each repetition in a pattern is bounded, and no part of the text is read twice
 * for one pattern. Otherwise the time to scan a long line would grow with its square.
 */
export function findSecretShapes(text: string): Span[] {
  const spans: Span[] = [];
  for (const { 0: found, index } of text.matchAll(TOKEN)) spans.push({ start: index, end: index + found.length });
  for (const shape of PREFIXED) {
    for (const { 0: found, 1: prefix = '', index } of text.matchAll(shape)) {
      spans.push({ start: index + prefix.length, end: index + found.length });
    }
  }
  addValues(text, NAME, (at) => wordAt(text, at), spans);
  addValues(text, COOKIE, (at) => cookiesAt(text, at), spans);
  return spans;
}

const TOKEN = new RegExp(
  [
    String.raw`\b(?:sk|pk|rk)-[\w-]{16,}`,
    String.raw`\bgh[oprsu]_\w{20,}`,
    String.raw`\bgithub_pat_\w{20,}`,
    String.raw`\bglpat-[\w-]{16,}`,
    String.raw`\bxox[abeoprs]-[\w-]{10,}`,
    String.raw`\bA(?:KIA|SIA)[A-Z0-9]{16}\b`,
    String.raw`\bAIza[\w-]{30,}`,
    String.raw`\bnpm_\w{30,}`,
    String.raw`\beyJ[\w-]{8,512}\.[\w-]{8,}\.[\w-]*`,
  ].join('|'),
  'g',
);

/** Text before a secret, and the secret: `Bearer …`, `Basic …`, `--token …`, and the user part of a URL. */
const PREFIXED: readonly RegExp[] = [
  /(\bbearer\s{1,8})[\w.~+/=-]{8,}/gi,
  /(\bauthorization\\{0,16}["']?\s{0,8}[:=]\s{0,8}\\{0,16}["']?basic\s{1,8})[\w+/=-]{4,}/gi,
  /(--[\w-]{0,32}?(?:password|passwd|secret|token|api[_-]?key)\s{1,8}["']?)(?!-)[^\s"',;]{4,}/gi,
  /(:\/\/[^\s/:@]{0,256}:)[^\s/@]{1,1024}(?=@)/gi,
];

/** A name whose value is a secret. Its quote is escaped where the text is JSON inside of JSON. */
const NAME = /(?:password|passwd|secret|token|api[_-]?key)\\{0,16}["']?\s{0,8}[=:]\s{0,8}/gi;
/** The name of a header with cookies, also as an element of a list of names and values. */
const COOKIE = /cookie(?:\\{0,16}["']\s{0,8}[=:,]|\s{0,8}[=:])\s{0,8}/gi;

/** Shorter values are words such as `no`. */
const SHORTEST_VALUE = 4;
const LONGEST_VALUE = 8 * 1024;

/** Adds the values that stand after a name: a quoted one, the quoted ones of a list, or what `unquotedAt` finds. */
function addValues(text: string, name: RegExp, unquotedAt: (at: number) => Span, spans: Span[]): void {
  name.lastIndex = 0;
  while (name.exec(text) !== null) {
    const isList = text[name.lastIndex] === '[';
    let at = skip(text, name.lastIndex + (isList ? 1 : 0), ' ');
    let value = quotedAt(text, at) ?? (isList ? { start: at, end: at } : unquotedAt(at));
    for (;;) {
      if (value.end - value.start >= SHORTEST_VALUE) spans.push(value);
      name.lastIndex = Math.max(name.lastIndex, value.end);
      if (!isList) break;
      // After the closing quote, which can be escaped.
      at = skip(text, skip(text, value.end, '\\') + 1, ', ');
      const next = quotedAt(text, at);
      if (next === undefined) break;
      value = next;
    }
  }
}

/**
 * The content of the string literal at this position, if there is one. A quote inside of it is escaped with more
 * backslashes than the quotes around it, however often the text was escaped.
 */
function quotedAt(text: string, at: number): Span | undefined {
  const open = skip(text, at, '\\');
  const quote = text[open];
  if (quote !== '"' && quote !== "'") return undefined;
  const start = open + 1;
  const limit = Math.min(text.length, start + LONGEST_VALUE);
  let escapes = 0;
  for (let end = start; end < limit; end += 1) {
    const char = text[end];
    if (char === quote && escapes <= open - at) return { start, end: end - escapes };
    if (char === '\n') return { start, end };
    escapes = char === '\\' ? escapes + 1 : 0;
  }
  return { start, end: limit };
}

function wordAt(text: string, at: number): Span {
  WORD.lastIndex = at;
  return { start: at, end: at + (WORD.exec(text)?.[0].length ?? 0) };
}

/** Cookies without quotes around them reach to the end of the line, or of the string that the line with the header is in. */
function cookiesAt(text: string, at: number): Span {
  COOKIES.lastIndex = at;
  return { start: at, end: at + (COOKIES.exec(text)?.[0].length ?? 0) };
}

const WORD = /[^\s"',;]{0,8192}/y;
const COOKIES = /[^\s=;,]{1,256}=(?:(?!\\{0,16}["']\s{0,8}(?:[,}\])]|$))[^\r\n])*/my;

/** The position after those of these characters that stand here. */
function skip(text: string, at: number, characters: string): number {
  let end = at;
  while (end < text.length && characters.includes(text[end] ?? '')) end += 1;
  return end;
}
