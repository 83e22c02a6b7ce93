// A gateway with a front, an identity provider behind it, and browsers with persons in them.
import { createHash, randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import type { FrontConfig, HttpConfig } from '../../../src/config/file/check-file.js';
import { UserCheck } from '../../../src/downstream/users/user-check.js';
import { createRoutes, type FrontOptions } from '../../../src/extras/front/routes.js';
import { systemClock } from '../../../src/host/observe/system-clock.js';
import { type ServedGateway, serveGateway } from '../../downstream/http/served-gateway.js';
import { DEFAULT_LIMITS } from '../../downstream/http/serving.js';
import { startProvider } from '../../fixtures/servers/protected.mjs';
import { freePort } from '../../support/free-port.js';

export const CLIENT_ID = 'trunkline-at-the-provider';
/** Where the client of the tests listens. Nothing does. */
export const REDIRECT = 'http://127.0.0.1:59999/callback';
export const SCOPE = 'mcp:read';

/** The characters of identity providers. */
export const CHARACTERS = {
  'registers clients': { registers: true },
  'registers no clients': {},
  'is as strict as Entra': { isStrict: true },
  'rotates refresh tokens': { rotates: true },
};

type Provider = Awaited<ReturnType<typeof startProvider>>;

interface FrontPlaceOptions {
  readonly character?: keyof typeof CHARACTERS;
  readonly front?: Partial<FrontConfig>;
  readonly fetchDocument?: FrontOptions['fetchDocument'];
  readonly takeOnce?: FrontOptions['takeOnce'];
  readonly limits?: Partial<HttpConfig>;
  /** Whether the provider answers nothing from the beginning. */
  readonly isAway?: boolean;
}

export class FrontPlace {
  readonly publicUrl: string;
  readonly provider: Provider;
  readonly gateway: ServedGateway;
  /** What the front has logged. */
  readonly log: unknown[];
  /** Milliseconds by which the time of sealed texts is ahead. */
  readonly time: { ahead: number };
  /** Serves the same front on another port, as another gateway behind the same balancer. Returns its URL. */
  readonly another: (changed?: Partial<FrontConfig>) => Promise<string>;

  static async open({ character = 'registers no clients', ...options }: FrontPlaceOptions = {}): Promise<FrontPlace> {
    const port = await freePort();
    const publicUrl = `http://127.0.0.1:${port}`;
    const resource = `${publicUrl}/mcp`;
    const callback = `${publicUrl}/authorize/callback`;
    const before: Provider['before'] = (_, response) => {
      if (options.isAway) response.writeHead(503).end();
      return options.isAway === true;
    };
    const provider = await startProvider({ resource, callback, clientId: CLIENT_ID, before, ...CHARACTERS[character] });
    onTestFinished(async () => {
      await provider.close();
    });
    const log: unknown[] = [];
    const time = { ahead: 0 };
    const { front, fetchDocument = async () => new Response('', { status: 404 }), limits = {} } = options;
    const http: HttpConfig = {
      ...{ ...DEFAULT_LIMITS, ...limits, publicUrl },
      auth: {
        jwt: { issuer: provider.issuer, audience: [resource], scopes: [SCOPE] },
        front: { clientId: CLIENT_ID, ...front },
      },
    };
    const note = (...line: unknown[]) => void log.push(line);
    const serve = async (at: number, changed: Partial<FrontConfig> = {}) => {
      const front = { clientId: CLIENT_ID, ...http.auth?.front, ...changed };
      const users = new UserCheck({ ...http, clock: systemClock, now: Date.now, log: { warn: note, error: note } });
      if (users.provider === undefined) throw new Error('no provider');
      const userOf = (token: string) => users.userOf(token);
      const { routes } = createRoutes({
        http: { ...http, auth: { ...http.auth, front } },
        users: { provider: users.provider, userOf, originOf: () => ({ environment: {}, folder: '/' }) },
        ...{ fetchDocument, clock: systemClock, groups: () => [] },
        keys: [Buffer.alloc(32, 7)],
        takeOnce: options.takeOnce ?? (async () => true),
        now: () => Date.now() + time.ahead,
        logger: { warn: note },
      });
      const more = { port: at, routes, allowedHosts: [`127.0.0.1:${port}`] };
      return await serveGateway({ servers: { files: { tools: ['read'] } } }, users, undefined, more);
    };
    const gateway = await serve(port);
    return new FrontPlace({
      publicUrl,
      provider,
      gateway,
      log,
      time,
      another: async (changed) => (await serve(0, changed)).url,
    });
  }

  private constructor(parts: Pick<FrontPlace, 'publicUrl' | 'provider' | 'gateway' | 'log' | 'time' | 'another'>) {
    this.publicUrl = parts.publicUrl;
    this.provider = parts.provider;
    this.gateway = parts.gateway;
    this.log = parts.log;
    this.time = parts.time;
    this.another = parts.another;
  }

  /** Registers a client. Returns its id. */
  async register(redirectUris: readonly string[] = [REDIRECT], name = 'Test Client'): Promise<string> {
    const { body } = await this.ask('/register', JSON.stringify({ client_name: name, redirect_uris: redirectUris }));
    return body.client_id;
  }

  /** Sends a POST request to the front. */
  async ask(path: string, body: string | Readonly<Record<string, string>>, origin = this.publicUrl) {
    const sent = typeof body === 'string' ? body : new URLSearchParams(body);
    const response = await fetch(`${origin}${path}`, { method: 'POST', body: sent });
    const text = await response.text();
    return { status: response.status, text, body: JSON.parse(text), headers: response.headers };
  }

  /** A login that a client has begun, before a browser has opened its address. */
  async begin(more: Readonly<Record<string, string | undefined>> = {}): Promise<BegunLogin> {
    const clientId = more.client_id ?? (await this.register());
    const verifier = randomBytes(32).toString('base64url');
    const params = {
      ...{ response_type: 'code', client_id: clientId, redirect_uri: REDIRECT, state: 'state-of-the-client' },
      ...{ code_challenge: challengeOf(verifier), code_challenge_method: 'S256', resource: `${this.publicUrl}/mcp` },
      ...more,
    };
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(params)) if (value !== undefined) query.set(name, value);
    return { url: `${this.publicUrl}/authorize?${query}`, clientId, verifier, redirectUri: params.redirect_uri };
  }

  /** Logs a person in, up to the code that the client gets. */
  async logIn(browser = new Browser('alice')): Promise<BegunLogin & { readonly code: string }> {
    const begun = await this.begin();
    const code = paramsOf(await browser.logIn(begun.url)).get('code') ?? '';
    return { ...begun, code };
  }

  redeem(
    { code, clientId, verifier, redirectUri }: BegunLogin & { readonly code: string },
    more: Readonly<Record<string, string>> = {},
    origin = this.publicUrl,
  ) {
    const params = {
      ...{ grant_type: 'authorization_code', code, client_id: clientId, code_verifier: verifier },
      redirect_uri: redirectUri,
      ...more,
    };
    return this.ask('/token', params, origin);
  }

  renew(clientId: string, refreshToken: string, more: Readonly<Record<string, string>> = {}) {
    return this.ask('/token', {
      ...{ grant_type: 'refresh_token', refresh_token: refreshToken, client_id: clientId },
      ...more,
    });
  }

  /** The status of a request to the gateway with this token. */
  async statusWith(token: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' };
    const body = JSON.stringify({
      ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    });
    const init = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body };
    const response = await fetch(`${this.publicUrl}/mcp`, init);
    await response.text();
    return response.status;
  }
}

