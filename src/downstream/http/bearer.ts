import { createHash, timingSafeEqual } from 'node:crypto';
import { FailureWindow, TokenBucket } from './rate-limit.js';
import { type Refusal, retryAfter } from './refusal.js';

export interface BearerCheckOptions {
  /** Empty when nobody has to say who they are. */
  readonly tokens: readonly string[];
  readonly failedLoginsPerMinute: number;
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
}

/** Who asks, by the hash of their token; or why they may not. */
export type Admission = { readonly principal: string } | { readonly refusal: Refusal };

const MINUTE_MS = 60_000;

/** The same whether the token is missing or wrong, so that nothing is learnt from it. */
const UNAUTHORIZED: Refusal = {
  status: 401,
  message: 'A bearer token is required',
  headers: { 'www-authenticate': 'Bearer realm="trunkline"' },
};

/**
 * Tells by the `Authorization` header who asks, and how often they may.
 *
 * A right token is let in even from an address that failed too often: on loopback everybody has the same address, and
 * any local program could lock the user out. What keeps a token from being guessed is its length.
 */
export class BearerCheck {
  readonly #options: BearerCheckOptions;
  readonly #hashes: readonly Buffer[];
  readonly #failures: FailureWindow;
  /** One for each token, and one for all together when there is none: it cannot grow. */
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(options: BearerCheckOptions) {
    this.#options = options;
    this.#hashes = options.tokens.map(sha256);
    this.#failures = new FailureWindow({ limit: options.failedLoginsPerMinute, windowMs: MINUTE_MS });
  }

  admit(authorization: string | undefined, address: string, now: number): Admission {
    const principal = this.#hashes.length === 0 ? 'anonymous' : this.#principal(authorization);
    if (principal !== undefined) return this.#pace(principal, now);
    // Without any header nothing was guessed: that is how clients find out that a token is needed.
    const waitMs = authorization === undefined ? 0 : this.#failures.count(address, now);
    if (waitMs === 0) return { refusal: UNAUTHORIZED };
    return { refusal: { status: 429, message: 'Too many failed logins', headers: retryAfter(waitMs) } };
  }

  #principal(authorization: string | undefined): string | undefined {
    const presented = sha256(/^Bearer +([!-~]+) *$/i.exec(authorization ?? '')?.[1] ?? '');
    let found: Buffer | undefined;
    // All are compared, whichever matches: hashes, as equal lengths and equal times need.
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
