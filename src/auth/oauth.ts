import { createPrivateKey } from 'node:crypto';
import {
  type AddClientAuthentication,
  type AuthorizationServerMetadata,
  buildDiscoveryUrls,
  createPrivateKeyJwtAuth,
  DpopSession,
  discoverOAuthProtectedResourceMetadata,
  exchangeAuthorization,
  type FetchLike,
  fetchToken,
  generateDpopKeyPair,
  OAuthError,
  type OAuthProtectedResourceMetadata,
  type OAuthTokens,
  RegistrationRejectedError,
  refreshAuthorization,
  registerClient,
  selectClientAuthMethod,
  startAuthorization,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client';
import { errorMessage } from '../errors/error-text.js';
import { isLoopbackHost } from '../http/fetch.js';
import { RequestError } from '../http/send-request.js';
import { isRecord, parseJson } from '../json/json-value.js';
import { printable } from '../json/printable.js';
import type { LoginSettings } from '../supervision/launcher.js';
import { type AuthChallenge, scopesIn } from './challenge.js';
import { LoginError, type LoginRecord, type StoredTokens } from './vault.js';

/*
 * OAuth 2.1 as on the page basic/authorization of revision 2026-07-28, which also works with servers of earlier revisions.
 * Only this file loads the SDK, so it is imported when a token is needed.
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
 * Finds the authorization server in the document that the challenge names, or in the documents at the well-known URLs of the
 * server. A server without such a document (2025-03-26) is its own issuer. Throws a `LoginError` or a `RequestError`.
 */
export async function discover(
  url: URL,
  challenge: AuthChallenge | undefined,
  settings: LoginSettings,
  fetch: FetchLike,
): Promise<Discovered> {
  const document = await resourceMetadata(url, challenge?.params.resource_metadata, fetch);
  if (document !== undefined && !isOfResource(url, document.resource)) {
    throw new LoginError(
      `the server at ${url.href} names another server as its resource (${printable(document.resource)}), which could misuse the token`,
      'ask the operator of the server',
    );
  }
  const issuer = settings.issuer ?? document?.authorization_servers?.[0] ?? url.origin;
  const metadata = await serverMetadata(issuer, fetch);
  if (metadata === undefined && (document !== undefined || settings.issuer !== undefined)) {
    const [first] = buildDiscoveryUrls(issuer);
    throw new LoginError(
      `the authorization server ${printable(issuer)} has no metadata, for example at ${first?.url.href}`,
    );
  }
  const canonical = canonicalResource(url);
  const resource = settings.resource ?? document?.resource ?? canonical;
  const offered = challenge?.params.scope ?? document?.scopes_supported?.join(' ');
  const algorithms = extension(metadata, 'dpop_signing_alg_values_supported');
  return {
    issuer: metadata?.issuer ?? issuer,
    metadata,
    resource: resource === false ? undefined : resource,
    scopes: scopesIn(offered),
    wantsDpop: challenge?.scheme === 'dpop' && Array.isArray(algorithms) && algorithms.includes('ES256'),
  };
}

/** Returns a member that the SDK's types lack. */
function extension(metadata: object | undefined, name: string): unknown {
  return (metadata as Readonly<Record<string, unknown>> | undefined)?.[name];
}

async function resourceMetadata(
  url: URL,
  named: string | undefined,
  fetch: FetchLike,
): Promise<OAuthProtectedResourceMetadata | undefined> {
  const resourceMetadataUrl = named !== undefined && URL.canParse(named) ? new URL(named) : undefined;
  try {
    return await discoverOAuthProtectedResourceMetadata(url, resourceMetadataUrl && { resourceMetadataUrl }, fetch);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    // A document that a server names must exist.
    if (resourceMetadataUrl !== undefined)
      throw new LoginError(
        `the document ${resourceMetadataUrl.href} of the server cannot be used (${messageOf(error)})`,
      );
    return undefined;
  }
}

/**
 * Reads the metadata of an authorization server. Returns `undefined` if there is none. Does not use the SDK for this, because
 * it drops members that it does not know from a document of OpenID Connect, such as the endpoint for revocations.
 */
async function serverMetadata(issuer: string, fetch: FetchLike): Promise<AuthorizationServerMetadata | undefined> {
  if (!URL.canParse(issuer))
    throw new LoginError(`the name ${printable(issuer)} of the authorization server is not a URL`);
  const name = `the authorization server ${printable(issuer)}`;
  for (const { url } of buildDiscoveryUrls(issuer)) {
    const response = await fetch(url, { headers: { accept: 'application/json' } });
    if (response.status >= 500 && response.status !== 502)
      throw new RequestError(`${name} answers HTTP ${response.status} to the request for its metadata`, true);
    if (!response.ok) continue;
    const document: unknown = parseJson(await response.text());
    if (!isRecord(document) || ![document.authorization_endpoint, document.token_endpoint].every(isUrl))
      throw new LoginError(`the metadata of ${name} at ${url.href} cannot be used, because it lacks an endpoint`);
    if (document.issuer !== issuer && `${String(document.issuer)}/` !== issuer)
      throw new LoginError(`the metadata of ${name} belongs to another issuer (${printable(String(document.issuer))})`);
    return { response_types_supported: ['code'], ...document } as unknown as AuthorizationServerMetadata;
  }
  return undefined;
}

function isUrl(value: unknown): value is string {
  return typeof value === 'string' && URL.canParse(value);
}

/** Whether the resource of a document covers the URL. It must have the same origin, and a path that contains the URL's. */
function isOfResource(url: URL, resource: string): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname } = new URL(resource);
  const withSlash = (path: string) => (path.endsWith('/') ? path : `${path}/`);
  return origin === url.origin && withSlash(url.pathname).startsWith(withSlash(pathname));
}

