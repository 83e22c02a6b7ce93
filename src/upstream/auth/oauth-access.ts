import { errorMessage } from '../../host/errors/error-text.js';
import { createFetch } from '../../host/http/fetch.js';
import { RequestError } from '../../host/http/send-request.js';
import type { LoginSettings, RemoteSpec } from '../../spec/server-spec.js';
import { quotedPath } from '../../wire/json/printable.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import {
  type AccessHeaders,
  type AccessRequest,
  asClause,
  type Blocked,
  type Challenge,
  type RemoteAccess,
} from '../http/access.js';
import { type AuthChallenge, oauthChallenge, scopesIn } from './challenge.js';
import type { DpopSession } from './oauth.js';
import {
  type LockedLogin,
  LoginError,
  type LoginId,
  type LoginRecord,
  loginIdOf,
  type StoredTokens,
  type Vault,
  withoutSecret,
} from './vault.js';

export interface OAuthAccessOptions {
  readonly spec: Pick<RemoteSpec, 'url' | 'user' | 'headers' | 'proxy' | 'ca' | 'isInsecure'> & {
    readonly login: LoginSettings;
  };
  readonly vault: Vault;
  readonly clock: Clock;
  /** Redacts tokens in logs, because a server may repeat them. The returned function ends this. */
  readonly keepSecret: (secrets: Readonly<Record<string, string>>) => () => void;
  /** Called after each renewal by this process. `refused` ends the login, at the latest with its token; `failed` is any other fault. */
  readonly onRenewed?: ((server: string, result: RenewalResult) => void) | undefined;
}

export type RenewalResult = 'ok' | 'refused' | 'failed';

/** Tokens are renewed when a fifth of their lifetime is left, but at most this long before their end, in milliseconds. */
const RENEW_BEFORE_MS = 60_000;
const RENEW_SHARE = 0.2;
/** Pause after a renewal that the authorization server did not answer, in milliseconds. It doubles with each failure. */
const RETRY = { firstMs: 1_500, maxMs: 60_000 } as const;
/** Lifetime below which tokens are renewed only when a request needs them, in milliseconds. */
const SHORT_MS = 5_000;
/** Shortest pause between renewals ahead of time, in milliseconds, for any lifetime of the tokens. */
const MIN_PAUSE_MS = 1_000;
/** Longest wait for another process that renews the login, in milliseconds. */
const LOCK_MS = 120_000;
/** Longest time of a timer, in milliseconds, below the limit of Node. */
const MAX_TIMER_MS = 24 * 3_600_000;
/** Time after a renewal within which a refusal of the new token is not answered with another renewal, in milliseconds. */
const REFUSED_AGAIN_MS = 60_000;

/**
 * Access with a login in the vault, which all processes of the user share. Renews the tokens before they expire, and when the
 * server refuses them. No refresh token is used twice, because a renewal holds the lock of the login while it reads the login
 * again, renews it and stores it.
 */
export class OAuthAccess implements RemoteAccess {
  readonly id: LoginId;
  readonly #options: OAuthAccessOptions;
  readonly #url: URL;
  #loading: Promise<void> | undefined;
  #record: LoginRecord | undefined;
  #fault: Error | undefined;
  #renewing: Promise<Blocked | undefined> | undefined;
  /** Number of renewals in a row that threw an error, and the pause after one that may succeed later. */
  #failures = 0;
  #pause: { readonly until: number; readonly error: RequestError } | undefined;
  /** The token of the latest renewal that followed a refusal. */
  #renewedAfterRefusal: string | undefined;
  /** The words of the latest refusal of the server. */
  #words: string | undefined;
  #dpop: { readonly identity: string; readonly session: Promise<DpopSession> } | undefined;
  #release: () => void = () => {};
  #cancel: Cancel = () => {};
  #users = 0;
  readonly #watchers = new Set<(token: string | undefined) => void>();

  constructor(options: OAuthAccessOptions) {
    this.#options = options;
    this.#url = new URL(options.spec.url);
    this.id = loginIdOf(options.spec);
  }

