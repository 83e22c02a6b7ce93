import { createPrivateKey } from 'node:crypto';
import {
  type AddClientAuthentication,
  type AuthorizationServerMetadata,
  buildDiscoveryUrls,
  createPrivateKeyJwtAuth,
  DpopSession,
  type FetchLike,
  generateDpopKeyPair,
  selectClientAuthMethod,
  startAuthorization,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client';
import { errorMessage } from '../../host/errors/error-text.js';
import { isProtected } from '../../host/http/addresses.js';
import { RequestError } from '../../host/http/send-request.js';
import { describeHttpRefusal } from '../../host/http/words.js';
import { publicPartOf } from '../../host/observe/redact.js';
import type { LoginSettings } from '../../spec/server-spec.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { printable } from '../../wire/json/printable.js';
import { type AuthChallenge, scopesIn } from './challenge.js';
import { LoginError, type LoginRecord, type StoredTokens } from './vault.js';

/*
 * OAuth 2.1 as on the page basic/authorization of revision 2026-07-28, which also works with servers of earlier revisions. Only
 * this file loads the SDK, so other code imports this file only when it needs a token.
 */

/** The authorization server of a server, and the parameters of a login there. */
export interface Discovered {
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata | undefined;
  readonly resource: string | undefined;
  /** Scopes of the challenge or of the protected resource. */
  readonly scopes: readonly string[];
  /** Whether the server wants tokens that are bound to a key (RFC 9449). */
  readonly wantsDpop: boolean;
}

export type Client = LoginRecord['client'];

/**
 * Finds the authorization server in the document that the challenge names, or in the documents at the well-known URLs of the server. A
 * server without such a document (2025-03-26) is its own issuer. An authorization server without metadata has the endpoints `/authorize`,
 * `/token` and `/register`, as official clients assume. Settings take precedence over the documents. Sends nothing to an authorization
 * server that must not get the secrets of the configuration. Throws a `LoginError` or a `RequestError`.
 */
export async function discover(
  url: URL,
  challenge: AuthChallenge | undefined,
  settings: LoginSettings,
  fetch: FetchLike,
  binding: Binding = {},
): Promise<Discovered> {
  const document = await resourceMetadata(url, challenge?.params.resource_metadata, settings, fetch);
  const named = textOf(document, 'resource');
  if (named !== undefined && settings.resource === undefined && !isOfResource(url, named)) {
    throw new LoginError(
      `the server at ${publicPartOf(url.href)} names another server as its resource (${printable(named)}), which could misuse the token`,
      'ask the operator of the server. If the name is only wrong, set `oauth: { resource: … }` to the right URL, or to `false` to send none',
    );
  }
  const servers = document?.authorization_servers;
  const offeredServers = Array.isArray(servers) ? servers.filter((one) => typeof one === 'string') : [];
  const issuer = settings.issuer ?? offeredServers[0] ?? url.origin;
  await checkBinding(issuer, settings, binding);
  const metadata = await serverMetadata(issuer, settings, fetch);
  if (metadata === undefined && settings.issuer !== undefined) {
    const [first] = buildDiscoveryUrls(issuer);
    throw new LoginError(
      `the authorization server ${printable(issuer)} has no metadata, for example at ${first?.url.href}`,
      OVERRIDE,
    );
  }
  const resource = settings.resource ?? named ?? canonicalResource(url);
  const offered = document?.scopes_supported;
  const algorithms = extension(metadata, 'dpop_signing_alg_values_supported');
  return {
    issuer: metadata?.issuer ?? issuer,
    metadata,
    resource: resource === false ? undefined : resource,
    scopes: scopesIn(challenge?.params.scope ?? (Array.isArray(offered) ? offered.join(' ') : undefined)),
    wantsDpop: challenge?.scheme === 'dpop' && Array.isArray(algorithms) && algorithms.includes('ES256'),
  };
}

const OVERRIDE =
  'if you know its endpoints, set `oauth: { metadata: { authorization_endpoint: …, token_endpoint: … } }`';

/** Returns a member that the SDK's types lack. */
function extension(metadata: object | undefined, name: string): unknown {
  return (metadata as Readonly<Record<string, unknown>> | undefined)?.[name];
}

async function resourceMetadata(
  url: URL,
  named: string | undefined,
  settings: LoginSettings,
  fetch: FetchLike,
): Promise<JsonObject | undefined> {
  const wellKnown = '/.well-known/oauth-protected-resource';
  const path = url.pathname === '/' ? '' : url.pathname.replace(/\/$/, '');
  const urls = [...new Set([`${url.origin}${wellKnown}${path}`, `${url.origin}${wellKnown}`])].map(
    (one) => new URL(one),
  );
  let fault: string | undefined;
  if (named !== undefined && URL.canParse(named)) {
    // `oauth.headers` go with every request, and a challenge can name any host.
    const isForeign = settings.confidential?.includes('headers') === true && new URL(named).origin !== url.origin;
    const document = isForeign ? 'another host would get `oauth.headers`' : await readDocument(new URL(named), fetch);
    if (typeof document !== 'string') return document;
    fault = `the document ${named} of the server cannot be used (${document})`;
  }
  for (const one of urls) {
    const document = await readDocument(one, fetch);
    if (typeof document !== 'string') return document;
  }
  // A document that a challenge names must exist, unless the settings name the issuer.
  if (fault === undefined || settings.issuer !== undefined) return undefined;
  throw new LoginError(fault, 'ask the operator of the server, or set `oauth: { issuer: … }`');
}

type JsonObject = Readonly<Record<string, unknown>>;

/** Reads a JSON object, without members that are `null`. Returns the reason if there is none. */
async function readDocument(url: URL, fetch: FetchLike): Promise<JsonObject | string> {
  const response = await fetch(url, { headers: { accept: 'application/json' } });
  const text = await response.text();
  if (response.status >= 500 && response.status !== 502 && response.status !== 501)
    throw new RequestError(
      `${url.origin} answers ${describeHttpRefusal(response.status, '', text)} to the request for its metadata`,
      true,
    );
  if (!response.ok) return `HTTP ${response.status}`;
  return jsonObject(text) ?? 'it is no JSON object';
}

function jsonObject(text: string): JsonObject | undefined {
  const value = parseJson(text.replace(/^\uFEFF/, ''));
  if (!isRecord(value)) return undefined;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

function textOf(object: JsonObject | undefined, name: string): string | undefined {
  const value = object?.[name];
  return typeof value === 'string' ? value : undefined;
}

/**
 * Reads the metadata of an authorization server at the first URL that has it. Returns `undefined` if there is none. Does not use
 * the SDK for this, because it drops members that it does not know, and refuses those that are `null`.
 */
async function serverMetadata(
  issuer: string,
  { metadata: replaced, grant }: LoginSettings,
  fetch: FetchLike,
): Promise<AuthorizationServerMetadata | undefined> {
  if (!URL.canParse(issuer))
    throw new LoginError(`the name ${printable(issuer)} of the authorization server is not a URL`);
  const name = `the authorization server ${printable(issuer)}`;
  const needed = ['token_endpoint', ...(grant === 'client_credentials' ? [] : ['authorization_endpoint'])];
  const usual = { response_types_supported: ['code'] };
  const lacking = (document: JsonObject) =>
    needed.find((member) => !URL.canParse(textOf(document, member) ?? '') || textOf(document, member) === '');
  let fault: LoginError | undefined;
  for (const { url } of buildDiscoveryUrls(issuer)) {
    const found = await readDocument(url, fetch);
    if (typeof found === 'string') continue;
    const document = { ...found, ...replaced };
    const missing = lacking(document);
    const own = textOf(document, 'issuer') ?? '';
    if (missing !== undefined)
      fault ??= new LoginError(
        `the metadata of ${name} at ${url.href} cannot be used, because it lacks \`${missing}\``,
        OVERRIDE,
      );
    else if (!isSameIssuer(own, issuer))
      fault ??= new LoginError(
        `the metadata of ${name} belongs to another issuer (${printable(own)})`,
        'if this is right, set `oauth: { issuer: … }` to that name',
      );
    else return { ...usual, ...document } as unknown as AuthorizationServerMetadata;
  }
  if (replaced !== undefined && lacking(replaced) === undefined)
    return { issuer, ...usual, ...replaced } as unknown as AuthorizationServerMetadata;
  if (fault !== undefined) throw fault;
  return undefined;
}

/** Compares issuers. A slash at the end makes no difference, because documents and answers often differ in it. */
function isSameIssuer(one: string | undefined, other: string): boolean {
  return one?.replace(/\/$/, '') === other.replace(/\/$/, '');
}

/** Whether the resource of a document covers the URL. It must have the same origin, and a path that contains the URL's. */
function isOfResource(url: URL, resource: string): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname } = new URL(resource);
  const withSlash = (path: string) => (path.endsWith('/') ? path : `${path}/`);
  return origin === url.origin && withSlash(url.pathname).startsWith(withSlash(pathname));
}

