// A gateway over HTTP with users, their identity provider, and a server that wants a login of each of them.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { pino } from 'pino';
import { onTestFinished, vi } from 'vitest';
import { GatewayProcess } from '../../../src/app/gateway-process.js';
import { createPlatform } from '../../../src/app/platform.js';
import { serveHttp } from '../../../src/app/serve-http.js';
import { asking } from '../../../src/extras/asking/index.js';
import { front } from '../../../src/extras/front/index.js';
import { userLogins } from '../../../src/extras/user-logins/index.js';
import { createSeals } from '../../../src/state/seal.js';
import { startProtected, startProvider } from '../../fixtures/servers/protected.mjs';
import { freePort } from '../../support/free-port.js';
import { loadAnyConfig } from '../../support/load-config.js';
import { dataIn } from '../../support/platform.js';
import { Browser, type Page, paramsOf } from '../front/front-place.js';

export { Browser, type Page };

const CLIENT_ID = 'trunkline-at-the-provider';
const SCOPE = 'mcp:read';

interface LoginPlaceOptions {
  readonly hasFront?: boolean;
  readonly servers?: Readonly<Record<string, object>>;
  /** Settings of the gateway besides `http`. */
  readonly gateway?: object;
  /** The groups of users. */
  readonly groupsOf?: Readonly<Record<string, readonly string[]>>;
  readonly lifetimeSeconds?: number;
  /** The folder of the variables of users. */
  readonly variables?: string;
  /** Claims a name among all gateways, as the store of a cluster does. */
  readonly takeOnce?: (name: string) => Promise<boolean>;
}

type Server = Awaited<ReturnType<typeof startProtected>>;

export class LoginPlace {
  readonly folder = mkdtempSync('/tmp/tll-');
  readonly publicUrl: string;
  /** The server at which users log in, and its authorization server. */
  readonly server: Server;
  readonly provider: Awaited<ReturnType<typeof startProvider>>;
  readonly composition: GatewayProcess;
  readonly log: string[] = [];
  readonly #clients: Client[] = [];

  static async open(options: LoginPlaceOptions = {}): Promise<LoginPlace> {
    const port = await freePort();
    const publicUrl = `http://127.0.0.1:${port}`;
    const callback = `${publicUrl}/authorize/callback`;
    const provider = await startProvider({
      ...{ resource: `${publicUrl}/mcp`, callback, clientId: CLIENT_ID },
      groupsOf: options.groupsOf ?? {},
    });
    const server = await startProtected({ lifetimeSeconds: options.lifetimeSeconds ?? 3_600 });
    const place = new LoginPlace(publicUrl, provider, server, options);
    await place.#serve(port);
    return place;
  }

  private constructor(
    publicUrl: string,
    provider: LoginPlace['provider'],
    server: Server,
    { hasFront = false, servers = {}, gateway = {}, variables, takeOnce }: LoginPlaceOptions,
  ) {
    for (const [name, value] of Object.entries(dataIn(this.folder))) vi.stubEnv(name, value);
    this.publicUrl = publicUrl;
    this.provider = provider;
    this.server = server;
    const jwt = { issuer: provider.issuer, audience: [`${publicUrl}/mcp`], scopes: [SCOPE] };
    const auth = { jwt, ...(hasFront && { front: { clientId: CLIENT_ID } }), ...(variables && { variables }) };
    const file = join(this.folder, 'trunkline.yaml');
    const entries = { files: { url: server.url, login: 'user' }, ...servers };
    writeFileSync(file, JSON.stringify({ servers: entries, gateway: { ...gateway, http: { publicUrl, auth } } }));
    this.composition = new GatewayProcess({
      config: loadAnyConfig(file, { env: process.env, nodePath: process.execPath }),
      platform: createPlatform(),
      logger: pino({ level: 'debug' }, { write: (line: string) => this.log.push(line) }),
      environment: process.env,
      seals: createSeals({ secret: randomUUID() }),
      features: [
        ...(hasFront ? [front] : []),
        userLogins,
        asking,
        ...(takeOnce ? [() => ({ apply: () => {}, close: () => {}, takeOnce })] : []),
      ],
      runFolder: join(this.folder, 'run'),
      approvals: { approvalsFolder: join(this.folder, 'a'), withheldFolder: join(this.folder, 'w'), purpose: 'serve' },
      http: 'users',
    });
  }