  /** Begins a use. While there are uses, a timer renews the tokens before they expire. The returned function ends the use. */
  use(): () => void {
    this.#users += 1;
    void this.#loaded().then(() => this.#plan());
    return () => {
      this.#users -= 1;
      if (this.#users === 0) this.#cancel();
    };
  }

  async headers(request: AccessRequest): Promise<AccessHeaders | Blocked> {
    await this.#loaded();
    // The keychain may have been unlocked, or the store may be back.
    if (this.#fault !== undefined) await this.reread();
    if (this.#fault instanceof RequestError) throw this.#fault;
    if (this.#fault !== undefined) return this.#required(this.#fault.message);
    const { headers } = this.#options.spec;
    if (this.#record?.state === 'expired') return this.#expired();
    const { tokens } = this.#record ?? {};
    // Before it expires, the token is valid, and a timer renews it.
    if (tokens !== undefined && this.#canRenew && isOver(tokens)) {
      const blocked = await this.#renew(tokens.access_token, 'ahead');
      if (blocked !== undefined) return blocked;
    }
    const current = this.#record?.state === 'logged_in' ? this.#record.tokens : undefined;
    return current === undefined ? headers : { ...headers, ...(await this.#authorization(current, request)) };
  }

  async rejected(challenge: Challenge, used: AccessHeaders, request: AccessRequest): Promise<'again' | Blocked> {
    const asked = oauthChallenge(challenge.authenticate);
    const session = await this.#dpop?.session;
    if (challenge.nonce !== undefined && session !== undefined && asked?.params.error === 'use_dpop_nonce') {
      session.rememberNonce(request.url, challenge.nonce);
      return 'again';
    }
    this.#words = challenge.words;
    if (challenge.status === 403) return await this.#forbidden(asked, challenge.words);
    const token = used.authorization?.replace(/^\S+ +/, '');
    const { tokens } = this.#record ?? {};
    // Another request or process has renewed the login meanwhile.
    if (tokens !== undefined && tokens.access_token !== token && this.#record?.state === 'logged_in') return 'again';
    return (await this.#renew(token, 'refused', asked)) ?? 'again';
  }

  /** Reads the login again. Resolves with whether a login, a logout or a fault came since. Calls find an expiry themselves. */
  async reread(): Promise<boolean> {
    await this.#loaded();
    const identity = this.#record?.identity;
    const fault = this.#fault;
    // Requests do not wait for this reading, because the store may be slow.
    await this.#load();
    return identity !== this.#record?.identity || fault?.message !== this.#fault?.message;
  }

  /** Calls `onOver` once when this token is replaced, or ends. The returned function stops that. */
  onceOver(token: string, onOver: () => void): () => void {
    const { expiresAt } = this.#record?.tokens ?? {};
    let cancel: Cancel = () => {};
    const end = () => {
      cancel();
      this.#watchers.delete(watch);
    };
    const watch = (now: string | undefined) => {
      if (now === token && !(expiresAt !== undefined && Date.now() >= expiresAt)) return;
      end();
      onOver();
    };
    const plan = () => {
      const waitMs = (expiresAt ?? Number.POSITIVE_INFINITY) - Date.now();
      cancel = this.#options.clock.schedule(Math.min(Math.max(waitMs, 0), MAX_TIMER_MS), () => {
        plan();
        watch(this.#record?.tokens?.access_token);
      });
    };
    this.#watchers.add(watch);
    if (expiresAt !== undefined) plan();
    return end;
  }

  get isLoggedIn(): boolean {
    return this.#record?.state === 'logged_in';
  }

  /** The reason why no process may be started, if the present token has ended; otherwise `undefined`. */
  get tokenOver(): string | undefined {
    const { tokens } = this.#record ?? {};
    return tokens !== undefined && isOver(tokens) ? this.#expired().because : undefined;
  }

  get #canRenew(): boolean {
    return this.#record?.tokens?.refresh_token !== undefined || this.#options.spec.login.grant === 'client_credentials';
  }

  #loaded(): Promise<void> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  async #load(): Promise<void> {
    try {
      this.#take(await this.#options.vault.read(this.id));
    } catch (error) {
      // A store that is away says nothing about the login, whose token stays valid.
      if (!(error instanceof RequestError) || this.#record === undefined) this.#fault = error as Error;
    }
  }

  #take(record: LoginRecord | undefined): void {
    const { access_token = '', refresh_token = '' } = record?.tokens ?? {};
    const { client_secret = '' } = record?.client ?? {};
    const release = this.#options.keepSecret({ access_token, refresh_token, client_secret });
    this.#release();
    this.#release = release;
    this.#record = record;
    this.#fault = undefined;
    this.#plan();
    for (const watch of [...this.#watchers]) watch(record?.tokens?.access_token);
  }

  #plan(pauseMs = MIN_PAUSE_MS): void {
    this.#cancel();
    const { tokens, state } = this.#record ?? {};
    if (this.#users === 0 || tokens?.expiresAt === undefined || state !== 'logged_in' || !this.#canRenew) return;
    if (tokens.expiresAt - tokens.obtainedAt < SHORT_MS) return;
    const waitMs = Math.max(renewalTime(tokens) - Date.now(), pauseMs);
    this.#cancel = this.#options.clock.schedule(Math.min(waitMs, MAX_TIMER_MS), () => {
      if (waitMs > MAX_TIMER_MS) this.#plan();
      else void this.#renew(tokens.access_token, 'ahead').catch(() => {});
    });
  }

  async #authorization(tokens: StoredTokens, { method, url }: AccessRequest): Promise<AccessHeaders> {
    if (tokens.token_type.toLowerCase() !== 'dpop') return { authorization: `Bearer ${tokens.access_token}` };
    const { identity = '', dpopKey } = this.#record ?? {};
    if (this.#dpop?.identity !== identity)
      this.#dpop = {
        identity,
        session: import('./oauth.js').then(async ({ openDpop }) => (await openDpop(dpopKey)).session),
      };
    const session = await this.#dpop.session;
    const dpop = await session.buildProof({ htm: method, htu: url, accessToken: tokens.access_token });
    return { authorization: `DPoP ${tokens.access_token}`, dpop };
  }

  /** Stores the scopes that a call lacks, because a renewal cannot add them. The next login asks for them. */
  async #forbidden(asked: AuthChallenge | undefined, words: string | undefined): Promise<Blocked> {
    const { tokens, requestedScopes = [] } = this.#record ?? {};
    const granted = tokens?.scope === undefined ? requestedScopes : scopesIn(tokens.scope);
    const wanted = asked?.params.error === 'insufficient_scope' ? scopesIn(asked.params.scope) : [];
    const missing = wanted.filter((scope) => !granted.includes(scope));
    if (this.#record === undefined || missing.length === 0) {
      const because = wanted.length > 0 ? ', although the login has the scopes that it asks for' : '';
      return { blocked: 'refused', because: `it answers HTTP 403${because}${asClause(words)}` };
    }
    const note = this.#change(async (record) => {
      if (record === undefined) return undefined;
      const all = new Set([...(record.missingScopes ?? []), ...missing]);
      return { ...record, missingScopes: [...all] };
    });
    // Without the stored scopes, `trunkline login --scope` still works.
    await note.catch(() => {});
    const list = missing.map((scope) => `\`${scope}\``).join(', ');
    const next = this.id.user === undefined ? this.#command : 'the next login of this user';
    return { blocked: 'scope_missing', because: `this call needs the scope ${list}; ${next} asks for it` };
  }

  /**
   * Renews the tokens, unless another process has already replaced the token `stale`. Resolves with `undefined` if the login has a usable
   * token then. Rejects with a `RequestError` if the authorization server does not answer. Callers at the same time share one renewal.
   */
  #renew(stale: string | undefined, why: 'ahead' | 'refused', asked?: AuthChallenge): Promise<Blocked | undefined> {
    this.#renewing ??= this.#renewOnce(stale, why, asked).finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  async #renewOnce(
    stale: string | undefined,
    why: 'ahead' | 'refused',
    asked: AuthChallenge | undefined,
  ): Promise<Blocked | undefined> {
    // The server may be out of order, so the login stays.
    if (why === 'refused' && this.#isRefusedAgain(this.#record?.tokens))
      return this.#required('it does not accept a token that was renewed because it did not accept the one before');
    if (this.#pause !== undefined && Date.now() < this.#pause.until) throw this.#pause.error;
    try {
      await this.#change(async (record, login) => {
        const tokens = record?.state === 'logged_in' ? record.tokens : undefined;
        if (tokens !== undefined && tokens.access_token !== stale) return undefined;
        const renewed = await this.#renewed(login, record, tokens, why, asked);
        const token = renewed?.tokens?.access_token;
        if (renewed !== undefined) this.#report(token === undefined || token === stale ? 'refused' : 'ok');
        return renewed;
      });
      this.#failures = 0;
    } catch (error) {
      const pauseMs = Math.min(RETRY.firstMs * 2 ** this.#failures, RETRY.maxMs);
      this.#failures += 1;
      this.#plan(pauseMs);
      this.#report('failed');
      if (error instanceof LoginError)
        return this.#required(error.hint === undefined ? error.message : `${error.message}; ${error.hint}`);
      // The request itself was not sent, or was refused.
      const failed = new RequestError(errorMessage(error), false, error);
      this.#pause = { until: Date.now() + pauseMs, error: failed };
      throw failed;
    }
    const { state, tokens } = this.#record ?? {};
    if (state === 'logged_in' && (why === 'ahead' || tokens?.access_token !== stale)) {
      if (why === 'refused' && stale !== undefined) this.#renewedAfterRefusal = tokens?.access_token;
      return undefined;
    }
    if (state === 'expired') return this.#expired();
    return this.#required(`there is no login for it${asClause(this.#words)}`);
  }

  /** Returns the record after a renewal, or `undefined` if nothing changes. */
  async #renewed(
    stored: LockedLogin,
    record: LoginRecord | undefined,
    tokens: StoredTokens | undefined,
    why: 'ahead' | 'refused',
    asked: AuthChallenge | undefined,
  ): Promise<LoginRecord | undefined> {
    const { login } = this.#options.spec;
    if (login.grant === 'client_credentials') return await this.#loggedInAsClient(record, why, asked);
    if (record === undefined || tokens === undefined) return undefined;
    if (tokens.refresh_token === undefined) return why === 'refused' ? expired(record) : undefined;
    const { contextOf, OAuthRefusal, refresh } = await import('./oauth.js');
    // Checks that the login is writable before the refresh token is used, because the answer must not be lost.
    await stored.check();
    try {
      const scopes = tokens.scope === undefined ? record.requestedScopes : scopesIn(tokens.scope);
      const fresh = await refresh(await contextOf(record, login, this.#fetch()), tokens.refresh_token, scopes);
      return { ...record, tokens: { ...fresh, scope: fresh.scope ?? tokens.scope } as StoredTokens };
    } catch (error) {
      if (!(error instanceof OAuthRefusal)) throw error;
      const known = error.isAboutClient ? withForgottenClient(record) : record;
      const refused = { ...known, refusal: error.message };
      if (why === 'refused' || isOver(tokens)) return expired(refused);
      // The access token stays valid until it expires.
      const { refresh_token: _, ...rest } = tokens;
      return { ...refused, tokens: rest };
    }
  }

  #report(result: RenewalResult): void {
    this.#options.onRenewed?.(this.id.server, result);
  }

  #isRefusedAgain(tokens: StoredTokens | undefined): boolean {
    if (tokens === undefined || tokens.access_token !== this.#renewedAfterRefusal) return false;
    return Date.now() - tokens.obtainedAt < REFUSED_AGAIN_MS;
  }

  async #loggedInAsClient(
    before: LoginRecord | undefined,
    why: 'ahead' | 'refused',
    asked: AuthChallenge | undefined,
  ): Promise<LoginRecord> {
    const { login } = this.#options.spec;
    const { clientCredentials, contextOf, discover, scopesFor, openDpop } = await import('./oauth.js');
    const fetch = this.#fetch();
    if (why === 'ahead' && before !== undefined && before.client.client_id === login.clientId)
      return {
        ...before,
        tokens: await clientCredentials(await contextOf(before, login, fetch), before.requestedScopes),
      };
    const found = await discover(this.#url, asked, login, fetch, { before });
    const scopes = scopesFor(found, login, before);
    const client = {
      client_id: login.clientId ?? '',
      ...(login.clientSecret && { client_secret: login.clientSecret }),
      isRegistered: false,
    };
    const dpop = found.wantsDpop ? await openDpop(before?.dpopKey) : undefined;
    const context = { ...found, client, settings: login, dpop: dpop?.session, fetch };
    const tokens = await clientCredentials(context, scopes);
    const { issuer, metadata, resource } = found;
    return {
      ...this.id,
      ...{ state: 'logged_in', identity: before?.identity ?? client.client_id, issuer, tokens },
      client: withoutSecret(client),
      requestedScopes: scopes,
      ...(metadata && { metadata }),
      ...(resource !== undefined && { resource }),
      ...(dpop && { dpopKey: dpop.key }),
    };
  }

  #fetch() {
    return loginFetch(this.#options.clock, this.#options.spec);
  }

  /** Changes the login under its lock. `change` gets the stored login. If it returns `undefined`, nothing changes. */
  async #change(
    change: (record: LoginRecord | undefined, login: LockedLogin) => Promise<LoginRecord | undefined>,
  ): Promise<void> {
    await this.#options.vault.locked(this.id, AbortSignal.timeout(LOCK_MS), async (login) => {
      const record = await login.read();
      const changed = await change(record, login);
      this.#take(changed === undefined ? record : await login.write(changed));
    });
  }

  #expired(): Blocked {
    const { refusal } = this.#record ?? {};
    const words = refusal === undefined ? '' : ` (the authorization server answered ${refusal})`;
    return this.#required(`its login has expired or was revoked${words}`);
  }

  /**
   * Returns `login_required`. Names the command that logs in, unless the client gets its tokens without a person, or a user logs in
   * on a page.
   */
  #required(because: string): Blocked {
    const hasCommand = this.#options.spec.login.grant === 'authorization_code' && this.id.user === undefined;
    return { blocked: 'login_required', because: hasCommand ? `${because}; ${this.#command} logs in` : because };
  }

  get #command(): string {
    return `\`${loginCommand(this.id)}\``;
  }
}