/**
 * Returns the URL in the form for `resource`, without fragment, query and a slash at the end. The query can have a key, which the address
 * in the browser would show, and RFC 8707 advises against one.
 */
function canonicalResource({ origin, pathname }: URL): string {
  return `${origin}${pathname}`.replace(/\/$/, '');
}

/** Returns the wanted or configured scopes, or else the offered ones and `offline_access`, and adds those that calls lacked. */
export function scopesFor(
  { scopes, metadata }: Discovered,
  settings: LoginSettings,
  before: Pick<LoginRecord, 'missingScopes' | 'requestedScopes'> | undefined,
  wanted?: readonly string[],
): string[] {
  const { missingScopes = [], requestedScopes = [] } = before ?? {};
  // A login for missing scopes must keep the scopes of the login before.
  const earlier = missingScopes.length > 0 ? requestedScopes : [];
  const all = new Set([...(wanted ?? settings.scopes ?? scopes), ...earlier, ...missingScopes]);
  const isChosen = (wanted ?? settings.scopes) !== undefined;
  const canRenew = metadata?.scopes_supported?.includes('offline_access') === true;
  if (canRenew && !isChosen && settings.grant !== 'client_credentials') all.add('offline_access');
  return [...all];
}

/**
 * Returns the client of a login that exists already: that of the configuration, its metadata document if the authorization server accepts
 * one, or the client that was registered before with the same redirect URI.
 */
