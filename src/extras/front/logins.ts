import { type Params, type RouteAnswer, type RouteRequest, singleParams } from '../../downstream/http/http-route.js';
import { wordsOfBody } from '../../host/http/words.js';
import { isSameSecret } from '../../host/sealed-bytes.js';
import { type Cookies, withCookies } from '../cookies.js';
import { LOGIN_MS, randomText, type SealedTexts, sha256 } from '../sealed-texts.js';
import { faultPage, redirect } from '../web-page.js';

import { ClientRefused, type Clients, type FrontClient } from './clients.js';
import { consentPage, failedPage } from './pages.js';
import type { FrontPersons } from './persons.js';
import { type Provider, ProviderAway } from './provider.js';
import { answerTo, comparable, isOnMachine } from './redirects.js';

interface LoginsOptions {
  readonly publicUrl: string;
  readonly issuer: string;
  readonly scopes: readonly string[];
  readonly clients: Clients;
  readonly provider: Provider;
  readonly sealed: SealedTexts;
  readonly cookies: Cookies;
  readonly persons: FrontPersons;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The path of the login page, and those below it for its form and for the answers of the provider. */
export const LOGIN_PATHS = { begin: '/authorize', consent: '/authorize/consent', callback: '/authorize/callback' };

interface AskedLogin {
  /** The SHA-256 of the id of the client, because an id is long. */
  readonly client: string;
  readonly redirectUri: string;
  readonly state?: string;
  readonly challenge: string;
  /** The id of the client at the provider. */
  readonly as: string;
  /** Whether no other program can log in as this client, so that the consent of a person holds for the next time. */
  readonly isProven: boolean;
}

/** A code of Trunkline's, which a client redeems for the tokens that the provider gives for its code. */
export interface LoginCode {
  /** Names the code, so that it can be redeemed once. */
  readonly id: string;
  readonly client: string;
  readonly redirectUri: string;
  readonly challenge: string;
  readonly as: string;
  /** The code of the provider, and the verifier that belongs to it. */
  readonly code: string;
  readonly verifier: string;
}

/** A browser, with the logins that its person has allowed: the hash of what was allowed, and the end in ms since 1970. */
interface Browser {
  readonly id: string;
  readonly allowed: readonly (readonly [pair: string, until: number])[];
}

export const CODE_MS = 60_000;
const ALLOWED_MS = 30 * 24 * 60 * 60_000;
/** Number of the pairs that a browser remembers. The cookie has about a kilobyte then. */
const MAX_ALLOWED = 16;
/** Number of the logins that may go on in a browser at the same time. The cookie of each has up to three kilobytes. */
const MAX_LOGINS = 4;
const MAX_STATE_LENGTH = 1_024;
/** A SHA-256 in Base64url, without padding (RFC 7636, section 4.2). */
const CHALLENGE = /^[\w-]{43}$/;
const LOGIN_ID = /^[\w-]{22}$/;

const EXPIRED =
  'It took too long, or it was begun in another browser. Go back to the program, and begin the login again.';

/**
 * The part of a login that happens in the browser of a person: consent, login at the provider, and the way back to the client.
 * Cookies have the state, sealed, so that a login goes on only in the browser in which it was begun.
 */
export class Logins {
  readonly #options: LoginsOptions;

  constructor(options: LoginsOptions) {
    this.#options = options;
  }