/** Returns the URL in the form for `resource`, without a fragment and without a slash at the end. */
function canonicalResource(url: URL): string {
  const canonical = new URL(url);
  canonical.hash = '';
  return canonical.pathname === '/' && canonical.search === '' ? canonical.origin : canonical.href.replace(/\/$/, '');
}

/** Returns the configured or else the offered scopes, with those that calls lacked, and `offline_access` for renewals. */
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
  const canRenew = metadata?.scopes_supported?.includes('offline_access') === true;
  if (canRenew && settings.grant !== 'client_credentials') all.add('offline_access');
  return [...all];
}

/**
 * Returns the client of a login. In this order: the client of the configuration, its metadata document if the authorization
 * server accepts one, the client that was registered before with the same redirect URI, a newly registered client. Throws a
 * `LoginError`.
 */
export async function clientFor(
  found: Discovered,
  settings: LoginSettings,
  { redirectUri, before, scopes, fetch }: ClientRequest,
): Promise<Client> {
  const { issuer, metadata } = found;
  const { clientId, clientSecret, clientMetadataUrl } = settings;
  if (clientId !== undefined) {
    checkBinding(found, settings, before);
    return {
      client_id: clientId,
      ...(clientSecret && { client_secret: clientSecret }),
      redirectUri,
      isRegistered: false,
    };
  }
  if (clientMetadataUrl !== undefined && metadata?.client_id_metadata_document_supported === true)
    return { client_id: clientMetadataUrl, redirectUri, isRegistered: false };
  const known = before?.issuer === issuer && before.client.isRegistered ? before.client : undefined;
  // Some authorization servers give a client no other scopes than those of its registration.
  const hasScopes = scopes.every((scope) => before?.requestedScopes.includes(scope));
  if (known?.redirectUri === redirectUri && hasScopes) return known;
  if (metadata !== undefined && metadata.registration_endpoint === undefined) {
    throw new LoginError(
      `the authorization server ${printable(issuer)} registers no clients`,
      `register an OAuth app there with the redirect URI ${redirectUri}, and set \`oauth: { clientId: … }\` of the server ${settings.server}`,
    );
  }
  try {
    const registered = await registerClient(issuer, {
      ...(metadata && { metadata }),
      clientMetadata: {
        client_name: 'Trunkline',
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token', ...(hasDeviceCodes(metadata) ? [DEVICE_GRANT] : [])],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
      },
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      fetchFn: fetch,
    });
    const { client_id, client_secret, token_endpoint_auth_method } = registered;
    return {
      client_id,
      ...(client_secret !== undefined && { client_secret }),
      ...(token_endpoint_auth_method !== undefined && { token_endpoint_auth_method }),
      redirectUri,
      isRegistered: true,
    };
  } catch (error) {
    throw failure(error, `the authorization server ${printable(issuer)} does not register Trunkline`);
  }
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

function hasDeviceCodes(metadata: AuthorizationServerMetadata | undefined): boolean {
  return metadata?.grant_types_supported?.includes(DEVICE_GRANT) === true;
}

interface ClientRequest {
  readonly redirectUri: string;
  readonly before: LoginRecord | undefined;
  readonly scopes: readonly string[];
  readonly fetch: FetchLike;
}

/**
 * Throws a `LoginError` if the server names another authorization server than before, because the configured client and its
 * secret belong to the earlier one.
 */
export function checkBinding({ issuer }: Discovered, settings: LoginSettings, before: LoginRecord | undefined): void {
  const { clientId, server } = settings;
  if (clientId === undefined || settings.issuer !== undefined || before?.client.client_id !== clientId) return;
  if (before.issuer === issuer) return;
  throw new LoginError(
    `the server names another authorization server (${printable(issuer)}) than the one that knows this client (${printable(before.issuer)})`,
    `if this is right, set \`oauth: { issuer: … }\` of the server ${server}`,
  );
}

/** Makes the URL for the browser, and the secret that proves that the answer belongs to this URL. Throws a `LoginError`. */
export async function authorizationUrl(
  { issuer, metadata, resource }: Discovered,
  client: Client,
  request: { readonly redirectUri: string; readonly scopes: readonly string[]; readonly state: string },
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
    const page = pageUrl(started.authorizationUrl.href);
    if (page === undefined)
      throw new LoginError(`the page for logins of the authorization server ${printable(issuer)} is not encrypted`);
    return started;
  } catch (error) {
    throw failure(error, `the authorization server ${printable(issuer)} cannot be used`);
  }
}

