import { createHash, randomBytes } from 'node:crypto';
import { type Keys, openBytes, sealBytes } from '../host/sealed-bytes.js';
import { isRecord, parseJson } from '../wire/json/json-value.js';

/** Time for a login in a browser: for the consent, and for the pages of a provider. */
export const LOGIN_MS = 10 * 60_000;
/** Longest sealed text, in characters. Codes of identity providers have up to two kilobytes. */
const MAX_LENGTH = 8 * 1024;

/**
 * Texts that Trunkline gives to clients and browsers, and gets back unchanged. They are encrypted and signed, so that Trunkline
 * remembers nothing, and any gateway with the same key can open them. Each is for one purpose.
 */
export class SealedTexts {
  readonly #keys: Keys;
  /** Milliseconds since 1970. */
  readonly #now: () => number;

  constructor(keys: Keys, now: () => number) {
    this.#keys = keys;
    this.#now = now;
  }

  /** Seals the members for `ms`; for ever without it. */
  seal(purpose: string, members: object, ms?: number): string {
    const until = ms === undefined ? undefined : this.#now() + ms;
    const bytes = Buffer.from(JSON.stringify({ ...members, until }));
    return sealBytes(this.#keys, bytes, Buffer.from(purpose)).toString('base64url');
  }

  /** Returns the members that were sealed for this purpose, and their end; `undefined` for any other text, and after its time. */
  open<Members extends object>(purpose: string, text: string): (Members & { readonly until?: number }) | undefined {
    if (text.length > MAX_LENGTH) return undefined;
    const bytes = Buffer.from(text, 'base64url');
    // Another spelling of the same bytes would be another name of the same code.
    if (bytes.toString('base64url') !== text) return undefined;
    const opened = openBytes(this.#keys, bytes, Buffer.from(purpose));
    const members = opened && parseJson(opened.toString());
    if (!isRecord(members)) return undefined;
    if (typeof members.until === 'number' && members.until <= this.#now()) return undefined;
    return members as Members;
  }
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** A text that nobody can guess. */
export function randomText(bytes: number): string {
  return randomBytes(bytes).toString('base64url');
}
