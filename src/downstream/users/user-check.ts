import { createHash } from 'node:crypto';
import type { HttpConfig, ViewConfig } from '../../config/file/check-file.js';
import { createFetch } from '../../host/http/fetch.js';
import { NewestMap } from '../../wire/io/newest-map.js';
import type { Clock } from '../../wire/timing/clock.js';
import { bearerToken, type CallerOrRefusal, type HttpUsers, METADATA_PATH } from '../http/caller.js';
import { type Caller, endpointOfView, viewAt } from '../http/http-client.js';
import { type HttpRefusal, retryAfter } from '../http/http-refusal.js';
import type { User } from '../port.js';
import { IssuerDocument, type IssuerMetadata, readMetadata } from './issuer-document.js';
import { IssuerKeys, KeysMissing } from './issuer-keys.js';
import { CLOCK_TOLERANCE_S, JwtCheck, TokenRefused } from './jwt-check.js';
import { MachineTokens } from './machine-tokens.js';

export interface UserCheckOptions extends Pick<HttpConfig, 'auth' | 'publicUrl'> {
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: { warn(message: string): void; error(message: string): void };
  /** Called with the token of each request of a user that is accepted. A sign-in in a browser is no request. */
  readonly onToken?: (principal: string, token: string) => void;
}

/** Longest time for which the result of a check is used again, in milliseconds. */
const MAX_CACHED_MS = 5 * 60_000;
const MAX_CACHED = 10_000;
/** A token of a machine has at least 43 characters if it was made as the documentation says. Fewer can be guessed. */
const MIN_TOKEN_LENGTH = 32;
const MAX_DESCRIPTION = 200;

const KEYS_MISSING: HttpRefusal = {
  status: 503,
  message: 'Tokens cannot be checked, because the keys of their issuer are not known yet',
  headers: retryAfter(5_000),
};

/**
 * Authenticates users by JWTs of their identity provider, and machines by tokens in a file. There is no limit on wrong
 * tokens, because a token that has expired is no attack, and because all users behind a proxy have one address.
 */
export class UserCheck implements HttpUsers {
  readonly #options: UserCheckOptions;
  readonly #machines: MachineTokens | undefined;
  readonly #jwt: JwtCheck | undefined;
  /** The metadata of the identity provider. Absent if only machines can log in. */
  readonly provider: IssuerDocument<IssuerMetadata> | undefined;
  /** Results by the hash of the token, the least recently used first. `until` is in milliseconds since 1970. */
  readonly #cached = new NewestMap<string, { readonly caller: Caller; readonly until: number }>(MAX_CACHED);

  /** Throws an error for a file of tokens that cannot be used. */
  constructor(options: UserCheckOptions) {
    const { auth: { jwt, tokens, front } = {}, clock, now, log } = options;
    this.#options = options;
    this.#machines =
      tokens === undefined ? undefined : new MachineTokens({ file: tokens, onFault: (it) => log.error(it) });
    if (jwt === undefined) return;
    const { issuer, jwksUri } = jwt;
    const fetchFor = (server: string) => createFetch({ clock, server: new URL(server) });
    const onFault = (fault: string | undefined, areKnown: boolean) => {
      const effect = areKnown ? 'so the last ones stay valid' : 'so users get 503';
      if (fault === undefined) log.warn(`the keys of ${issuer} can be read again`);
      else log.error(`the keys of ${issuer} cannot be read, ${effect}: ${fault}`);
    };
    // A fault of the metadata is a fault of the keys, too, which is reported.
    const read = () => readMetadata(issuer, fetchFor(issuer));
    this.provider = new IssuerDocument({ clock, read, onFault: () => {} });
    const fetch = fetchFor(jwksUri ?? issuer);
    const keys = new IssuerKeys({ jwksUri, metadata: this.provider, clock, fetch, onFault });
    // With a front, no other app has to log in.
    const own = front && { clients: [front.clientId, ...Object.values(front.clientIds ?? {})] };
    this.#jwt = new JwtCheck({ ...own, ...jwt }, keys, now);
    // Read now, so that the first user does not wait.
    void keys.refresh();
  }