export function knownClient(
  { issuer, metadata }: Discovered,
  { clientId, clientSecret, clientMetadataUrl }: LoginSettings,
  redirectUri: string,
  before: LoginRecord | undefined,
): Client | undefined {
  if (clientId !== undefined) {
    return {
      client_id: clientId,
      ...(clientSecret && { client_secret: clientSecret }),
      redirectUri,
      isRegistered: false,
    };
  }
  if (clientMetadataUrl !== undefined && metadata?.client_id_metadata_document_supported === true)
    return { client_id: clientMetadataUrl, redirectUri, isRegistered: false };
  const registered = isSameIssuer(before?.issuer, issuer) && before?.client.isRegistered ? before.client : undefined;
  return registered?.redirectUri === redirectUri ? registered : undefined;
}

/**
 * Returns the scopes of a registration, with those of the one before, because the users of a server share one and can need different
 * scopes: each of them would replace the client of the others.
 */
export function registeredScopes(
  { issuer }: Discovered,
  before: LoginRecord | undefined,
  scopes: readonly string[],
): readonly string[] {
  const earlier = isSameIssuer(before?.issuer, issuer) && before?.client.isRegistered ? before.requestedScopes : [];
  return [...new Set([...earlier, ...scopes])];
}

/**
 * Returns the client of a login. In this order: the client of the configuration, its metadata document if the authorization server accepts
 * one, the client that was registered before with the same redirect URI, a newly registered client. Throws a `LoginError`.
 */