/** The URL of a page for the browser, as ASCII. `undefined` for a file or a script, and for a page that others on the way can change. */
function pageUrl(text: unknown): string | undefined {
  if (typeof text !== 'string' || !URL.canParse(text)) return undefined;
  const { protocol, hostname, href } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname)) ? href : undefined;
}

/** Checks that the answer in the browser is from this authorization server (RFC 9207). Throws a `LoginError`. */
export function checkIssuer({ metadata }: Discovered, iss: string | undefined): void {
  try {
    validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: metadata?.issuer,
      issParameterSupported: metadata?.authorization_response_iss_parameter_supported === true,
    });
  } catch {
    throw new LoginError(
      'the answer is not from the authorization server of this login (its `iss` is wrong or missing)',
    );
  }
}

/** Parameters of every request for tokens. */
export interface TokenContext {
  readonly issuer: string;
  readonly metadata: AuthorizationServerMetadata | undefined;
  readonly resource: string | undefined;
  readonly client: Client;
  readonly settings: LoginSettings;
  readonly dpop: DpopSession | undefined;
  readonly fetch: FetchLike;
}

/** Makes the context for requests about a stored login. */
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
  answer: {
    readonly code: string;
    readonly iss: string | undefined;
    readonly codeVerifier: string;
    readonly redirectUri: string;
  },
): Promise<StoredTokens> {
  try {
    const { code: authorizationCode, iss, codeVerifier, redirectUri } = answer;
    const tokens = await exchangeAuthorization(context.issuer, {
      ...optionsOf(context),
      ...{ authorizationCode, codeVerifier, redirectUri },
      ...(iss !== undefined && { iss }),
    });
    return stored(tokens);
  } catch (error) {
    throw failure(error, 'the authorization server gives no token');
  }
}

/**
 * Renews tokens. Throws a `RequestError` if the authorization server cannot be asked, and a `RefusedRefresh` if it does not
 * renew them.
 */
export async function refresh(context: TokenContext, refreshToken: string): Promise<StoredTokens> {
  try {
    return stored(await refreshAuthorization(context.issuer, { ...optionsOf(context), refreshToken }));
  } catch (error) {
    if (error instanceof RequestError) throw error;
    if (error instanceof OAuthError && REFUSALS.has(error.code)) throw new RefusedRefresh(error.code);
    throw new RequestError(`the authorization server does not renew the login (${describe(error)})`, true, error);
  }
}

/** The authorization server refused to renew a login, so another login is needed. The message is the code of its error. */
export class RefusedRefresh extends Error {
  override readonly name = 'RefusedRefresh';
}

/** Codes of errors that are final. With any other error, the server may be out of order, and the request is repeated. */
const REFUSALS: ReadonlySet<string> = new Set([
  ...['invalid_grant', 'invalid_client', 'unauthorized_client', 'unsupported_grant_type', 'invalid_scope'],
  ...['invalid_request', 'invalid_target', 'access_denied', 'invalid_dpop_proof'],
]);

/** Gets tokens with the client's own credentials, without a person. Throws a `LoginError` or a `RequestError`. */
export async function clientCredentials(context: TokenContext, scopes: readonly string[]): Promise<StoredTokens> {
  const params = new URLSearchParams({ grant_type: 'client_credentials' });
  if (scopes.length > 0) params.set('scope', scopes.join(' '));
  try {
    return stored(await requestToken(context, params));
  } catch (error) {
    throw failure(error, 'the authorization server gives no token');
  }
}