/** Makes the `fetch` for the metadata and tokens of one server. Sends the `User-Agent` that is configured for the server. */
export function loginFetch(clock: Clock, spec: OAuthAccessOptions['spec']): ReturnType<typeof createFetch> {
  const { url, proxy, ca, isInsecure, login } = spec;
  const agent = spec.headers['user-agent'];
  const headers = { ...(agent !== undefined && { 'user-agent': agent }), ...login.headers };
  return createFetch({ clock, server: new URL(url), proxy, ca, isInsecure, headers });
}

/** Removes the redirect URI of a registered client, because the next login then registers another client. */
export function withForgottenClient(record: LoginRecord): LoginRecord {
  const { redirectUri: _, ...client } = record.client;
  return record.client.isRegistered ? { ...record, client } : record;
}

function loginCommand({ server, configFile }: Pick<LoginId, 'server' | 'configFile'>): string {
  return `trunkline login ${server} --config ${quotedPath(configFile, process.platform)}`;
}

function expired({ tokens: _, ...record }: LoginRecord): LoginRecord {
  return { ...record, state: 'expired' };
}

/** Returns the time at which the tokens should be renewed, in milliseconds on the wall clock. */
function renewalTime({ obtainedAt, expiresAt }: StoredTokens): number {
  if (expiresAt === undefined) return Number.POSITIVE_INFINITY;
  return expiresAt - Math.min(RENEW_BEFORE_MS, (expiresAt - obtainedAt) * RENEW_SHARE);
}

function isOver({ expiresAt }: StoredTokens): boolean {
  return expiresAt !== undefined && Date.now() >= expiresAt;
}