export async function clientFor(
  found: Discovered,
  settings: LoginSettings,
  { redirectUri, before, scopes, fetch, isForgotten = false }: ClientRequest,
): Promise<Client> {
  const { issuer, metadata } = found;
  const known = knownClient(found, settings, redirectUri, before);
  // Some authorization servers give a client no other scopes than those of its registration.
  const hasScopes = scopes.every((scope) => before?.requestedScopes.includes(scope));
  if (known !== undefined && (!known.isRegistered || (hasScopes && !isForgotten))) return known;
  if (metadata !== undefined && metadata.registration_endpoint === undefined) {
    throw new LoginError(
      `the authorization server ${printable(issuer)} registers no clients`,
      `register an OAuth app there with the redirect URI ${redirectUri}, and set \`oauth: { clientId: … }\` of the server ${settings.server}`,
    );
  }
  const endpoint = metadata?.registration_endpoint ?? new URL('/register', issuer).href;
  const allScopes = registeredScopes(found, before, scopes);
  const registration = {
    // The page of the provider shows it, so that the person sees for which server the login is.
    client_name: `Trunkline (${settings.server})`,
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token', ...(hasDeviceCodes(metadata) ? [DEVICE_GRANT] : [])],
    response_types: ['code'],
    // Native apps must not have a redirect URI that begins with `https:` (OpenID Connect Dynamic Client Registration, section 2).
    application_type: redirectUri.startsWith('https:') ? 'web' : 'native',
    ...(allScopes.length > 0 && { scope: allScopes.join(' ') }),
  };
  const offered = metadata?.token_endpoint_auth_methods_supported ?? [];
  // Some authorization servers register no public client, and do not say so.
  const methods = new Set([...AUTH_METHODS.filter((method) => offered.includes(method)), 'none', 'client_secret_post']);
  let refusal: OAuthRefusal | undefined;
  for (const token_endpoint_auth_method of methods) {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ ...registration, token_endpoint_auth_method }),
    });
    const text = await response.text();
    const answer = jsonObject(text);
    const client_id = textOf(answer, 'client_id');
    if (response.ok && client_id !== undefined) {
      const client_secret = textOf(answer, 'client_secret');
      const method = textOf(answer, 'token_endpoint_auth_method');
      return {
        client_id,
        ...(client_secret !== undefined && { client_secret }),
        ...(method !== undefined && { token_endpoint_auth_method: method }),
        redirectUri,
        isRegistered: true,
      };
    }
    refusal ??= new OAuthRefusal(
      response.status,
      textOf(answer, 'error') ?? '',
      describeHttpRefusal(response.status, '', text),
    );
    if (response.status !== 400) break;
  }
  const name = `the authorization server ${printable(issuer)}`;
  if (metadata === undefined)
    throw new LoginError(
      `${name} has no metadata, and does not register Trunkline at ${endpoint} (${refusal?.message})`,
      OVERRIDE,
    );
  throw new LoginError(
    `${name} does not register Trunkline (${refusal?.message})`,
    `if it wants another redirect URI than ${redirectUri}, set \`oauth: { redirectUri: … }\` of the server ${settings.server}, or register an OAuth app there and set \`clientId\``,
  );
}

/** Methods of client authentication without a key, the best first. */
const AUTH_METHODS = ['none', 'client_secret_post', 'client_secret_basic'];

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

function hasDeviceCodes(metadata: AuthorizationServerMetadata | undefined): boolean {
  return metadata?.grant_types_supported?.includes(DEVICE_GRANT) === true;
}

interface ClientRequest {
  readonly redirectUri: string;
  readonly before: LoginRecord | undefined;
  readonly scopes: readonly string[];
  readonly fetch: FetchLike;
  /** Whether the authorization server has forgotten the client that was registered before. */
  readonly isForgotten?: boolean;
}

/** The stored login, and the question to the person whether an authorization server may get the secrets of the configuration. */
export interface Binding {
  readonly before?: Pick<LoginRecord, 'issuer' | 'client'> | undefined;
  readonly confirmIssuer?: ((issuer: string, keys: readonly string[]) => Promise<boolean>) | undefined;
}

/**
 * Throws a `LoginError` if the authorization server must not get the client or the secrets of the configuration, because another
 * one knows this client, or neither the configuration nor the person has named it.
 */
async function checkBinding(
  issuer: string,
  settings: LoginSettings,
  { before, confirmIssuer }: Binding,
): Promise<void> {
  const { clientId, server, confidential = [] } = settings;
  if (settings.issuer !== undefined || isSameIssuer(before?.issuer, issuer)) return;
  if (clientId !== undefined && before?.client.client_id === clientId)
    throw new LoginError(
      `the server names another authorization server (${printable(issuer)}) than the one that knows this client (${printable(before.issuer)})`,
      `if this is right, set \`oauth: { issuer: … }\` of the server ${server}`,
    );
  if (confidential.length === 0 || (await confirmIssuer?.(printable(issuer), confidential)) === true) return;
  throw new LoginError(
    `the server names the authorization server ${printable(issuer)}, which would get \`${confidential.join('`, `')}\` of the configuration`,
    `if it is the right one, add \`issuer: ${printable(issuer)}\` to \`oauth\` of the server ${server}`,
  );
}