  admit(
    authorization: string | undefined,
    _address: string,
    now: number,
    endpoint: string | undefined,
  ): CallerOrRefusal | Promise<CallerOrRefusal> {
    const token = bearerToken(authorization);
    if (token === undefined) return { refusal: this.#unauthorized(endpoint, undefined) };
    const hash = hashOf(token);
    const machine = token.length < MIN_TOKEN_LENGTH ? undefined : this.#machines?.find(hash, now);
    if (machine !== undefined) return { principal: machine.principal, user: machine };
    const known = this.#cachedCaller(hash);
    if (known === undefined) return this.#check(token, hash, endpoint).then((checked) => this.#noted(checked, token));
    return this.#noted(known, token);
  }

  /** The user of a token that came with no request, as that of a sign-in in a browser; `undefined` if it is not accepted. */
  async userOf(token: string): Promise<User | undefined> {
    const hash = hashOf(token);
    const checked = this.#cachedCaller(hash) ?? (await this.#check(token, hash, undefined));
    return 'user' in checked ? checked.user : undefined;
  }

  metadata(path: string | undefined): Readonly<Record<string, unknown>> | undefined {
    const { auth: { jwt, front } = {}, publicUrl = '' } = this.#options;
    if (jwt === undefined) return undefined;
    return {
      resource: `${publicUrl}${path ?? ''}`,
      // The front is the authorization server of clients that the provider does not register.
      authorization_servers: [front === undefined ? jwt.issuer : publicUrl],
      bearer_methods_supported: ['header'],
      ...(jwt.scopes && { scopes_supported: jwt.scopes }),
      resource_name: 'Trunkline',
    };
  }

  #cachedCaller(hash: string): Caller | undefined {
    const found = this.#cached.get(hash);
    if (found === undefined) return undefined;
    this.#cached.delete(hash);
    if (found.until <= this.#options.now()) return undefined;
    this.#cached.set(hash, found);
    return found.caller;
  }

  async #check(token: string, hash: string, endpoint: string | undefined): Promise<CallerOrRefusal> {
    if (this.#jwt === undefined) return { refusal: this.#unauthorized(endpoint, 'no machine has it') };
    try {
      const { user, expiresAt, missing } = await this.#jwt.check(token);
      if (missing.length > 0) return { refusal: this.#forbidden(endpoint, missing) };
      const { clock, now } = this.#options;
      const tokenEndsAt = clock.now() + expiresAt - now() + CLOCK_TOLERANCE_S * 1_000;
      const caller = { principal: user.principal, user, tokenEndsAt };
      this.#cached.set(hash, { caller, until: Math.min(expiresAt, now() + MAX_CACHED_MS) });
      return caller;
    } catch (error) {
      if (error instanceof KeysMissing) return { refusal: KEYS_MISSING };
      if (!(error instanceof TokenRefused)) throw error;
      return { refusal: this.#unauthorized(endpoint, error.message) };
    }
  }

  #noted<Checked extends CallerOrRefusal>(checked: Checked, token: string): Checked {
    if ('principal' in checked) this.#options.onToken?.(checked.principal, token);
    return checked;
  }

  /** The refusal of a token (RFC 6750, section 3). Without `reason`, the request had no token. */
  #unauthorized(endpoint: string | undefined, reason: string | undefined): HttpRefusal {
    const { scopes } = this.#options.auth?.jwt ?? {};
    const shown = reason === undefined ? undefined : quotable(reason);
    const error: Params = shown === undefined ? {} : { error: 'invalid_token', error_description: shown };
    return {
      status: 401,
      message: shown === undefined ? 'A token is required' : `The token is not accepted: ${shown}`,
      headers: this.#challenge(endpoint, { ...error, ...(scopes && { scope: scopes.join(' ') }) }),
    };
  }

  /** Names all scopes, because a client asks for those that it is told to. */
  #forbidden(endpoint: string | undefined, missing: readonly string[]): HttpRefusal {
    const { scopes = [] } = this.#options.auth?.jwt ?? {};
    return {
      status: 403,
      message: `The token lacks ${missing.length === 1 ? 'the scope' : 'the scopes'} ${quotable(missing.join(', '))}`,
      headers: this.#challenge(endpoint, { error: 'insufficient_scope', scope: scopes.join(' ') }),
    };
  }

  #challenge(endpoint: string | undefined, params: Params): Readonly<Record<string, string>> {
    const { auth: { jwt } = {}, publicUrl = '' } = this.#options;
    const where: Params =
      jwt === undefined
        ? { realm: 'trunkline' }
        : { resource_metadata: `${publicUrl}${METADATA_PATH}${pathOf(endpoint)}` };
    const all = Object.entries({ ...params, ...where }).map(([name, value]) => `${name}="${value}"`);
    return { 'www-authenticate': `Bearer ${all.join(', ')}` };
  }
}

type Params = Readonly<Record<string, string>>;

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** The path of an endpoint. Text of a client in it cannot end the quotes around it. */
function pathOf(endpoint: string | undefined): string {
  if (endpoint === undefined) return '/mcp';
  const view = viewAt(endpoint);
  return view === undefined ? `/mcp/${encodeURIComponent(endpoint)}` : `/mcp/v/${encodeURIComponent(view)}`;
}

/** A text as it may stand in quotes in a header: visible ASCII without quotes and backslashes. */
function quotable(text: string): string {
  const clean = text.replace(/[^ -~]|["\\]/g, '?');
  return clean.length > MAX_DESCRIPTION ? `${clean.slice(0, MAX_DESCRIPTION)}...` : clean;
}

/**
 * Decides which endpoint serves a user who asked for `asked`. Without groups at the views, each user gets the endpoint
 * `asked`. Otherwise:
 *
 * - a view is open to users of its groups, and without `groups` to all users
 * - all servers together (`undefined`) are the first view that is open to the user
 * - a single server is open to the users of a view that shows the server with all its tools
 *
 * Returns `undefined` if the endpoint is closed to the user.
 */
export function endpointFor(
  asked: string | undefined,
  groups: readonly string[],
  views: readonly ViewConfig[],
): { readonly endpoint: string | undefined } | undefined {
  if (views.every((view) => view.groups === undefined)) return { endpoint: asked };
  const open = views.filter((view) => view.groups?.some((group) => groups.includes(group)) ?? true);
  const [first] = open;
  if (asked === undefined) return first && { endpoint: endpointOfView(first.name) };
  const name = viewAt(asked);
  const isOpen = open.some((view) => (name === undefined ? showsAllOf(view, asked) : view.name === name));
  return isOpen ? { endpoint: asked } : undefined;
}

function showsAllOf({ servers, tools }: ViewConfig, key: string): boolean {
  const isFiltered = tools?.allow !== undefined || tools?.deny !== undefined;
  return !isFiltered && (servers?.includes(key) ?? true);
}
