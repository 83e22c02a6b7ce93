import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { NewestMap } from '../../wire/io/newest-map.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { GuardRefusal } from './guards.js';

/** A session, which a browser tab has opened with the code of a URL. Times are milliseconds on the clock. */
export interface PageSession {
  readonly keyHash: Buffer;
  readonly cookieHash: Buffer;
  readonly since: number;
  usedAt: number;
  readonly onEnd: Set<() => void>;
}

/** The secrets of a new session. Only their hashes are kept. */
interface Opened {
  readonly key: string;
  readonly cookie: string;
}

export type NewUrlReason = 'wanted' | 'used twice' | 'guessed';

export const SESSION_LIMITS = {
  /** Time in which the code of a URL can be used. */
  codeMs: 60_000,
  /** Number of wrong codes that void the code of a URL. */
  wrongCodes: 6,
  /** Time after a voided code in which wrong codes void no other, so that a local program cannot fill the terminal. */
  quietMs: 10_000,
  sessions: 8,
  /** Number of used codes whose second use is noticed. */
  usedCodes: 64,
  idleMs: 60 * 60_000,
  maxMs: 12 * 60 * 60_000,
};

/** One-time codes, and the sessions that they open. All are in memory only, so they end with the command. */
export class PageSessions {
  readonly #clock: Clock;
  readonly #onNewCode: (code: string, reason: NewUrlReason) => void;
  /** The least recently used first. */
  readonly #sessions = new Set<PageSession>();
  /** The sessions that codes have opened, by the hash of the code, also those that have ended. */
  readonly #opened = new NewestMap<string, PageSession>(SESSION_LIMITS.usedCodes);
  /** The code of the latest URL; `undefined` after its use. */
  #code: { readonly hash: Buffer; readonly expiresAt: number; wrong: number } | undefined;
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, onNewCode: (code: string, reason: NewUrlReason) => void) {
    this.#clock = clock;
    this.#onNewCode = onNewCode;
  }

  /** Makes a code, and voids the one before. */
  newCode(): string {
    const code = secret();
    this.#code = { hash: sha256(code), expiresAt: this.#clock.now() + SESSION_LIMITS.codeMs, wrong: 0 };
    return code;
  }

  /** Opens a session. Without a code, asks for a new URL in the terminal. */
  open(code: string | undefined): Opened | GuardRefusal {
    const now = this.#clock.now();
    if (code === undefined) {
      // The URL in the terminal can still be used.
      if (this.#code === undefined || this.#code.expiresAt <= now) this.#renew('wanted');
      return refusal('The terminal in which `trunkline web` runs shows the URL to open.');
    }
    const hash = sha256(code);
    const opened = this.#opened.get(hash.toString('hex'));
    if (opened !== undefined) {
      this.end(opened);
      this.#renew('used twice');
      return refusal(
        'This URL was used before, so the session that it opened has ended. The terminal shows another one.',
      );
    }
    if (this.#code === undefined || !timingSafeEqual(this.#code.hash, hash)) return this.#wrong(now);
    if (this.#code.expiresAt <= now) {
      this.#renew('wanted');
      return refusal('This URL has expired. The terminal in which `trunkline web` runs shows another one.');
    }
    this.#code = undefined;
    const key = secret();
    const cookie = secret();
    const [oldest] = this.#sessions;
    if (this.#sessions.size >= SESSION_LIMITS.sessions && oldest !== undefined) this.end(oldest);
    const hashes = { keyHash: sha256(key), cookieHash: sha256(cookie) };
    const session = { ...hashes, since: now, usedAt: now, onEnd: new Set<() => void>() };
    this.#sessions.add(session);
    this.#opened.set(hash.toString('hex'), session);
    return { key, cookie };
  }

  /** Finds the session with this key and one of these cookies, because other programs can set cookies of the same name. Uses it. */
  find(key: string, cookies: readonly string[]): PageSession | undefined {
    const keyHash = sha256(key);
    const session = [...this.#sessions].find((each) => timingSafeEqual(each.keyHash, keyHash));
    if (session === undefined) return undefined;
    const isCookie = (cookie: string) => timingSafeEqual(sha256(cookie), session.cookieHash);
    return cookies.some(isCookie) && this.use(session) ? session : undefined;
  }

  /** Records a use of the session. Returns whether it goes on, and ends it if it was idle or open for too long. */
  use(session: PageSession): boolean {
    const now = this.#clock.now();
    const { since, usedAt } = session;
    if (now - since >= SESSION_LIMITS.maxMs || now - usedAt >= SESSION_LIMITS.idleMs) this.end(session);
    if (!this.#sessions.delete(session)) return false;
    session.usedAt = now;
    this.#sessions.add(session);
    return true;
  }

  end(session: PageSession): void {
    if (!this.#sessions.delete(session)) return;
    for (const end of session.onEnd) end();
  }

  #wrong(now: number): GuardRefusal {
    const code = this.#code;
    if (code !== undefined && now >= this.#quietUntil) {
      code.wrong += 1;
      if (code.wrong >= SESSION_LIMITS.wrongCodes) {
        this.#quietUntil = now + SESSION_LIMITS.quietMs;
        this.#renew('guessed');
      }
    }
    return refusal('This URL is not valid. Open the one that `trunkline web` has printed last.');
  }

  #renew(reason: NewUrlReason): void {
    this.#onNewCode(this.newCode(), reason);
  }
}

function refusal(message: string): GuardRefusal {
  return { status: 401, message };
}

/** 256 bits, as 43 characters. */
function secret(): string {
  return randomBytes(32).toString('base64url');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
