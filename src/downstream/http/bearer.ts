import { createHash, timingSafeEqual } from 'node:crypto';
import { FailureWindow } from './rate-limit.js';
import { type Refusal, retryAfter } from './refusal.js';

export interface BearerCheckOptions {
  /** Accepted tokens; empty when no authentication is required. */
  readonly tokens: readonly string[];
  readonly failedLoginsPerMinute: number;
}

/** The principal, which is the hash of its token, or the refusal. */
export type Admission = { readonly principal: string } | { readonly refusal: Refusal };

const MINUTE_MS = 60_000;

/** The same for a missing and for a wrong token, so that it reveals nothing. */
const UNAUTHORIZED: Refusal = {
  status: 401,
  message: 'A bearer token is required',
  headers: { 'www-authenticate': 'Bearer realm="trunkline"' },
};

/**
 * Authenticates requests by the `Authorization` header and limits failed logins.
 *
 * A valid token is accepted even from an address with too many failures: on loopback all clients have the same address,
 * and any local program could lock out the user. The length of the token protects it from being guessed.
 */
export class BearerCheck {
  readonly #hashes: readonly Buffer[];
  readonly #failures: FailureWindow;

  constructor({ tokens, failedLoginsPerMinute: limit }: BearerCheckOptions) {
    this.#hashes = tokens.map(sha256);
    this.#failures = new FailureWindow({ limit, windowMs: MINUTE_MS });
  }

  admit(authorization: string | undefined, address: string, now: number): Admission {
    const principal = this.#hashes.length === 0 ? 'anonymous' : this.#principal(authorization);
    if (principal !== undefined) return { principal };
    // A request without the header is no failed login: clients find out this way that a token is required.
    const waitMs = authorization === undefined ? 0 : this.#failures.count(address, now);
    if (waitMs === 0) return { refusal: UNAUTHORIZED };
    return { refusal: { status: 429, message: 'Too many failed logins', headers: retryAfter(waitMs) } };
  }

  #principal(authorization: string | undefined): string | undefined {
    const presented = sha256(/^Bearer +([!-~]+) *$/i.exec(authorization ?? '')?.[1] ?? '');
    let found: Buffer | undefined;
    // Compares all hashes in constant time, whichever matches; hashes have equal lengths.
    for (const hash of this.#hashes) {
      if (timingSafeEqual(hash, presented)) found = hash;
    }
    return found?.toString('hex');
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