  async begin({ query, headers }: RouteRequest): Promise<RouteAnswer> {
    const params = singleParams(query);
    if (params === undefined) return faultPage(400, 'A part of its address stands there twice.');
    const { client_id: id = '', redirect_uri: redirectUri = '' } = params;
    const { clients } = this.#options;
    let client: FrontClient;
    try {
      client = await clients.find(id);
    } catch (error) {
      if (!(error instanceof ClientRefused)) throw error;
      return faultPage(400, error.message);
    }
    const fault = clients.refuseRedirect(client, redirectUri);
    if (fault !== undefined) return faultPage(400, fault);
    const { state, code_challenge: challenge = '' } = params;
    if ((state?.length ?? 0) > MAX_STATE_LENGTH)
      return faultPage(400, `The program sent a state of more than ${MAX_STATE_LENGTH} characters.`);
    const { name, document } = client;
    const asked: AskedLogin = {
      ...{ client: sha256(id), redirectUri, challenge, as: clients.idAtProvider(client) },
      // Everybody knows the id of such a client, and any program may listen on this machine (RFC 8252, section 8.6).
      isProven: document === undefined || !isOnMachine(redirectUri),
      ...(state !== undefined && { state }),
    };
    const problem = this.#problemOf(params);
    if (problem !== undefined) return this.#failed(asked, ...problem, false);
    const browser = this.#browserOf(headers.cookie);
    const pair = this.#pairOf(asked);
    if (asked.isProven && browser.allowed.some(([each]) => each === pair))
      return await this.#toProvider(asked, headers.cookie);
    const { publicUrl, issuer, scopes, sealed } = this.#options;
    const facts = { publicUrl, issuer, scopes, name, document, redirectUri };
    const request = sealed.seal(`consent ${browser.id}`, asked, LOGIN_MS);
    return withCookies(consentPage({ ...facts, request, action: LOGIN_PATHS.consent }), [this.#cookieOf(browser)]);
  }

  async consent({ headers, body }: RouteRequest): Promise<RouteAnswer> {
    const { publicUrl, sealed, now } = this.#options;
    if (headers.origin !== undefined && headers.origin !== publicUrl)
      return faultPage(403, 'Another site sent its form.');
    const params = singleParams(new URLSearchParams(body));
    const browser = this.#browserOf(headers.cookie);
    const asked = sealed.open<AskedLogin>(`consent ${browser.id}`, params?.request ?? '');
    if (asked === undefined) return faultPage(400, EXPIRED);
    if (params?.decision !== 'allow')
      return this.#failed(
        asked,
        'access_denied',
        'You have cancelled the login, so the program gets no access.',
        false,
      );
    if (!asked.isProven) return await this.#toProvider(asked, headers.cookie);
    const granted = this.#pairOf(asked);
    const others = browser.allowed.filter(([pair, until]) => pair !== granted && until > now());
    const allowed = [...others.slice(1 - MAX_ALLOWED), [granted, now() + ALLOWED_MS] as const];
    return await this.#toProvider(asked, headers.cookie, [this.#cookieOf({ id: browser.id, allowed })]);
  }

  /** Answers the request with which the provider sends the person back. */
  async callback({ query, headers }: RouteRequest): Promise<RouteAnswer> {
    const { provider, sealed, cookies, persons } = this.#options;
    const params = singleParams(query) ?? {};
    const { state: id = '' } = params;
    if (!LOGIN_ID.test(id)) return faultPage(400, EXPIRED);
    const signedIn = await persons.answer(id, params, headers.cookie);
    if (signedIn !== undefined) return signedIn;
    const cookie = `login-${id}`;
    const login = sealed.open<AskedLogin & Pick<LoginCode, 'verifier'>>(cookie, cookies.read(headers.cookie, cookie));
    if (login === undefined) return faultPage(400, EXPIRED);
    // A login is answered once.
    const used = [cookies.remove(cookie)];
    if (!(await provider.isFrom(params.iss))) {
      const sentence = 'The answer did not come from the identity provider of this gateway.';
      return withCookies(this.#failed(login, 'server_error', sentence), used);
    }
    if (params.error !== undefined || params.code === undefined) {
      const { error = 'server_error', error_description: words = '' } = params;
      const said = wordsOfBody(words) ?? `The identity provider gives no code (${errorOf(error)}).`;
      return withCookies(this.#failed(login, error, said), used);
    }
    const { client, redirectUri, challenge, as, verifier } = login;
    const code: LoginCode = { id: randomText(16), client, redirectUri, challenge, as, verifier, code: params.code };
    return withCookies(redirect(this.#answer(login, { code: sealed.seal('code', code, CODE_MS) })), used);
  }

  /** Sends the person to the provider. The state is remembered only now, after the consent. */
  async #toProvider(asked: AskedLogin, sent = '', cookies: readonly string[] = []): Promise<RouteAnswer> {
    const { provider, sealed, cookies: own } = this.#options;
    const id = randomText(16);
    const verifier = randomText(32);
    try {
      const url = await provider.loginUrl(asked.as, id, sha256(verifier));
      const login = sealed.seal(`login-${id}`, { ...asked, verifier }, LOGIN_MS);
      return withCookies(redirect(url), [
        ...cookies,
        ...own.outdated(sent, 'login', MAX_LOGINS - 1),
        own.set(`login-${id}`, login, LOGIN_MS),
      ]);
    } catch (error) {
      if (!(error instanceof ProviderAway)) throw error;
      return this.#failed(asked, 'temporarily_unavailable', error.message);
    }
  }

  /** Finds a mistake in the request of a client. Returns the error and the words of the answer. */
  #problemOf(params: Params): readonly [error: string, words: string] | undefined {
    const { response_type: type, code_challenge: challenge = '', code_challenge_method: method } = params;
    if (type !== 'code') return ['unsupported_response_type', 'response_type must be code'];
    if (method !== 'S256' || !CHALLENGE.test(challenge))
      return ['invalid_request', 'PKCE with the method S256 is needed'];
    return isOwnResource(params.resource, this.#options.publicUrl) ? undefined : ['invalid_target', OTHER_RESOURCE];
  }

  /**
   * Returns a page with the reason and a link back to the client. Before the consent, the page does not follow the link by itself,
   * because a link of a stranger must not open an app, or another site.
   */
  #failed(asked: AskedLogin, error: string, words: string, isAutomatic = true): RouteAnswer {
    const shown = descriptionOf(words);
    const back = this.#answer(asked, { error: errorOf(error), error_description: shown });
    return failedPage(shown, back, isAutomatic);
  }

  /** Names what a person allows: the client, where its login returns to, and what it gets. */
  #pairOf({ client, redirectUri, as }: AskedLogin): string {
    return sha256(JSON.stringify([client, comparable(redirectUri), as, this.#options.scopes]));
  }

  /** The address that answers the client, with this gateway as the issuer (RFC 9207). */
  #answer({ redirectUri, state }: AskedLogin, params: Params): string {
    return answerTo(redirectUri, { ...params, state, iss: this.#options.publicUrl });
  }

  #browserOf(header: string | undefined): Browser {
    const found = this.#options.sealed.open<Browser>('browser', this.#options.cookies.read(header, 'browser'));
    if (found === undefined) return { id: randomText(16), allowed: [] };
    return { ...found, allowed: found.allowed.filter(([, until]) => until > this.#options.now()) };
  }

  #cookieOf(browser: Browser): string {
    const { cookies, sealed } = this.#options;
    return cookies.set('browser', sealed.seal('browser', browser, ALLOWED_MS), ALLOWED_MS);
  }
}

export const OTHER_RESOURCE = 'resource must be a URL of this gateway';

/**
 * Whether a client wants tokens for this gateway. A hostile server can name this gateway as its authorization server, and would
 * get tokens for this gateway from the client otherwise.
 */
export function isOwnResource(resource: string | undefined, publicUrl: string): boolean {
  if (resource === undefined) return true;
  const url = URL.canParse(resource) ? new URL(resource) : undefined;
  return url?.origin === publicUrl && /^\/(?:mcp(?:\/|$)|$)/.test(url.pathname);
}

/** Whether the verifier belongs to the challenge (RFC 7636). */
export function isVerified(verifier: string, challenge: string): boolean {
  return /^[\w.~-]{43,128}$/.test(verifier) && isSameSecret(sha256(verifier), challenge);
}

/** The characters that a description may have (RFC 6749, section 4.1.2.1). */
export function descriptionOf(words: string): string {
  return words.replace(/["\\]/g, "'").replace(/[^ -~]/g, '?');
}

function errorOf(error: string): string {
  return /^[\w.-]{1,64}$/.test(error) ? error : 'server_error';
}
