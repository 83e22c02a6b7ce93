import { LOGIN_MS } from '../sealed-texts.js';

/** Something that was sealed for a user for the time of a login. `until` is in milliseconds since 1970. */
interface SealedForUser {
  readonly principal: string;
  readonly until?: number;
}

/** The users who were removed lately, because an address or a page from before could store a login afterwards. */
export class ForgottenUsers {
  readonly #now: () => number;
  /** By principal, the latest end of texts that were sealed before, in milliseconds since 1970. The earliest end comes first. */
  readonly #ends = new Map<string, number>();

  /** `now` is in milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  forget(principal: string): void {
    const now = this.#now();
    for (const [each, end] of this.#ends) if (end < now) this.#ends.delete(each);
    this.#ends.set(principal, now + LOGIN_MS);
  }

  /** Whether this was sealed before its user was removed. */
  has({ principal, until = 0 }: SealedForUser): boolean {
    return until <= (this.#ends.get(principal) ?? Number.NEGATIVE_INFINITY);
  }
}