/** Makes the URL for the browser, and the secret that proves that the answer belongs to this URL. Throws a `LoginError`. */
export async function authorizationUrl(
  { issuer, metadata, resource }: Discovered,
  client: Client,
  request: {
    readonly redirectUri: string;
    readonly scopes: readonly string[];
    readonly state: string;
    readonly params?: Readonly<Record<string, string>> | undefined;
  },
): Promise<{ readonly authorizationUrl: URL; readonly codeVerifier: string }> {
  try {
    const started = await startAuthorization(issuer, {
      ...(metadata && { metadata }),
      clientInformation: client,
      redirectUrl: request.redirectUri,
      state: request.state,
      ...(request.scopes.length > 0 && { scope: request.scopes.join(' ') }),
      ...(resource !== undefined && { resource }),
    });
    for (const [name, value] of Object.entries(request.params ?? {}))
      started.authorizationUrl.searchParams.set(name, value);
    const page = pageUrl(started.authorizationUrl.href);
    if (page === undefined)
      throw new LoginError(`the page for logins of the authorization server ${printable(issuer)} is not encrypted`);
    return started;
  } catch (error) {
    throw failure(error, `the authorization server ${printable(issuer)} cannot be used`);
  }
}

/** Returns the URL of a page for the browser, as ASCII, or `undefined` for a file, a script or an unprotected page (`isProtected`). */
function pageUrl(text: unknown): string | undefined {
  if (typeof text !== 'string' || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return isProtected(url) ? url.href : undefined;
}

/**
 * Checks that the answer in the browser is from this authorization server (RFC 9207). Compares `iss` also without metadata, because the
 * page of such a server can send the browser on to that of another one. Throws a `LoginError`.
 */
export function checkIssuer({ issuer, metadata }: Discovered, iss: string | undefined): void {
  try {
    validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: issuer,
      issParameterSupported: metadata?.authorization_response_iss_parameter_supported === true,
    });
  } catch {
    throw new LoginError(
      'the answer is not from the authorization server of this login (its `iss` is wrong or missing)',
    );
  }
}

export interface TokenContext {
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata | undefined;
  readonly resource: string | undefined;
  readonly client: Client;
  readonly settings: LoginSettings;
  readonly dpop: DpopSession | undefined;
  readonly fetch: FetchLike;
}

export async function contextOf(record: LoginRecord, settings: LoginSettings, fetch: FetchLike): Promise<TokenContext> {
  const { issuer, metadata, resource, client, dpopKey } = record;
  const secret = client.client_id === settings.clientId ? settings.clientSecret : undefined;
  return {
    ...{ issuer, metadata, resource, settings, fetch },
    dpop: dpopKey === undefined ? undefined : (await openDpop(dpopKey)).session,
    client: { ...client, ...(secret !== undefined && { client_secret: secret }) },
  };
}

/** Exchanges the code of the browser for tokens. Throws a `LoginError` or a `RequestError`. */
export async function exchangeCode(
  context: TokenContext,
  {
    code,
    codeVerifier,
    redirectUri,
  }: { readonly code: string; readonly codeVerifier: string; readonly redirectUri: string },
): Promise<StoredTokens> {
  const form = { grant_type: 'authorization_code', code, code_verifier: codeVerifier, redirect_uri: redirectUri };
  try {
    return await requestToken(context, form);
  } catch (error) {
    throw failure(error, 'the authorization server gives no token');
  }
}

/**
 * Renews tokens with the scopes that they have. Throws a `RequestError` if the authorization server cannot be asked or is out of
 * order, and an `OAuthRefusal` if it does not renew them.
 */
export async function refresh(
  context: TokenContext,
  refreshToken: string,
  scopes: readonly string[],
): Promise<StoredTokens> {
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken };
  const scope = scopes.length > 0 && { scope: scopes.join(' ') };
  const renewed = async () => {
    try {
      return await requestToken(context, { ...form, ...scope });
    } catch (error) {
      // `invalid_scope` does not use up the refresh token.
      if (!(error instanceof OAuthRefusal && error.code === 'invalid_scope' && scope)) throw error;
      return await requestToken(context, form);
    }
  };
  try {
    const tokens = await renewed();
    return { refresh_token: refreshToken, ...tokens };
  } catch (error) {
    if (error instanceof RequestError || (error instanceof OAuthRefusal && error.isFinal)) throw error;
    throw new RequestError(`the authorization server does not renew the login (${describe(error)})`, true, error);
  }
}

