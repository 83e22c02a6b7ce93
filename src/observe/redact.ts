import type { Span } from '../json/json-text.js';
import { findSecretShapes } from './secret-shapes.js';

/** Removes secrets from a text before it enters a log. */
export type Redact = (text: string) => string;

/** Positions of the secrets in a text. */
interface FoundSecrets {
  /** Values of the configuration or of a client. */
  readonly known: readonly Span[];
  /** Texts that only look like secrets. */
  readonly likely: readonly Span[];
}

export type FindSecrets = (text: string) => FoundSecrets;

/** Replaces each secret. */
export const REDACTED = '[redacted]';

/** Sources that stay known after their last use, because a server may still write a secret of a client that has left. */
const MAX_OUTDATED = 256;

interface Known {
  readonly source: SecretSource;
  /** Number of users that have not released the source. */
  uses: number;
}

/** Collects secrets while the process runs: the log opens before the configuration is read. */
export class KnownSecrets {
  /** By their content. */
  readonly #sources = new Map<string, Known>();
  /** Keys of the sources without users, the longest outdated first. */
  readonly #outdated = new Set<string>();
  /** Absent after a change. */
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