export interface BegunLogin {
  readonly url: string;
  readonly clientId: string;
  readonly verifier: string;
  readonly redirectUri: string;
}

export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

export function paramsOf(url: string): URLSearchParams {
  return new URL(url).searchParams;
}

/** The address behind the button of a page that leads back to the client; empty without one. */
export function backOf({ text }: Page): string {
  const [, href = ''] = /href="([^"]+)"/.exec(text) ?? [];
  return href.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code));
}

export interface Page {
  /** The address of the page, or the one of a client to which the browser was sent. */
  readonly url: string;
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

/** A browser with a person in it. It keeps cookies by host, and opens no address of a client. */
export class Browser {
  /** The name with which the person logs in. */
  readonly name: string;
  readonly cookies = new Map<string, string>();
  /** The addresses that it has opened. */
  readonly visited: string[] = [];
  /** Called before an address is opened. Returns false to stop before it. */
  opens: (url: string) => boolean = (url) => url.startsWith('http') && !url.startsWith(REDIRECT);

  constructor(name: string) {
    this.name = name;
  }

  /** Opens an address, and follows all redirects. */
  async open(url: string, form?: URLSearchParams, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
    let next = url;
    let body = form;
    for (let step = 0; step < 20; step += 1) {
      this.visited.push(next);
      const origin = body === undefined ? {} : { origin: new URL(next).origin };
      const response = await fetch(next, {
        redirect: 'manual',
        headers: { cookie: [...this.cookies].map((pair) => pair.join('=')).join('; '), ...origin, ...headers },
        ...(body && { method: 'POST', body }),
      });
      for (const cookie of response.headers.getSetCookie()) this.#keep(cookie);
      const page = { url: next, status: response.status, text: await response.text(), headers: response.headers };
      const location = response.headers.get('location');
      if (location === null) return page;
      next = new URL(location, next).href;
      if (!this.opens(next)) return { ...page, url: location };
      body = undefined;
    }
    throw new Error(`Too many redirects: ${this.visited.join(' ')}`);
  }

  /** Submits the form of a page, with this button of the page. */
  async submit(page: Page, button: 'allow' | 'deny' = 'allow', headers = {}): Promise<Page> {
    return await this.open(
      new URL(/<form[^>]* action="([^"]+)"/.exec(page.text)?.[1] ?? '', page.url).href,
      this.formOf(page, button),
      headers,
    );
  }

  formOf({ text }: Page, button = 'allow'): URLSearchParams {
    const form = new URLSearchParams({ decision: button, login: this.name, password: 'x' });
    for (const [input] of text.matchAll(/<input[^>]*type="hidden"[^>]*>/g)) {
      const value = (name: string) => new RegExp(`${name}="([^"]*)"`).exec(input)?.[1] ?? '';
      form.set(value('name'), value('value'));
    }
    return form;
  }

  /** Says yes to everything. Returns the address of the client to which the login leads, or fails with the last page. */
  async logIn(url: string): Promise<string> {
    let page = await this.open(url);
    for (let step = 0; step < 10 && page.text.includes('<form'); step += 1) page = await this.submit(page);
    if (page.url.startsWith('http') && this.opens(page.url))
      throw new Error(`${page.status} at ${page.url}: ${page.text}`);
    return page.url;
  }

  #keep(cookie: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
    if (value === '' || /max-age=0/i.test(cookie)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}