/** An authorization server refused a request. The message has its status and words, without the secrets of the request. */
export class OAuthRefusal extends Error {
  override readonly name = 'OAuthRefusal';
  readonly status: number;
  /** The code of its error, such as `invalid_grant`; empty if there is none. */
  readonly code: string;

  constructor(status: number, code: string, words: string) {
    super(words);
    this.status = status;
    this.code = code;
  }

  /** Whether the same request will be refused again. Otherwise, the server may be out of order. */
  get isFinal(): boolean {
    const { status } = this;
    const isTemporary = this.code === 'temporarily_unavailable' || this.code === 'server_error';
    const isRefused = status < 300 || (status >= 400 && status < 500);
    return isRefused && status !== 408 && status !== 425 && status !== 429 && !isTemporary;
  }

  /** Whether the authorization server does not know the client, or not anymore. */
  get isAboutClient(): boolean {
    return this.code === 'invalid_client' || this.code === 'unauthorized_client';
  }
}

/** Gets tokens with the client's own credentials, without a person. Throws a `LoginError` or a `RequestError`. */
export async function clientCredentials(context: TokenContext, scopes: readonly string[]): Promise<StoredTokens> {
  try {
    return await requestToken(context, {
      grant_type: 'client_credentials',
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    });
  } catch (error) {
    throw failure(error, 'the authorization server gives no token');
  }
}

/** A login with a code that the person types on another device (RFC 8628). */
export interface DeviceLogin {
  readonly userCode: string;
  /** The page to open. It has the code already if the authorization server offers that. */
  readonly verificationUri: string;
  readonly expiresInMs: number;
  readonly intervalMs: number;
  /** Asks once. Resolves with the tokens, or with the milliseconds until the next attempt. Throws a `LoginError`. */
  poll(): Promise<StoredTokens | number>;
}

/** Begins a login on another device. Throws a `LoginError` or a `RequestError`. */
export async function startDeviceLogin(context: TokenContext, scopes: readonly string[]): Promise<DeviceLogin> {
  const { issuer, metadata, resource, client, fetch } = context;
  const endpoint = extension(metadata, 'device_authorization_endpoint');
  if (typeof endpoint !== 'string')
    throw new LoginError(
      `the authorization server ${printable(issuer)} offers no login with a device code`,
      'log in without `--device`',
    );
  const params = new URLSearchParams({ client_id: client.client_id });
  if (scopes.length > 0) params.set('scope', scopes.join(' '));
  if (resource !== undefined) params.set('resource', resource);
  const response = await fetch(endpoint, await authenticated(context, endpoint, params));
  const text = await response.text();
  const answer = jsonObject(text);
  const { device_code, user_code, verification_uri, verification_uri_complete, expires_in, interval } = answer ?? {};
  const uri = pageUrl(verification_uri_complete) ?? pageUrl(verification_uri);
  if (!response.ok || typeof device_code !== 'string' || typeof user_code !== 'string' || uri === undefined)
    throw new LoginError(
      `the authorization server gives no device code (${describeHttpRefusal(response.status, '', text)})`,
    );
  const secondsOf = (value: unknown, usual: number, most: number) =>
    typeof value === 'number' ? Math.min(Math.max(value, 1), most) : usual;
  let intervalMs = secondsOf(interval, 5, 60) * 1_000;
  return {
    userCode: user_code,
    verificationUri: uri,
    expiresInMs: secondsOf(expires_in, 600, 1_800) * 1_000,
    intervalMs,
    poll: async () => {
      try {
        return await requestToken(context, { grant_type: DEVICE_GRANT, device_code });
      } catch (error) {
        const code = error instanceof OAuthRefusal ? error.code : '';
        if (code === 'slow_down') intervalMs += 5_000;
        if (code === 'slow_down' || code === 'authorization_pending' || error instanceof RequestError)
          return intervalMs;
        throw failure(error, 'the login was not granted');
      }
    },
  };
}

