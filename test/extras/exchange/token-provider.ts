// An identity provider that exchanges tokens as the test says, and servers that take only what it gave.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { onTestFinished } from 'vitest';
import { exchange } from '../../../src/extras/exchange/index.js';
import { HttpGateway } from '../../support/http-gateway.js';
import { json, serve } from '../../upstream/http/remote-server.js';

const AUDIENCE = 'https://gateway.test/mcp';
export const SECRET = 'secret-of-the-client-4711';

/** A request for a token. */
export interface Asked {
  readonly form: Readonly<Record<string, string>>;
  readonly headers: IncomingMessage['headers'];
  /** The user in the token that is exchanged; empty if the provider does not know it. */
  readonly user: string;
}

interface Answered {
  readonly status?: number;
  readonly body?: object | string;
  readonly headers?: Readonly<Record<string, string>>;
}

export class TokenProvider {
  readonly issuer: string;
  readonly asked: Asked[] = [];
  /** Members that replace those of the metadata. */
  metadata: object = {};
  /** Answers a request, the `at`-th one. `undefined` gives the token `for-USER-AT`. */
  answer: (asked: Asked, at: number) => Answered | undefined | Promise<Answered | undefined> = () => undefined;
  readonly #key: CryptoKey;
  readonly #jwk: object;
  readonly #users = new Map<string, string>();

  static async open(): Promise<TokenProvider> {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
    const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' };
    let opened: TokenProvider | undefined;
    const server = createServer((request, response) => void opened?.serve(request, response));
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    opened = new TokenProvider(issuer, privateKey, jwk);
    return opened;
  }

  private constructor(issuer: string, key: CryptoKey, jwk: object) {
    this.issuer = issuer;
    this.#key = key;
    this.#jwk = jwk;
  }

  /** A token with which a user comes to the gateway. */
  async tokenOf(user: string, more: object = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1_000);
    const claims = {
      iss: this.issuer,
      aud: AUDIENCE,
      sub: user,
      iat: now,
      exp: now + 600,
      jti: `${Math.random()}`,
      ...more,
    };
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'one' }).sign(this.#key);
    this.#users.set(token, user);
    return token;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '', this.issuer);
    const send = (status: number, body: object | string, headers: object = {}) =>
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(typeof body === 'string' ? body : JSON.stringify(body));
    if (pathname === '/keys') send(200, { keys: [this.#jwk] });
    else if (pathname.startsWith('/.well-known/')) {
      const own = { issuer: this.issuer, jwks_uri: `${this.issuer}/keys`, token_endpoint: `${this.issuer}/token` };
      send(200, { ...own, ...this.metadata });
    } else if (pathname === '/token') {
      let text = '';
      for await (const chunk of request) text += chunk;
      const form = Object.fromEntries(new URLSearchParams(text));
      const user = this.#users.get(form.subject_token ?? form.assertion ?? '') ?? '';
      const asked = { form, headers: request.headers, user };
      this.asked.push(asked);
      const token = `for-${user}-${this.asked.length}`;
      const usual = { access_token: token, token_type: 'Bearer', expires_in: 3600 };
      const { status = 200, body = usual, headers = {} } = (await this.answer(asked, this.asked.length)) ?? {};
      send(status, body, headers);
    } else send(404, {});
  }
}

/** A server that takes only tokens that begin with `for-`, and whose tool `who` says which one it got. */
export async function guarded(accepts: (token: string) => boolean = (token) => token.startsWith('for-')) {
  return await serve(({ message, headers, response, method }) => {
    const [, token = ''] = /^Bearer (.*)$/.exec(headers.authorization ?? '') ?? [];
    if (!accepts(token)) {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
      return true;
    }
    if (method !== 'POST') return undefined;
    const result = (content: object) => json(response, { jsonrpc: '2.0', id: message.id, result: content });
    if (message.method === 'tools/list') return result({ tools: [{ name: 'who', inputSchema: { type: 'object' } }] });
    if (message.method === 'tools/call') return result({ content: [{ type: 'text', text: token }] });
    return undefined;
  });
}

/** A gateway with users of the provider, in front of a server with `auth.exchange`. */
export async function exchanging(provider: TokenProvider, url: string, settings: object = {}, entry: object = {}) {
  const far = { url: `${url}/mcp`, start: 'lazy', auth: { exchange: settings }, ...entry };
  const auth = { jwt: { issuer: provider.issuer, audience: [AUDIENCE], jwksUri: `${provider.issuer}/keys` } };
  return await HttpGateway.start({
    servers: { far },
    gateway: { http: { publicUrl: 'http://127.0.0.1:1', auth } },
    features: [exchange],
    secrets: { CLIENT: SECRET },
  });
}

/** Calls the tool in the name of a user. Resolves with the text of the result. */
export async function who(
  gateway: HttpGateway,
  token: string,
  session: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { status, body } = await gateway.call('far__who', {}, { ...session, authorization: `Bearer ${token}` });
  return body.result?.content?.[0]?.text ?? `${status} ${JSON.stringify(body)}`;
}
