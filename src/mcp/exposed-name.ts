/** Hosts put a prefix of their own before a name and then allow 60 or 64 characters in all. */
const MAX_LENGTH = 48;
/** Digits of a hash that tell apart what would otherwise look the same. */
export const HASH_LENGTH = 8;
const SEPARATOR = '__';
const FORBIDDEN = /[^A-Za-z0-9_-]+/g;

/** SHA-256 of a text, in lower-case hexadecimal. */
export type Sha256 = (text: string) => string;

/** HMAC-SHA-256 of a text, or the beginning of it, in characters that may stand in a name. */
export type Hmac = (text: string) => string;

/**
 * The name under which a client sees `original` of the server `key`.
 *
 * A function of prefix, key and original alone, so that no server ever renames another's tools. A name that is too long, or has
 * characters that model APIs refuse, is shortened and ends in `_` and eight digits of a hash.
 */
export function exposedName(key: string, prefix: string, original: string, sha256: Sha256): string {
  const full = prefix === '' ? original : `${prefix}${SEPARATOR}${original}`;
  const clean = full.replace(FORBIDDEN, '_');
  if (clean === full && full.length <= MAX_LENGTH && full !== '') return full;
  const hash = sha256(`${key}\0${original}`).slice(0, HASH_LENGTH);
  return `${clean.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}_${hash}`;
}

/** Splits at the first separator; no prefix holds one, so what stands before it can only be a prefix. */
export function splitExposedName(name: string): { prefix: string; original: string } | undefined {
  const at = name.indexOf(SEPARATOR);
  return at <= 0 ? undefined : { prefix: name.slice(0, at), original: name.slice(at + SEPARATOR.length) };
}