/** Revokes the tokens (RFC 7009). Resolves with false if there is no endpoint for it. Throws a `LoginError` if that refuses. */
export async function revoke(context: TokenContext, tokens: StoredTokens): Promise<boolean> {
  const endpoint = extension(context.metadata, 'revocation_endpoint');
  if (typeof endpoint !== 'string') return false;
  // Revoking the refresh token ends its access tokens, too.
  const { refresh_token, access_token } = tokens;
  const params = new URLSearchParams(
    refresh_token === undefined
      ? { token: access_token, token_type_hint: 'access_token' }
      : { token: refresh_token, token_type_hint: 'refresh_token' },
  );
  const response = await context.fetch(endpoint, await authenticated(context, endpoint, params));
  if (!response.ok)
    throw new LoginError(
      `the authorization server does not revoke the login (${describeHttpRefusal(response.status, '', await response.text())})`,
    );
  return true;
}

/** Opens the key to which tokens are bound. Without the key of a login, makes a new one. */
export async function openDpop(
  stored?: LoginRecord['dpopKey'],
): Promise<{ session: DpopSession; key: NonNullable<LoginRecord['dpopKey']> }> {
  const { subtle } = globalThis.crypto;
  if (stored === undefined) {
    const keyPair = await generateDpopKeyPair({ extractable: true });
    const { privateKey, publicJwk, thumbprint } = keyPair;
    const jwk = await subtle.exportKey('jwk', privateKey);
    return { session: await DpopSession.create({ keyPair }), key: { jwk, publicJwk, thumbprint } };
  }
  const { jwk, publicJwk, thumbprint } = stored as {
    jwk: Record<string, unknown>;
    publicJwk: Record<string, unknown>;
    thumbprint: string;
  };
  const curve = { name: 'ECDSA', namedCurve: 'P-256' };
  const privateKey = await subtle.importKey('jwk', jwk, curve, false, ['sign']);
  const publicKey = await subtle.importKey('jwk', publicJwk, curve, true, ['verify']);
  const keyPair = { privateKey, publicKey, publicJwk, thumbprint, alg: 'ES256' as const };
  return { session: await DpopSession.create({ keyPair }), key: stored };
}

export type { DpopSession };

/** Authentication with a private key (RFC 7523). The kind of key decides the algorithm. */
function keyAuthentication({ client, settings, issuer }: TokenContext): AddClientAuthentication | undefined {
  const { privateKey } = settings;
  if (privateKey === undefined) return undefined;
  const { client_id } = client;
  return createPrivateKeyJwtAuth({
    ...{ issuer: client_id, subject: client_id, privateKey, audience: issuer },
    alg: algorithmOf(privateKey),
  });
}

function algorithmOf(pem: string): string {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPrivateKey(pem);
    if (asymmetricKeyType === 'ed25519') return 'EdDSA';
    if (asymmetricKeyType === 'ec') {
      const curves: Readonly<Record<string, string>> = { secp384r1: 'ES384', secp521r1: 'ES512' };
      return curves[asymmetricKeyDetails?.namedCurve ?? ''] ?? 'ES256';
    }
    return 'RS256';
  } catch {
    throw new LoginError('the file of `oauth.privateKeyFile` has no private key in PEM (PKCS #8)');
  }
}

/** Asks for tokens. Throws a `RequestError`, an `OAuthRefusal`, or a `LoginError` for tokens that cannot be used. */
export async function requestToken(
  context: TokenContext,
  form: Readonly<Record<string, string>>,
): Promise<StoredTokens> {
  const { issuer, metadata, resource, settings, dpop, fetch } = context;
  const endpoint = metadata?.token_endpoint ?? new URL('/token', issuer).href;
  const params = new URLSearchParams({ ...form, ...(resource !== undefined && { resource }), ...settings.tokenParams });
  for (let step = 1; ; step += 1) {
    const request = await authenticated(context, endpoint, params);
    const headers = new Headers(request.headers);
    if (dpop !== undefined) headers.set('dpop', await dpop.buildProof({ htm: 'POST', htu: endpoint }));
    const response = await fetch(endpoint, { ...request, headers });
    const nonce = response.headers.get('dpop-nonce');
    if (nonce !== null) dpop?.rememberNonce(endpoint, nonce);
    const text = await response.text();
    const isForm = /^[\w.]+=[^\s<]*$/.test(text.trim());
    const answer = isForm ? Object.fromEntries(new URLSearchParams(text.trim())) : jsonObject(text);
    const code = textOf(answer, 'error') ?? '';
    if (code === 'use_dpop_nonce' && nonce !== null && step === 1) continue;
    const token = textOf(answer, 'access_token');
    if (response.ok && code === '' && token !== undefined) return stored(token, answer ?? {});
    if (response.ok && code === '')
      throw new LoginError('the answer of the authorization server has no `access_token`');
    const said = isForm ? JSON.stringify(answer) : text;
    throw new OAuthRefusal(
      response.status,
      code,
      // The whole text, because a part of a secret is not found any more once the text is cut.
      describeHttpRefusal(response.status, '', withoutSecrets(said, params, context)),
    );
  }
}

