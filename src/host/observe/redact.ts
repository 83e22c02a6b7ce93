import type { Span } from '../../wire/json/json-text.js';

/** Removes secrets from a text before it enters a log. */
export type Redact = (text: string) => string;

interface FoundSecrets {
  /** Values of the configuration or of a client. */
  readonly known: readonly Span[];
  /** Texts that only look like secrets. */
  readonly likely: readonly Span[];
}

export type FindSecrets = (text: string) => FoundSecrets;

/** Text in place of each secret. */
export const REDACTED = '[redacted]';

/** Number of sources that stay known after their last use, because a server may still write a secret of a client that has left. */
const MAX_OUTDATED = 256;

interface Known {
  readonly source: SecretSource;
  /** Number of uses that have not been released. */
  uses: number;
}

/** Collects secrets while the process runs, because the log opens before the configuration is read. */
export class KnownSecrets {
  /** The sources by their content. */
  readonly #sources = new Map<string, Known>();
  /** Keys of the sources without uses, the longest outdated first. */
  readonly #outdated = new Set<string>();
  /** Finds the secrets of the sources. Absent after a change of these. */
  #find: FindSecrets | undefined;

  /** Adds secrets for good, because output can be logged long after the configuration has changed. */
  know(sources: readonly SecretSource[]): void {
    this.knowWhile(sources);
  }

  /** Adds secrets of clients until the returned function is called. The latest `MAX_OUTDATED` sources stay longer. */
  knowWhile(sources: readonly SecretSource[]): () => void {
    const keys = sources.map((source) => this.#use(source));
    return () => {
      for (const key of keys.splice(0)) this.#leave(key);
    };
  }

  readonly find: FindSecrets = (text) => {
    this.#find ??= createFinder([...this.#sources.values()].map(({ source }) => source));
    return this.#find(text);
  };

  readonly redact: Redact = (text) => withoutSecrets(text, this.find(text));

  #use({ env, args }: SecretSource): string {
    const key = JSON.stringify([env, args]);
    const known = this.#sources.get(key) ?? { source: { env, args }, uses: 0 };
    if (known.uses === 0 && !this.#outdated.delete(key)) {
      this.#sources.set(key, known);
      this.#find = undefined;
    }
    known.uses += 1;
    return key;
  }

  #leave(key: string): void {
    const known = this.#sources.get(key);
    if (known === undefined) return;
    known.uses -= 1;
    if (known.uses > 0) return;
    this.#outdated.add(key);
    if (this.#outdated.size <= MAX_OUTDATED) return;
    const [oldest = key] = this.#outdated;
    this.#outdated.delete(oldest);
    this.#sources.delete(oldest);
    this.#find = undefined;
  }
}

/** Returns a function that removes the secrets of these sources and every text that looks like a secret. */
export function createRedactor(sources: readonly SecretSource[]): Redact {
  const find = createFinder(sources);
  return (text) => withoutSecrets(text, find(text));
}

function createFinder(sources: readonly SecretSource[]): FindSecrets {
  const findKnown = createSecretFinder(sources.flatMap(secretValuesIn));
  return (text) => ({ known: findKnown(text), likely: findSecretShapes(text) });
}

export function withoutSecrets(text: string, { known, likely }: FoundSecrets): string {
  let clean = '';
  let position = 0;
  for (const { start, end } of united([...known, ...likely])) {
    clean += text.slice(position, start) + REDACTED;
    position = end;
  }
  return clean + text.slice(position);
}

/**
 * The spans from the first to the last. Those that touch or overlap are one, because half of a secret must not remain where
 * another one begins in it.
 */
export function united(spans: readonly Span[]): Span[] {
  const all: Span[] = [];
  for (const { start, end } of [...spans].sort((a, b) => a.start - b.start)) {
    const last = all.at(-1);
    if (last === undefined || start > last.end) all.push({ start, end });
    else if (end > last.end) all[all.length - 1] = { start: last.start, end };
  }
  return all;
}

/**
 * Returns a URL without user, password, query and fragment, which can have credentials. Accepts a text with a variable, which may be
 * no URL yet.
 */