  async #serve(port: number): Promise<void> {
    const { composition } = this;
    const { logger, config } = composition;
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    await composition.prepared;
    const served = await serveHttp({
      settings: { host: '127.0.0.1', port, noAuth: false, allowedHosts: [], allowedOrigins: [], tls: undefined },
      ...{ http: config.gateway.http, composition, logger },
    });
    await composition.start();
    onTestFinished(async () => {
      vi.restoreAllMocks();
      vi.unstubAllEnvs();
      await Promise.all(this.#clients.map((client) => client.close()));
      await served.close();
      await composition.stop({ termAfterMs: 300, killAfterMs: 600 });
      await Promise.all([this.provider.close(), this.server.close()]);
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  /** Returns an access token of a user for this gateway. */
  async tokenOf(name: string): Promise<string> {
    const verifier = randomBytes(32).toString('base64url');
    const callback = `${this.publicUrl}/authorize/callback`;
    const query = new URLSearchParams({
      ...{ response_type: 'code', client_id: CLIENT_ID, redirect_uri: callback, scope: `openid ${SCOPE}` },
      ...{ code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256' },
    });
    const browser = new Browser(name);
    browser.opens = (url) => url.startsWith(this.provider.issuer);
    const code = paramsOf(await browser.logIn(`${this.provider.issuer}/auth?${query}`)).get('code') ?? '';
    const body = new URLSearchParams({
      ...{ grant_type: 'authorization_code', client_id: CLIENT_ID, redirect_uri: callback, code },
      code_verifier: verifier,
    });
    const response = await fetch(`${this.provider.issuer}/token`, { method: 'POST', body });
    return ((await response.json()) as { access_token: string }).access_token;
  }

  /** The stored login of a user at the server. */
  async loginOf(name: string) {
    const vault = await this.composition.openVault();
    return await vault.read(this.#loginIdOf(name));
  }

  /** Replaces the token of a user at the server by one that has ended, and that nothing can renew. */
  async endTokenOf(name: string): Promise<void> {
    const vault = await this.composition.openVault();
    await vault.locked(this.#loginIdOf(name), AbortSignal.timeout(10_000), async (login) => {
      const record = await login.read();
      if (record?.tokens === undefined) throw new Error(`${name} has no token`);
      const { refresh_token: _, ...tokens } = record.tokens;
      await login.write({ ...record, tokens: { ...tokens, access_token: randomUUID(), expiresAt: Date.now() - 1 } });
    });
  }

  #loginIdOf(name: string) {
    const user = createHash('sha256').update(`${this.provider.issuer}\0${name}`).digest('hex');
    return { server: 'files', configFile: this.composition.config.file, url: this.server.url, user };
  }

  /** Opens an address up to the login page of the server, which is not opened. Returns the address of that page. */
  async toServer(url: string, browser: Browser): Promise<Page> {
    browser.opens = (next) => !next.startsWith(this.server.issuer);
    return await this.#submitAll(await browser.open(url), browser);
  }

  /** Logs in at the server from its login page on, and stops before the answer reaches the gateway. Returns its address. */
  async answerOf({ url }: Page, browser: Browser): Promise<string> {
    browser.opens = (next) => next.startsWith(this.server.issuer);
    return (await this.#submitAll(await browser.open(url), browser)).url;
  }

  /** Sends a call of revision 2026-07-28 as it is. Returns its result, or its error. */
  async send(token: string, params: Record<string, unknown> = {}) {
    const revision = '2026-07-28';
    const response = await fetch(`${this.publicUrl}/mcp`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        accept: 'application/json, text/event-stream',
        ...{ 'mcp-protocol-version': revision, 'mcp-method': 'tools/call', 'mcp-name': 'files__read' },
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: {
          ...{ name: 'files__read', arguments: {}, ...params },
          _meta: {
            'io.modelcontextprotocol/protocolVersion': revision,
            'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } },
          },
        },
      }),
    });
    const text = await response.text();
    const message = JSON.parse(text.includes('data: {') ? (text.split('data: ').at(-1) ?? '') : text);
    return message.result ?? message.error;
  }

  /** A client of a user. It opens pages if it is told how. */
  async connect(name: string, { era = 'legacy', opens }: ClientOptions = {}): Promise<UserClient> {
    const client = new Client(
      { name: 'test', version: '1' },
      {
        capabilities: opens === undefined ? {} : { elicitation: { url: {} } },
        versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } },
      },
    );
    const asked: Asked[] = [];
    if (opens !== undefined)
      client.setRequestHandler('elicitation/create', async ({ params }) => {
        const one = params as unknown as Asked;
        asked.push(one);
        return { action: await opens(one) };
      });
    this.#clients.push(client);
    const headers = { authorization: `Bearer ${await this.tokenOf(name)}` };
    const url = new URL(`${this.publicUrl}/mcp`);
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    return new UserClient(client, asked);
  }

  /** Logs in at the server as `account`, on the page with this address. Returns the last page. */
  async logIn(url: string, browser: Browser, account = browser.name): Promise<Page> {
    browser.opens = (next) => next.startsWith('http');
    return await this.#submitAll(await browser.open(url), browser, account);
  }

  async #submitAll(first: Page, browser: Browser, account = browser.name): Promise<Page> {
    let page = first;
    for (let step = 0; step < 12 && page.text.includes('<form'); step += 1) {
      const isOfServer = page.url.startsWith(this.server.issuer);
      const form = browser.formOf(page);
      if (isOfServer) form.set('login', account);
      const action = /<form[^>]* action="([^"]+)"/.exec(page.text)?.[1] ?? '';
      page = await browser.open(new URL(action, page.url).href, form);
    }
    return page;
  }
}

interface ClientOptions {
  readonly era?: 'legacy' | 'modern';
  /** Opens a page, and returns what the client answers then. */
  readonly opens?: (asked: Asked) => Promise<'accept' | 'decline' | 'cancel'>;
}

export interface Asked {
  readonly mode: string;
  readonly url: string;
  readonly message: string;
}

export class UserClient {
  readonly client: Client;
  /** The pages that it was asked to open. */
  readonly asked: readonly Asked[];

  constructor(client: Client, asked: readonly Asked[]) {
    this.client = client;
    this.asked = asked;
  }

  /** Calls a tool. Returns the text of its result. */
  async call(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const result = await this.client.callTool({ name, arguments: args }, { timeout: 60_000 });
    return (result.content as { text?: string }[]).map(({ text = '' }) => text).join('\n');
  }

  /** The page that a refused call names, and its code. */
  async offered(name = 'files__read'): Promise<{ readonly url: string; readonly code: string; readonly text: string }> {
    for (;;) {
      const text = await this.call(name);
      const [, url = '', code = ''] =
        /log in at (\S+) within 10 minutes \(the page must show the code ([\w-]+)\)/.exec(text) ?? [];
      if (url !== '') return { url, code, text };
      // The connection is being opened, so its refusal is not known yet.
      if (!/starting|connected|connection/.test(text)) throw new Error(text);
    }
  }
}