/** Redacts the secrets of the request, because the answer may repeat them. */
function withoutSecrets(text: string, params: URLSearchParams, { client }: TokenContext): string {
  const isSecret = /secret|token|code|assertion|password/;
  const isKind = /_(?:type|use)$/;
  const secrets = [...params].flatMap(([name, value]) => (isSecret.test(name) && !isKind.test(name) ? [value] : []));
  const all = [...secrets, client.client_secret ?? ''].filter((secret) => secret.length > 3);
  return all.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text);
}

/** Makes a form with the authentication of the client, for the endpoints of tokens, revocations and device codes. */
async function authenticated(context: TokenContext, endpoint: string, params: URLSearchParams): Promise<RequestInit> {
  const { client, metadata } = context;
  const headers = new Headers({ accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' });
  const byKey = keyAuthentication(context);
  const method = selectClientAuthMethod(client, metadata?.token_endpoint_auth_methods_supported ?? []);
  const { client_id, client_secret = '' } = client;
  if (byKey !== undefined) {
    await byKey(headers, params, new URL(endpoint), metadata);
  } else if (method === 'client_secret_basic') {
    headers.set('authorization', `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`);
  } else {
    if (client_id !== '') params.set('client_id', client_id);
    if (method === 'client_secret_post') params.set('client_secret', client_secret);
  }
  return { method: 'POST', headers, body: params.toString() };
}

/** Limit of a token's lifetime, in seconds, because the end of a longer one may not be a valid date. */
const MAX_LIFETIME = 10 * 365 * 86_400;

function stored(access_token: string, answer: JsonObject): StoredTokens {
  if (!/^[\x21-\x7e]+$/.test(access_token))
    throw new LoginError('the authorization server sent a token with characters that a header must not have');
  const obtainedAt = Date.now();
  const [refresh_token, scope] = [textOf(answer, 'refresh_token'), textOf(answer, 'scope')];
  const seconds = Number(answer.expires_in);
  return {
    ...{ access_token, token_type: textOf(answer, 'token_type') ?? 'Bearer', obtainedAt },
    ...(refresh_token !== undefined && { refresh_token }),
    ...(scope !== undefined && { scope }),
    // Tokens without a lifetime, or with none left, get no `expiresAt`, because only a refusal shows that they have expired.
    ...(seconds > 0 && { expiresAt: obtainedAt + Math.min(seconds, MAX_LIFETIME) * 1_000 }),
  };
}

function failure(error: unknown, what: string): Error {
  if (error instanceof RequestError || error instanceof LoginError) return error;
  const hint = error instanceof OAuthRefusal ? hintOf(error) : undefined;
  return new LoginError(`${what} (${describe(error)})`, hint, { cause: error });
}

/** Returns advice about the setting that may cure a refusal. */
function hintOf({ code, message }: OAuthRefusal): string | undefined {
  if (code === 'invalid_target' || /\bresource\b|AADSTS(?:901\d+|28003)/i.test(message))
    return 'if the authorization server does not accept `resource`, set `oauth: { resource: false }`';
  if (/redirect/i.test(message)) return 'set `oauth: { redirectUri: … }` to the redirect URI that is registered there';
  return code === 'invalid_request' ? 'if a parameter is missing, add it with `oauth: { tokenParams: … }`' : undefined;
}

/** Describes an error on one line of 400 characters at most, before the escapes of `printable`. */
function describe(error: unknown): string {
  return printable(errorMessage(error).split('\n', 1)[0]?.slice(0, 400) ?? '');
}
