import type { HttpConfig } from '../../config/file/check-file.js';
import type { HttpRoute, RouteAnswer, RouteRequest } from '../../downstream/http/http-route.js';
import { FairBucket, RequestRates } from '../../downstream/http/rate-limit.js';
import { createFetch } from '../../host/http/fetch.js';
import type { Logger } from '../../host/observe/logger.js';
import type { Keys } from '../../host/sealed-bytes.js';
import type { Clock } from '../../wire/timing/clock.js';
import { Cookies } from '../cookies.js';
import type { GatewayUsers, Persons } from '../feature.js';
import { SealedTexts } from '../sealed-texts.js';
import { ShortMemory } from '../short-memory.js';
import { faultPage } from '../web-page.js';
import { Clients } from './clients.js';
import { LOGIN_PATHS, Logins } from './logins.js';
import { FrontPersons } from './persons.js';
import { Provider } from './provider.js';
import { Redirects } from './redirects.js';
import { jsonAnswer, OPEN, TokenRequests, tooMany } from './token-requests.js';

export interface FrontOptions {
  readonly http: HttpConfig;
  readonly users: GatewayUsers;
  /** The keys of everything that this gateway gives away sealed. */
  readonly keys: Keys;
  /** The groups that pages ask for. */
  readonly groups: () => readonly string[];
  /** Takes a name among all gateways, as in `Feature`. */
  readonly takeOnce: (name: string, ms: number) => Promise<boolean>;
  /** Reads documents of clients, whose addresses anybody may choose. */
  readonly fetchDocument: (url: string) => Promise<Response>;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly logger: Pick<Logger, 'warn'>;
}

/** Requests for documents of clients, which anybody can cause. Hosts share the rate. */
const DOCUMENT_RATE = { requestsPerSecond: 1, requestBurst: 20 };
/** Renewals that the provider refuses. It may lock the gateway out if there are many, so the clients that cause more of them wait. */
const REFUSED_RATE = { perSecond: 5, burst: 20 };
const METADATA_PATHS = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'];
const METADATA_HEADERS = { ...OPEN, 'content-type': 'application/json' };
const PREFLIGHT: RouteAnswer = {
  status: 204,
  headers: { ...OPEN, 'access-control-allow-methods': 'GET, POST', 'access-control-allow-headers': '*' },
  body: '',
};

/** The paths of the front, and the persons who sign in through it. */
export function createRoutes(options: FrontOptions): {
  readonly routes: readonly HttpRoute[];
  readonly persons: Persons | undefined;
} {
  const { http, users, keys, fetchDocument, clock, now, logger } = options;
  const { publicUrl = '', auth: { front: config, jwt } = {} } = http;
  if (config === undefined || jwt === undefined) return { routes: [], persons: undefined };
  const scopes = config.scopes ?? jwt.scopes ?? [];
  const { issuer } = jwt;
  const sealed = new SealedTexts(keys, now);
  const documents = new RequestRates(DOCUMENT_RATE);
  const clients = new Clients({
    ...{ config, sealed, clock, fetchDocument },
    redirects: new Redirects(config.redirects),
    mayFetch: (host) => documents.refuse('documents', host, clock.now()) === undefined,
    onFault: (url, fault) =>
      logger.warn({ url, fault }, 'the document of a program that wants to log in cannot be used'),
  });
  let lastFault: string | undefined;
  const provider = new Provider({
    ...{ config, issuer, scopes, metadata: users.provider },
    needed: jwt.scopes ?? scopes.filter((scope) => scope !== 'offline_access'),
    callback: `${publicUrl}${LOGIN_PATHS.callback}`,
    fetch: createFetch({ clock, server: new URL(issuer) }),
    onFault: (fault) => {
      if (fault !== undefined && fault !== lastFault)
        logger.warn({ issuer, fault }, 'a login through this gateway failed');
      lastFault = fault;
    },
  });
  const cookies = new Cookies(publicUrl);
  const { clientId } = config;
  const userOf = (token: string) => users.userOf(token);
  const { groups } = options;
  const persons = new FrontPersons({ clientId, provider, sealed, cookies, userOf, groups });
  const logins = new Logins({ publicUrl, issuer, scopes, clients, provider, sealed, cookies, persons, now });
  const onThisMachine = new ShortMemory(clock);
  const takeOnce = async (name: string, ms: number) => {
    if (!onThisMachine.add(name, ms)) return false;
    return await options.takeOnce(name, ms).catch((err: unknown) => {
      logger.warn({ err }, 'a login failed, because the gateways of the cluster cannot agree on the use of its code');
      throw err;
    });
  };
  const refused = new FairBucket({ ...REFUSED_RATE, now: clock.now() });
  const waiting = new ShortMemory(clock);
  const requests = new TokenRequests({
    ...{ publicUrl, clients, provider, sealed, takeOnce },
    mayRenew: (client) => !waiting.has(client),
    onRefused: (client) => {
      const waitMs = refused.take(client, clock.now());
      if (waitMs > 0) waiting.add(client, waitMs);
    },
  });
  const rates = new RequestRates(http);
  /** Serves requests within a rate for each address. */
  const limited =
    (path: string, serve: HttpRoute['serve'], refuse: (wait: string) => RouteAnswer) => (request: RouteRequest) => {
      const over = rates.refuse(path, request.address, clock.now());
      return over === undefined ? serve(request) : refuse(over.headers?.['retry-after'] ?? '1');
    };
  const page = (serve: HttpRoute['serve']) =>
    limited('browsers', serve, (wait) => faultPage(429, `Too many logins are begun here. Try again in ${wait} s.`));
  const post = (path: string, serve: HttpRoute['serve'], isFree = (_: RouteRequest) => false): HttpRoute[] => {
    const within = limited(path, serve, tooMany);
    return [
      { method: 'POST', path, serve: (request) => (isFree(request) ? serve(request) : within(request)) },
      { method: 'OPTIONS', path, serve: () => PREFLIGHT },
    ];
  };
  const routes: readonly HttpRoute[] = [
    ...METADATA_PATHS.flatMap((path): HttpRoute[] => [
      { method: 'GET', path, serve: async () => describe(publicUrl, await provider.members()) },
      { method: 'OPTIONS', path, serve: () => PREFLIGHT },
    ]),
    { method: 'GET', path: LOGIN_PATHS.begin, serve: page((request) => logins.begin(request)) },
    { method: 'POST', path: LOGIN_PATHS.consent, serve: page((request) => logins.consent(request)) },
    { method: 'GET', path: LOGIN_PATHS.callback, serve: page((request) => logins.callback(request)) },
    ...post('/register', (request) => requests.register(request)),
    ...post(
      '/token',
      (request) => requests.token(request),
      (request) => requests.redeemsCode(request),
    ),
  ];
  return { routes, persons };
}

/** The metadata of this gateway as an authorization server (RFC 8414). */
function describe(publicUrl: string, ofProvider: Readonly<Record<string, unknown>> | undefined): RouteAnswer {
  const metadata = {
    ...ofProvider,
    issuer: publicUrl,
    authorization_endpoint: `${publicUrl}${LOGIN_PATHS.begin}`,
    token_endpoint: `${publicUrl}/token`,
    registration_endpoint: `${publicUrl}/register`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  };
  const cached = { 'cache-control': ofProvider === undefined ? 'no-store' : 'max-age=300' };
  return jsonAnswer(200, metadata, { ...METADATA_HEADERS, ...cached });
}
