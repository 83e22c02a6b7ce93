import { IssuerDocument, type IssuerMetadata, readMetadata } from '../../downstream/users/issuer-document.js';
import { errorMessage } from '../../host/errors/error-text.js';
import { readTextFile } from '../../host/files/whole-file.js';
import { createFetch } from '../../host/http/fetch.js';
import { RequestError } from '../../host/http/send-request.js';
import type { RemoteSpec } from '../../spec/server-spec.js';
import { oauthChallenge } from '../../upstream/auth/challenge.js';
import { type AccessHeaders, asClause, type Blocked, type Challenge } from '../../upstream/http/access.js';
import { NewestMap } from '../../wire/io/newest-map.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { ExchangeRefused, exchanged, type GrantOptions } from './grants.js';
import { SubjectTokens } from './subject-tokens.js';

interface ExchangedTokensOptions {
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly logger: { warn(facts: object, text: string): void };
  /** Keeps a token out of logs, because a server may repeat it. The returned function ends this. */
  readonly keepSecret: (token: string) => () => void;
  /** Called when a refusal of a server's token may be over, because the user has come with another token. */
  readonly onRetry: (server: string, user: string) => void;
}

type ExchangeSpec = GrantOptions['spec'];

/** A token for a server. Times are in milliseconds since 1970. */
interface Exchanged {
  readonly token: string;
  readonly obtainedAt: number;
  /** From here on another token is asked for, and this one is used only if the provider is away. */
  readonly renewAt: number;
  readonly endsAt: number;
  forget(): void;
}

/** The last exchange that gave no token, and the number of those in a row. */
interface Failed {
  /** The token that was to be exchanged. */
  readonly subject: string;
  readonly outcome: Blocked | RequestError;
  readonly until: number;
  readonly count: number;
}

/** An exchange that goes on. After `abandon`, nothing of its answer is kept. */
interface Running {
  readonly done: Promise<Exchanged | Blocked>;
  abandon(): void;
}

/** Tokens are replaced when a fifth of their lifetime is left, but at most this long before their end, in milliseconds. */
const RENEW_BEFORE_MS = 60_000;
const RENEW_SHARE = 0.2;
/** Lifetime of a token whose provider names none, in milliseconds. */
const UNKNOWN_LIFETIME_MS = 300_000;
/** Pause after an exchange that gave no token, in milliseconds. It doubles each time. */
const PAUSE = { firstMs: 1_500, maxMs: 60_000 } as const;
/** Time after an exchange within which a refusal of the token is not answered with another exchange, in milliseconds. */
const REFUSED_AGAIN_MS = 60_000;
/** Limits of the tokens and of the failed exchanges that are remembered. */
const MAX_KEPT = 10_000;

/**
 * The tokens that providers gave for servers, in memory until shortly before they end: one for each user, server and setting. Several
 * connections and calls of a user share one exchange.
 */
export class ExchangedTokens {
  readonly subjects: SubjectTokens;
  readonly #options: ExchangedTokensOptions;
  readonly #tokens = new NewestMap<string, Exchanged>(MAX_KEPT);
  readonly #running = new Map<string, Running>();
  readonly #failed = new NewestMap<string, Failed>(MAX_KEPT);
  /** The servers that wait for another token of a user, with the keys of their tokens, by principal. */
  readonly #awaiting = new NewestMap<string, Map<string, string>>(MAX_KEPT);
  /** The retries that wait for the end of a pause, by the keys of the tokens. */
  readonly #retries = new Map<string, Cancel>();
  readonly #metadata = new Map<string, IssuerDocument<IssuerMetadata>>();

