/** Longest exposed name. Hosts add a prefix of their own and then allow 60 or 64 characters in all. */
const MAX_LENGTH = 48;
/** Number of hash digits that make a shortened name unique. */
export const HASH_LENGTH = 8;
const SEPARATOR = '__';
/** A name that may be shortened. Then only the list shows the original name. */
export const SHORTENED = new RegExp(`_[0-9a-f]{${HASH_LENGTH}}$`);
const ALLOWED = /^[A-Za-z0-9_-]+$/;
const FORBIDDEN = /[^A-Za-z0-9_-]+/g;

/** Returns the SHA-256 of a text in lower-case hexadecimal. */
export type Sha256 = (text: string) => string;

/**
 * Returns the exposed name, under which clients see `original` of the server `key`.
 *
 * The exposed name depends only on prefix, key and original name, so that no server renames another server's tools. A name that is too
 * long, or contains characters that model APIs reject, is shortened and ends in `_` and eight digits of a hash.
 */
export function exposedName(key: string, prefix: string, original: string, sha256: Sha256): string {
  const full = prefix === '' ? original : `${prefix}${SEPARATOR}${original}`;
  if (full.length <= MAX_LENGTH && ALLOWED.test(full)) return full;
  const clean = full.replace(FORBIDDEN, '_');
  const hash = sha256(`${key}\0${original}`).slice(0, HASH_LENGTH);
  return `${clean.slice(0, MAX_LENGTH - HASH_LENGTH - 1)}_${hash}`;
}

/** Splits an exposed name at the first separator. No prefix contains a separator. */
export function splitExposedName(name: string): { prefix: string; original: string } | undefined {
  const at = name.indexOf(SEPARATOR);
  return at <= 0 ? undefined : { prefix: name.slice(0, at), original: name.slice(at + SEPARATOR.length) };
}

/** The key of a server in its own file. The server of a project has more after an `@`, because its key is that of another server, too. */
export function ownKeyOf(key: string): string {
  return key.replace(/@.*$/, '');
}
