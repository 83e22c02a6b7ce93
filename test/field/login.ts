// The login of a row: a server that wants a token, its authorization server on the same origin, and the person in the browser.
import type { ServerResponse } from 'node:http';
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import type { Config } from '../../src/config/resolve/config.js';
import { openVault } from '../../src/extras/cluster/open-stores.js';
import { systemClock } from '../../src/host/observe/system-clock.js';
import { beginLogin } from '../../src/upstream/auth/login.js';
import { LoginError } from '../../src/upstream/auth/vault.js';
import type { Message } from '../support/wire.js';
import type { HttpPlay, HttpRequest } from './http-play.js';

/** A request to the authorization server. */
interface SiteRequest extends HttpRequest {
  /** Makes tokens that the server accepts. */
  readonly grant: () => Message;
}

/** An answer: JSON in which `ORIGIN` is the origin of the server, or whatever the function sends. */
export type SiteAnswer = Message | SendAnswer;

export type SendAnswer = (request: SiteRequest, response: ServerResponse) => unknown;

/** A server with a login, by what makes it different from a sound one. */
export interface LoginPlay {
  /** Answers by path, in place of those of a sound authorization server. */
  readonly site?: Readonly<Record<string, SiteAnswer>>;
  /** Members of the metadata of the authorization server; `undefined` removes one. */
  readonly metadata?: Message;
  /** Members of the answers with tokens. */
  readonly tokens?: Message;
  /** How many requests an access token serves. */
  readonly uses?: number;
  /** Value of `WWW-Authenticate`. */
  readonly challenge?: string;
}

export const RESOURCE = '/.well-known/oauth-protected-resource';
export const METADATA = '/.well-known/oauth-authorization-server';

/** Returns the server of a login. Each listener has tokens and codes of its own, because their numbers go on. */
export function guarded({ site = {}, metadata = {}, tokens = {}, uses = 1000, ...play }: LoginPlay): HttpPlay {
  const left = new Map<string, number>();
  let last = 0;
  const sound: Record<string, SiteAnswer> = {
    [RESOURCE]: { resource: 'ORIGIN/mcp', authorization_servers: ['ORIGIN'] },
    [METADATA]: {
      ...{ issuer: 'ORIGIN', authorization_endpoint: 'ORIGIN/authorize', token_endpoint: 'ORIGIN/token' },
      ...{ registration_endpoint: 'ORIGIN/register', response_types_supported: ['code'] },
      ...{ code_challenge_methods_supported: ['S256'], grant_types_supported: ['authorization_code', 'refresh_token'] },
      ...metadata,
    },
    '/register': ({ message }, response) => sendJson(response, { client_id: 'c', ...message }, 201),
    '/authorize': ({ path, origin }, response) => {
      const { searchParams } = new URL(path, origin);
      const back = new URL(searchParams.get('redirect_uri') ?? origin);
      back.searchParams.set('code', 'code');
      back.searchParams.set('state', searchParams.get('state') ?? '');
      response.writeHead(302, { location: back.href }).end();
    },
    '/token': (_, response) => sendJson(response, grant()),
  };
  function grant(): Message {
    last += 1;
    const token = { access_token: `t${last}`, token_type: 'Bearer', refresh_token: `r${last}`, expires_in: 3600 };
    left.set(token.access_token, uses);
    return { ...token, ...tokens };
  }
  return {
    take: (request, response) => {
      const path = request.path.split('?', 1)[0] ?? '';
      const answer = site[path] ?? sound[path];
      if (typeof answer === 'function') {
        answer({ ...request, grant }, response);
        return true;
      }
      if (answer !== undefined) {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(answer).replaceAll('ORIGIN', request.origin));
        return true;
      }
      if (path !== '/mcp') {
        response.writeHead(404).end();
        return true;
      }
      const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
      const uses = left.get(token) ?? 0;
      if (uses > 0) {
        left.set(token, uses - 1);
        return false;
      }
      const challenge = (play.challenge ?? 'Bearer').replaceAll('ORIGIN', request.origin);
      response.writeHead(401, { 'www-authenticate': challenge }).end();
      return true;
    },
  };
}

/** Sends JSON. */
export function sendJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Opens a page as a browser does. Resolves with the address to which it is sent back. */
async function browse(page: string | URL): Promise<URL> {
  const response = await fetch(page, { redirect: 'manual' });
  const location = response.headers.get('location');
  if (location === null) throw new Error(`the page shows ${response.status}: ${(await response.text()).slice(0, 100)}`);
  return new URL(location);
}

/** What an official client needs for its login, kept in memory. */
export class LoginOfSdk implements OAuthClientProvider {
  readonly redirectUrl = 'http://127.0.0.1:27899/callback';
  readonly clientMetadata = {
    ...{ client_name: 'field', redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none' },
    ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
  };
  /** The address to which the browser was sent back. */
  back: Promise<URL> | undefined;
  readonly #kept: { client?: Message; tokens?: Message; verifier?: string } = {};

  state = () => 'state';
  clientInformation = () => this.#kept.client as never;
  tokens = () => this.#kept.tokens as never;
  codeVerifier = () => this.#kept.verifier ?? '';

  saveClientInformation(client: Message): void {
    this.#kept.client = client;
  }
  saveTokens(tokens: Message): void {
    this.#kept.tokens = tokens;
  }
  saveCodeVerifier(verifier: string): void {
    this.#kept.verifier = verifier;
  }
  redirectToAuthorization(page: URL): void {
    this.back = browse(page);
    this.back.catch(() => {});
  }
}

/** Logs in at a server of the configuration, as `trunkline login` does. Returns why that failed. */
export async function logIn(config: Config, key: string): Promise<string | undefined> {
  const { spec } = config.servers.find((server) => server.key === key) ?? {};
  if (spec?.kind !== 'remote' || spec.login === undefined) throw new Error(`${key} has no login`);
  const vault = await openVault(config);
  try {
    const pending = await beginLogin({ spec: { ...spec, login: spec.login }, vault, clock: systemClock });
    const back = await browse(pending.url).catch((error: Error) => error);
    if (back instanceof Error) {
      const state = new URL(pending.url).searchParams.get('state') ?? '';
      pending.submit(`${pending.redirectUri}?${new URLSearchParams({ error: back.message, state })}`);
    } else pending.submit(back.href);
    await pending.finished;
    return undefined;
  } catch (error) {
    return `${(error as Error).message}${error instanceof LoginError && error.hint ? `; ${error.hint}` : ''}`;
  }
}