  constructor(options: ExchangedTokensOptions) {
    this.#options = options;
    this.subjects = new SubjectTokens({ now: options.now, onNews: (principal) => this.#retry(principal) });
  }

  accessTo(spec: RemoteSpec): ExchangeAccess {
    const { exchange } = spec;
    if (exchange === undefined) throw new Error(`${spec.key} has no \`auth.exchange\``);
    return new ExchangeAccess(this, { ...spec, exchange });
  }

  /** Repeats the refused exchanges of a user, because the user has sent another token. */
  #retry(principal: string): void {
    const servers = this.#awaiting.get(principal) ?? [];
    this.#awaiting.delete(principal);
    for (const [server, key] of servers) this.#retryAfterPause(server, principal, key);
  }

  #retryAfterPause(server: string, principal: string, key: string): void {
    if (this.#retries.has(key)) return;
    const { clock, now, onRetry } = this.#options;
    const failed = this.#failed.get(key);
    const waitMs = failed !== undefined && pausesForAll(failed) ? failed.until - now() : 0;
    const retry = () => {
      this.#retries.delete(key);
      this.#awaiting.get(principal)?.delete(server);
      onRetry(server, principal);
    };
    if (waitMs > 0) this.#retries.set(key, clock.schedule(waitMs, retry));
    else retry();
  }

  /** Returns a token for a server, another one than `refused`. Rejects with a `RequestError` if a provider is away. */
  async get(spec: ExchangeSpec, refused?: string): Promise<Exchanged | Blocked> {
    const key = `${prefixOf(spec.user)}${JSON.stringify([spec.url, spec.exchange])}`;
    const known = this.#tokens.get(key);
    const usable = known?.token === refused ? undefined : known;
    const now = this.#options.now();
    if (usable !== undefined && now < usable.renewAt) return usable;
    const isValid = usable !== undefined && now < usable.endsAt;
    const subject = await this.#subjectOf(spec);
    if ('blocked' in subject) return isValid ? usable : this.#blocked(key, spec, subject);
    try {
      return await (this.#running.get(key)?.done ?? this.#begin(key, spec, subject.token));
    } catch (error) {
      if (isValid && error instanceof RequestError) return usable;
      throw error;
    }
  }

  /** Whether a token is so new that another one would be refused, too. */
  isNew({ obtainedAt }: Exchanged): boolean {
    return this.#options.now() - obtainedAt < REFUSED_AGAIN_MS;
  }

  /** Forgets all of a user, who may come again with another token. */
  forget(principal: string): void {
    const prefix = prefixOf(principal);
    const ofUser = (keys: Iterable<string>) => [...keys].filter((key) => key.startsWith(prefix));
    this.subjects.forget(principal);
    this.#awaiting.delete(principal);
    for (const key of ofUser(this.#tokens.keys())) this.#tokens.get(key)?.forget();
    for (const key of ofUser(this.#failed.keys())) this.#failed.delete(key);
    for (const key of ofUser(this.#retries.keys())) {
      this.#retries.get(key)?.();
      this.#retries.delete(key);
    }
    for (const key of ofUser(this.#running.keys())) {
      this.#running.get(key)?.abandon();
      this.#running.delete(key);
    }
  }

  close(): void {
    for (const cancel of this.#retries.values()) cancel();
    for (const { forget } of [...this.#tokens.values()]) forget();
  }

  async #subjectOf({ user, exchange: { subjectTokenFile } }: ExchangeSpec): Promise<{ token: string } | Blocked> {
    if (subjectTokenFile !== undefined) {
      const token = readTextFile(subjectTokenFile)?.trim();
      return token
        ? { token }
        : loginRequired(`the file ${subjectTokenFile} of \`subjectTokenFile\` has no token that can be read`);
    }
    if (user === undefined)
      return loginRequired(
        'it gets a token of the user, and this client has no user; use it over HTTP with `gateway.http.auth.jwt`',
      );
    const token = this.subjects.of(user);
    return token === undefined
      ? loginRequired('the token of the user has ended; the next request of the user brings another')
      : { token };
  }

  #begin(key: string, spec: ExchangeSpec, subject: string): Promise<Exchanged | Blocked> {
    let isForgotten = false;
    const abandon = () => {
      isForgotten = true;
    };
    const done = this.#exchange(key, spec, subject, () => isForgotten).finally(() => {
      if (this.#running.get(key)?.done === done) this.#running.delete(key);
    });
    this.#running.set(key, { done, abandon });
    return done;
  }

  async #exchange(
    key: string,
    spec: ExchangeSpec,
    subject: string,
    isForgotten: () => boolean,
  ): Promise<Exchanged | Blocked> {
    const { now, logger } = this.#options;
    const before = this.#failed.get(key);
    if (before !== undefined && (before.subject === subject || pausesForAll(before)) && now() < before.until) {
      if (before.outcome instanceof RequestError) throw before.outcome;
      return this.#blocked(key, spec, before.outcome);
    }
    try {
      const { access_token: token, expiresAt } = await exchanged({
        spec,
        subject,
        metadataOf: (issuer) => this.#metadataOf(issuer, spec),
        fetchFor: (server) => this.#fetchFor(server, spec),
      });
      if (isForgotten()) return USER_FORGOTTEN;
      this.#failed.delete(key);
      return this.#keep(key, token, expiresAt);
    } catch (error) {
      if (isForgotten()) return USER_FORGOTTEN;
      const isFinal = error instanceof ExchangeRefused;
      const outcome = isFinal
        ? loginRequired(error.message)
        : new RequestError(`the identity provider gives no token for it: ${errorMessage(error)}`, false, error);
      const count = (before?.count ?? 0) + 1;
      const pauseMs = Math.min(PAUSE.firstMs * 2 ** (count - 1), PAUSE.maxMs);
      this.#failed.set(key, { subject, outcome, until: now() + pauseMs, count });
      if (count === 1) logger.warn({ server: spec.key, reason: errorMessage(error) }, 'a token cannot be exchanged');
      if (outcome instanceof RequestError) throw outcome;
      // The provider has taken the access back.
      this.#tokens.get(key)?.forget();
      return this.#blocked(key, spec, outcome);
    }
  }

  #keep(key: string, token: string, expiresAt: number | undefined): Exchanged {
    const { clock, now, keepSecret } = this.#options;
    const obtainedAt = now();
    const endsAt = expiresAt ?? obtainedAt + UNKNOWN_LIFETIME_MS;
    const lifetimeMs = endsAt - obtainedAt;
    this.#tokens.get(key)?.forget();
    const release = keepSecret(token);
    let cancel: Cancel = () => {};
    const kept: Exchanged = {
      token,
      obtainedAt,
      endsAt,
      renewAt: endsAt - Math.min(RENEW_BEFORE_MS, lifetimeMs * RENEW_SHARE),
      forget: () => {
        cancel();
        release();
        if (this.#tokens.get(key) === kept) this.#tokens.delete(key);
      },
    };
    cancel = clock.schedule(Math.min(lifetimeMs, MAX_TIMER_MS), () => kept.forget());
    this.#tokens.set(key, kept);
    return kept;
  }

  #blocked(key: string, { key: server, user }: ExchangeSpec, blocked: Blocked): Blocked {
    if (user !== undefined) this.#awaiting.set(user, (this.#awaiting.get(user) ?? new Map()).set(server, key));
    return blocked;
  }

  #metadataOf(issuer: string, spec: ExchangeSpec): IssuerDocument<IssuerMetadata> {
    const { clock, logger } = this.#options;
    const known = this.#metadata.get(issuer);
    if (known !== undefined) return known;
    const read = () => readMetadata(issuer, this.#fetchFor(issuer, spec));
    const onFault = (reason: string | undefined) => {
      if (reason !== undefined) logger.warn({ issuer, reason }, 'the metadata of an identity provider cannot be read');
    };
    const document = new IssuerDocument({ clock, read, onFault });
    this.#metadata.set(issuer, document);
    return document;
  }

  #fetchFor(server: string, { proxy, ca }: ExchangeSpec): ReturnType<typeof createFetch> {
    return createFetch({ clock: this.#options.clock, server: new URL(server), proxy, ca });
  }
}

/**
 * Whether the pause is for every token of the user. The first failure may be the fault of one token; after the second one, a user who
 * takes turns with two tokens would lock the gateway out at the provider otherwise.
 */
function pausesForAll({ count }: Failed): boolean {
  return count > 1;
}

function prefixOf(user: string | undefined): string {
  return `${JSON.stringify(user ?? null)} `;
}

/** Longest time of a timer, in milliseconds. */
const MAX_TIMER_MS = 24 * 3_600_000;

/** Access with a token that a provider has given for the user of the connection. */
class ExchangeAccess {
  readonly #tokens: ExchangedTokens;
  readonly #spec: ExchangeSpec;

  constructor(tokens: ExchangedTokens, spec: ExchangeSpec) {
    this.#tokens = tokens;
    this.#spec = spec;
  }

  async headers(): Promise<AccessHeaders | Blocked> {
    const found = await this.#tokens.get(this.#spec);
    return 'blocked' in found ? found : { ...this.#spec.headers, authorization: `Bearer ${found.token}` };
  }

  async rejected({ status, words, authenticate }: Challenge, used: AccessHeaders): Promise<'again' | Blocked> {
    const { params } = oauthChallenge(authenticate) ?? {};
    const lacks = params?.error === 'insufficient_scope' ? params.scope : undefined;
    if (status === 403 && lacks !== undefined)
      return {
        blocked: 'refused',
        because: `the token of the user lacks the scope ${lacks}; add it to \`scopes\`${asClause(words)}`,
      };
    if (status === 403)
      return { blocked: 'refused', because: `it answers HTTP 403 to the token of the user${asClause(words)}` };
    const token = used.authorization?.replace(/^Bearer /, '');
    const known = await this.#tokens.get(this.#spec);
    if ('blocked' in known) return known;
    if (known.token !== token) return 'again';
    const fresh = this.#tokens.isNew(known) ? undefined : await this.#tokens.get(this.#spec, token);
    if (fresh !== undefined) return 'blocked' in fresh ? fresh : 'again';
    return loginRequired(
      `it does not accept a token that was just given for it; correct \`audience\` or \`scopes\`${asClause(words)}`,
    );
  }
}

const USER_FORGOTTEN = loginRequired('its user was removed meanwhile; the next request of the user begins anew');

function loginRequired(because: string): Blocked {
  return { blocked: 'login_required', because };
}
