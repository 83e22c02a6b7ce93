import { NewestMap } from '../../wire/io/newest-map.js';
import { type HttpRefusal, retryAfter } from './http-refusal.js';

export interface RequestRate {
  readonly requestsPerSecond: number;
  readonly requestBurst: number;
}

/** Limit of the principals whose rates are known. The one that has been idle longest is forgotten. */
const MAX_PRINCIPALS = 10_000;

/** Limits the requests of each principal. The sessions of a principal share its limit. */
export class RequestRates {
  readonly #rate: RequestRate;
  /** Buckets by principal, the least recently used first. */
  readonly #buckets = new NewestMap<string, FairBucket>(MAX_PRINCIPALS);

  constructor(rate: RequestRate) {
    this.#rate = rate;
  }

  /**
   * Counts a request. `sender` is the id of the session, or a name for all requests without one. `parts` is the number of
   * gateways that share the limit of this principal.
   */
  refuse(principal: string, sender: string, now: number, parts = 1): HttpRefusal | undefined {
    let bucket = this.#buckets.get(principal);
    if (bucket === undefined || bucket.parts !== parts) {
      const { requestBurst: burst, requestsPerSecond: perSecond } = this.#rate;
      bucket = new FairBucket({ burst: Math.max(1, burst / parts), perSecond: perSecond / parts, now, parts });
    }
    this.#buckets.set(principal, bucket);
    const waitMs = bucket.take(sender, now);
    return waitMs === 0 ? undefined : { status: 429, message: 'Too many requests', headers: retryAfter(waitMs) };
  }
}

/** Part of the burst that is added for senders that stay within their shares. */
const RESERVE = 1 / 2;

interface Share {
  tokens: number;
  filledAt: number;
}

/**
 * A token bucket that several senders share: a burst, then a number of requests per second. Times are milliseconds on a monotonic clock.
 *
 * A single sender may use the whole bucket. Each of several senders is sure of an equal share of the rate, and may also use the tokens that
 * the others leave. Only requests within a share may use the reserve, so a flood empties the bucket for its own sender and not for the
 * others. The rate is divided by one share more than there are senders, and this share refills the reserve for the next sender.
 */
export class FairBucket {
  readonly #reserve: number;
  readonly #capacity: number;
  readonly #perMs: number;
  #tokens: number;
  #filledAt: number;
  /** Shares of the senders that used tokens lately, least recently used first. */
  readonly #shares = new Map<string, Share>();

  /** Number of gateways among which the whole rate is divided. */
  readonly parts: number;

  constructor({ burst, perSecond, now, parts = 1 }: { burst: number; perSecond: number; now: number; parts?: number }) {
    this.parts = parts;
    this.#reserve = Math.max(1, burst * RESERVE);
    this.#capacity = burst + this.#reserve;
    this.#perMs = perSecond / 1_000;
    this.#tokens = this.#capacity;
    this.#filledAt = now;
  }

  get senders(): number {
    return this.#shares.size;
  }

  /** Takes a token and returns 0, or returns the milliseconds until the sender may take one. */
  take(sender: string, now: number): number {
    this.#tokens = Math.min(this.#capacity, this.#tokens + (now - this.#filledAt) * this.#perMs);
    this.#filledAt = now;
    const others = this.#shares.size - (this.#shares.has(sender) ? 1 : 0);
    const shares = others + 2;
    const sharePerMs = this.#perMs / shares;
    // Each further sender makes the shares smaller, so that many senders together cannot empty the reserve.
    const most = Math.max(1, this.#reserve / 2 / shares);
    const share = this.#shareOf(sender, now, sharePerMs, most);
    this.#forget(now - most / sharePerMs);

    const isWithinShare = share.tokens >= 1 && this.#tokens >= 1;
    if (!isWithinShare && this.#tokens < this.#reserve + 1) {
      const ofShare = Math.max((1 - share.tokens) / sharePerMs, (1 - this.#tokens) / this.#perMs);
      return Math.min(ofShare, (this.#reserve + 1 - this.#tokens) / this.#perMs);
    }
    this.#tokens -= 1;
    share.tokens = Math.max(0, share.tokens - 1);
    return 0;
  }

  #shareOf(sender: string, now: number, perMs: number, most: number): Share {
    const { tokens, filledAt } = this.#shares.get(sender) ?? { tokens: most, filledAt: now };
    const share = { tokens: Math.min(most, tokens + (now - filledAt) * perMs), filledAt: now };
    this.#shares.delete(sender);
    this.#shares.set(sender, share);
    return share;
  }

  /** Forgets the shares that were last used before this time, because they are as full as the share of a new sender. */
  #forget(before: number): void {
    for (const [sender, { filledAt }] of this.#shares) {
      if (filledAt > before) return;
      this.#shares.delete(sender);
    }
  }
}

/** Limit of the addresses, because a client may have many. The oldest entries are dropped. */
const MAX_ADDRESSES = 4_096;

/** Counts failures per address in a time window that starts with the first failure. */
export class FailureWindow {
  readonly #limit: number;
  readonly #windowMs: number;
  /** Ordered by `since`, oldest first. */
  readonly #failures = new Map<string, { readonly since: number; count: number }>();

  constructor({ limit, windowMs }: { limit: number; windowMs: number }) {
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  /** Counts a failure. Returns 0, or the milliseconds for which an address over the limit has to wait. */
  count(address: string, now: number): number {
    this.#forget(now);
    const failure = this.#failures.get(address) ?? { since: now, count: 0 };
    failure.count += 1;
    this.#failures.set(address, failure);
    return failure.count > this.#limit ? failure.since + this.#windowMs - now : 0;
  }

  #forget(now: number): void {
    for (const [address, { since }] of this.#failures) {
      if (now - since < this.#windowMs && this.#failures.size < MAX_ADDRESSES) return;
      this.#failures.delete(address);
    }
  }
}