export function publicPartOf(url: string): string {
  if (!URL.canParse(url)) return url.replace(/[?#].*$/s, '').replace(/:\/\/[^/]*@/, '://');
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** Variables and arguments whose values can be secrets, such as those of one server. */
export interface SecretSource {
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

/** Minimum length of a secret, because shorter values would remove harmless words from every line. */
const SHORTEST_SECRET = 6;

const SECRET_NAME =
  /key|token|secret|passw|pwd|auth|cred|cookie|session|private|dsn|connection|bearer|webhook|(?:^|[_-])pat(?:$|[_-])/i;

/** Values that are most likely generated, such as long hexadecimal numbers and long mixtures of letters and digits. */
const RANDOM_VALUE =
  /^(?:[0-9a-f]{32,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w.~+=-]{20,512})$/;

/** Returns the values that servers get under names such as `API_KEY` or `--token`, and the credentials in the URLs that they get. */
export function secretValuesIn({ env, args }: SecretSource): string[] {
  const isSecret = (name: string, value: string) => SECRET_NAME.test(name) || RANDOM_VALUE.test(value);
  const fromEnv = Object.entries(env).flatMap(([name, value]) => (isSecret(name, value) ? [value] : []));
  const fromArgs = args.flatMap((arg, index) => {
    const [flag = '', value] = arg.split(/=(.*)/s, 2);
    if (value !== undefined) return isSecret(flag, value) ? [value] : [];
    const before = args[index - 1] ?? '';
    const isNamed = before.startsWith('-') && !before.includes('=') && SECRET_NAME.test(before);
    return isNamed || RANDOM_VALUE.test(arg) ? [arg] : [];
  });
  const fromUrls = [...Object.values(env), ...args].flatMap(credentialsInUrls);
  // A log consists of lines, so a secret of several lines is matched line by line.
  const lines = [...fromEnv, ...fromArgs, ...fromUrls].flatMap((value) => value.split(/\r?\n/));
  return lines.filter((line) => line.length >= SHORTEST_SECRET);
}

/** The part of a URL before the host. It ends at the last `@`, since a password in a variable is not always encoded. */
const USER_INFO = /:\/\/([^\s/?#]*)@/g;

/** Returns the passwords in URLs, as written, decoded, and with the user, as in a header. A user alone counts if it looks random. */
function credentialsInUrls(value: string): string[] {
  return [...value.matchAll(USER_INFO)].flatMap(([, userInfo = '']) => {
    const [user = '', password = ''] = userInfo.split(/:(.*)/s, 2);
    if (password === '') return RANDOM_VALUE.test(user) ? [user] : [];
    return [password, percentDecoded(password), percentDecoded(userInfo)];
  });
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A `%` that is no escape.
    return text;
  }
}

/**
 * Returns a function that finds these secrets in a text, as they are and in the forms that programs usually give them:
 * escaped as in JSON (also twice), percent-encoded, hexadecimal, and in Base64 at any position of a longer text.
 *
 * One regular expression holds all forms, because each line of each log is searched. V8 merges the common beginnings of its
 * alternatives, so a text of 1 MB with 500 secrets takes 2 ms; one search for each form takes 240 ms.
 */
function createSecretFinder(secrets: readonly string[]): (text: string) => Span[] {
  const forms = new Set(secrets.flatMap(formsOf).filter((form) => form.length >= SHORTEST_SECRET));
  if (forms.size === 0) return () => [];
  // The first alternative that fits is taken, so longer forms stand before their beginnings.
  const longestFirst = [...forms].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map(escapedForPattern).join('|'), 'g');
  return (text) => {
    const spans: Span[] = [];
    pattern.lastIndex = 0;
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      spans.push({ start: match.index, end: pattern.lastIndex });
      // Another secret can begin within this one.
      pattern.lastIndex = match.index + 1;
    }
    return spans;
  };
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const escaped = escapedForJson(secret);
  return [
    ...[secret, escaped, escapedForJson(escaped), percentEncoded(secret)],
    ...[hex, hex.toUpperCase()],
    ...(['base64', 'base64url'] as const).flatMap((encoding) => base64Of(bytes, encoding)),
  ];
}

function escapedForJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function percentEncoded(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    // Half of a surrogate pair has no encoding.
    return text;
  }
}

/**
 * The whole secret in Base64, and for each of the three positions in groups of three bytes the characters that consist of
 * bits of the secret only.
 */
function base64Of(bytes: Buffer, encoding: 'base64' | 'base64url'): string[] {
  const within = [0, 1, 2].map((offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
    return shifted.toString(encoding).slice(Math.ceil((offset * 8) / 6), Math.floor((shifted.length * 8) / 6));
  });
  return [bytes.toString(encoding), ...within];
}

function escapedForPattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}

/**
 * Finds texts that look like secrets: those with the form of a well-known token, and values that stand after a name such as
 * `password=` or in a header such as `Cookie:`.
 *
 * A hostile server can write the text, so each repetition in a pattern is bounded, and no part of the text is read twice for one
 * pattern. Otherwise the time to scan a long line would grow with its square.
 */
export function findSecretShapes(text: string): Span[] {
  const spans: Span[] = [];
  for (const { 0: found, index } of text.matchAll(TOKEN)) spans.push({ start: index, end: index + found.length });
  for (const shape of PREFIXED) {
    for (const { 0: found, 1: prefix = '', index } of text.matchAll(shape)) {
      spans.push({ start: index + prefix.length, end: index + found.length });
    }
  }
  addValues(text, NAME, (at) => spanOf(WORD, text, at), spans);
  addValues(text, COOKIE, (at) => spanOf(COOKIES, text, at), spans);
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

/**
 * A name whose value is a secret. Its quote is escaped where the text is JSON inside of JSON. The references `${secret:NAME}` and
 * `${TOKEN:-default}` are no secrets, and messages show them as examples.
 */
const NAME = /(?:password|passwd|(?<!\$\{)secret|token|api[_-]?key)\\{0,16}["']?\s{0,8}(?!:-default\})[=:]\s{0,8}/gi;
/** The name of a header with cookies, also as an element of a list of names and values. */
const COOKIE = /cookie(?:\\{0,16}["']\s{0,8}[=:,]|\s{0,8}[=:])\s{0,8}/gi;

/** Shorter values are words such as `no`. */
const SHORTEST_VALUE = 4;
const LONGEST_VALUE = 8 * 1024;

/** Adds the values that stand after a name: a quoted one, the quoted ones of a list, or the one that `unquotedAt` finds. */
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

function spanOf(pattern: RegExp, text: string, at: number): Span {
  pattern.lastIndex = at;
  return { start: at, end: at + (pattern.exec(text)?.[0].length ?? 0) };
}

const WORD = /[^\s"',;]{0,8192}/y;
/** Cookies without quotes around them reach to the end of the line, or of the string that the line with the header is in. */
const COOKIES = /[^\s=;,]{1,256}=(?:(?!\\{0,16}["']\s{0,8}(?:[,}\])]|$))[^\r\n])*/my;

/** The position behind all of these characters from `at` on. */
function skip(text: string, at: number, characters: string): number {
  let end = at;
  while (end < text.length && characters.includes(text[end] ?? '')) end += 1;
  return end;
}