/** A login with a code that the person types on another device (RFC 8628). */
export interface DeviceLogin {
  readonly userCode: string;
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
  const answer = (await response.json().catch(() => undefined)) as Record<string, unknown> | undefined;
  const { device_code, user_code, verification_uri, verification_uri_complete, expires_in, interval } = answer ?? {};
  const uri = pageUrl(verification_uri_complete) ?? pageUrl(verification_uri);
  if (!response.ok || typeof device_code !== 'string' || typeof user_code !== 'string' || uri === undefined)
    throw new LoginError(`the authorization server gives no device code (HTTP ${response.status})`);
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
        const form = { grant_type: DEVICE_GRANT, device_code };
        return stored(await requestToken(context, new URLSearchParams(form)));
      } catch (error) {
        const code = error instanceof OAuthError ? error.code : '';
        if (code === 'slow_down') intervalMs += 5_000;
        if (code === 'slow_down' || code === 'authorization_pending' || error instanceof RequestError)
          return intervalMs;
        throw failure(error, 'the login was not granted');
      }
    },
  };
}

/** Revokes the tokens (RFC 7009). Resolves with false if the authorization server offers no revocation. */
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
    throw new LoginError(`the authorization server does not revoke the login (HTTP ${response.status})`);
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

function optionsOf(context: TokenContext) {
  const { metadata, client, resource, dpop, fetch } = context;
  const addClientAuthentication = keyAuthentication(context);
  return {
    ...(metadata && { metadata }),
    clientInformation: client,
    ...(resource !== undefined && { resource }),
    ...(addClientAuthentication && { addClientAuthentication }),
    ...(dpop && { dpop }),
    fetchFn: fetch,
  };
}

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

async function requestToken(context: TokenContext, params: URLSearchParams): Promise<OAuthTokens> {
  const { issuer, client, metadata, resource, dpop, fetch } = context;
  const addClientAuthentication = keyAuthentication(context);
  const provider = {
    redirectUrl: undefined,
    clientMetadata: { redirect_uris: [] },
    clientInformation: () => client,
    tokens: () => undefined,
    saveTokens: () => {},
    redirectToAuthorization: () => {},
    saveCodeVerifier: () => {},
    codeVerifier: () => '',
    prepareTokenRequest: () => params,
    ...(addClientAuthentication && { addClientAuthentication }),
    ...(dpop && { dpop: () => dpop }),
  };
  return await fetchToken(provider, issuer, {
    ...(metadata && { metadata }),
    ...(resource !== undefined && { resource }),
    fetchFn: fetch,
  });
}

/** Makes a form for the endpoints of revocations and device codes, with the authentication of a request for tokens. */
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
    params.set('client_id', client_id);
    if (method === 'client_secret_post') params.set('client_secret', client_secret);
  }
  return { method: 'POST', headers, body: params.toString() };
}

/** Limit of a token's lifetime, in seconds, because the end of a longer one may not be a valid date. */
const MAX_LIFETIME = 10 * 365 * 86_400;

function stored(tokens: OAuthTokens): StoredTokens {
  const { access_token, refresh_token, token_type, scope, expires_in } = tokens;
  if (!/^[\x21-\x7e]+$/.test(access_token))
    throw new LoginError('the authorization server sent a token with characters that a header must not have');
  const obtainedAt = Date.now();
  return {
    ...{ access_token, token_type, obtainedAt },
    ...(refresh_token !== undefined && { refresh_token }),
    ...(scope !== undefined && { scope }),
    ...(expires_in !== undefined && { expiresAt: obtainedAt + Math.min(expires_in, MAX_LIFETIME) * 1_000 }),
  };
}

function failure(error: unknown, what: string): Error {
  if (error instanceof RequestError || error instanceof LoginError) return error;
  return new LoginError(`${what} (${describe(error)})`);
}

/** Returns the code of an error, if it looks like one. Leaves other text out, because it may repeat secrets. */
function describe(error: unknown): string {
  if (error instanceof OAuthError) return /^[a-z_]{1,40}$/.test(error.code) ? error.code : 'an unknown error';
  if (error instanceof RegistrationRejectedError) return `HTTP ${error.status}`;
  return error instanceof SyntaxError || nameOf(error) === 'ZodError' ? 'its answer cannot be read' : messageOf(error);
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

function messageOf(error: unknown): string {
  return printable(errorMessage(error).split('\n', 1)[0]?.slice(0, 200) ?? '');
}
