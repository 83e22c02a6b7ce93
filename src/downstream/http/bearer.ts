import { createHash, timingSafeEqual } from 'node:crypto';
import { FailureWindow, TokenBucket } from './rate-limit.js';
import { type Refusal, retryAfter } from './refusal.js';

export interface BearerCheckOptions {
  /** Empty: no authentication. */
  readonly tokens: readonly string[];
  readonly failedLoginsPerMinute: number;
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
}

/** The principal, which is the hash of the token; or the refusal. */
export type Admission = { readonly principal: string } | { readonly refusal: Refusal };

const MINUTE_MS = 60_000;

/** The same for a missing and a wrong token, so that it tells an attacker nothing. */
const UNAUTHORIZED: Refusal = {
  status: 401,
  message: 'A bearer token is required',
  headers: { 'www-authenticate': 'Bearer realm="trunkline"' },
};

/**
 * Authenticates requests by the `Authorization` header and limits their rate.
 *
 * A valid token is accepted even from an address with too many failed logins: all programs on loopback share one
 * address, and any of them could lock the user out. The length of the token prevents guessing.
 */
export class BearerCheck {
  readonly #options: BearerCheckOptions;
  readonly #hashes: readonly Buffer[];
  readonly #failures: FailureWindow;
  /** One for each token, or a single one without authentication. Its size is fixed. */
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(options: BearerCheckOptions) {
    this.#options = options;
    this.#hashes = options.tokens.map(sha256);
    this.#failures = new FailureWindow({ limit: options.failedLoginsPerMinute, windowMs: MINUTE_MS });
  }

  admit(authorization: string | undefined, address: string, now: number): Admission {
    const principal = this.#hashes.length === 0 ? 'anonymous' : this.#principal(authorization);
    if (principal !== undefined) return this.#pace(principal, now);
    // A request without the header is no guess: clients find out this way that a token is needed.
    const waitMs = authorization === undefined ? 0 : this.#failures.count(address, now);
    if (waitMs === 0) return { refusal: UNAUTHORIZED };
    return { refusal: { status: 429, message: 'Too many failed logins', headers: retryAfter(waitMs) } };
  }

  #principal(authorization: string | undefined): string | undefined {
    const presented = sha256(/^Bearer +([!-~]+) *$/i.exec(authorization ?? '')?.[1] ?? '');
    let found: Buffer | undefined;
    // Hashes have equal lengths, and all are compared, so that the time tells nothing about the tokens.
    for (const hash of this.#hashes) {
      if (timingSafeEqual(hash, presented)) found = hash;
    }
    return found?.toString('hex');
  }

  #pace(principal: string, now: number): Admission {
    const { requestBurst: capacity, requestsPerSecond: perSecond } = this.#options;
    const bucket = this.#buckets.get(principal) ?? new TokenBucket({ capacity, perSecond, now });
    this.#buckets.set(principal, bucket);
    const waitMs = bucket.take(now);
    if (waitMs === 0) return { principal };
    return { refusal: { status: 429, message: 'Too many requests', headers: retryAfter(waitMs) } };
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
