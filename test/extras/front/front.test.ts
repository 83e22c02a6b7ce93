import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
  UnauthorizedError as ModernUnauthorized,
} from '@modelcontextprotocol/client';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../support/processes.js';
import { Browser, backOf, CHARACTERS, FrontPlace, paramsOf, REDIRECT, SCOPE } from './front-place.js';

const names = Object.keys(CHARACTERS) as (keyof typeof CHARACTERS)[];

/** What a client of an SDK remembers of its login. */
class Remembered {
  readonly redirectUrl = REDIRECT;
  readonly clientMetadata = { client_name: 'Official', redirect_uris: [REDIRECT] };
  client: unknown;
  held: unknown;
  verifier = '';
  page = '';

  state() {
    return 'a-state-of-the-sdk';
  }
  clientInformation() {
    return this.client as undefined;
  }
  saveClientInformation(client: unknown) {
    this.client = client;
  }
  tokens() {
    return this.held as undefined;
  }
  saveTokens(tokens: unknown) {
    this.held = tokens;
  }
  redirectToAuthorization(url: URL) {
    this.page = url.href;
  }
  saveCodeVerifier(verifier: string) {
    this.verifier = verifier;
  }
  codeVerifier() {
    return this.verifier;
  }
}

/** Connects with the OAuth client of an SDK, which a browser helps. Calls the first tool. */
const SDKS = {
  'the first SDK': async (place: FrontPlace, browser: Browser) => {
    const authProvider = new Remembered();
    const transport = () => new StreamableHTTPClientTransport(new URL(`${place.publicUrl}/mcp`), { authProvider });
    const about = { name: 'official', version: '1' };
    const first = transport();
    await expect(new Client(about).connect(first as never)).rejects.toBeInstanceOf(UnauthorizedError);
    const answer = paramsOf(await browser.logIn(authProvider.page));
    await first.finishAuth(answer.get('code') ?? '');
    const client = new Client(about);
    await client.connect(transport() as never);
    onTestFinished(() => client.close());
    return { client, authProvider, answer };
  },
  'the second SDK': async (place: FrontPlace, browser: Browser) => {
    const authProvider = new Remembered();
    const transport = () => new ModernTransport(new URL(`${place.publicUrl}/mcp`), { authProvider });
    const about = { name: 'official', version: '2' };
    const first = transport();
    await expect(new ModernClient(about).connect(first)).rejects.toBeInstanceOf(ModernUnauthorized);
    const answer = paramsOf(await browser.logIn(authProvider.page));
    await first.finishAuth(answer);
    const client = new ModernClient(about);
    await client.connect(transport());
    onTestFinished(() => client.close());
    return { client, authProvider, answer };
  },
};

describe.each(names)('a provider that %s', (character) => {
  it.each(Object.entries(SDKS))('is logged in at through %s, up to the first call of a tool', async (_, connect) => {
    const place = await FrontPlace.open({ character });
    const { client, answer } = await connect(place, new Browser('alice'));
    const { child } = place.gateway.server('files');
    const called = client.callTool({ name: 'files__read', arguments: {} });
    await until('the call has arrived', () => child.calls.length === 1);
    child.answer(0, { content: [{ type: 'text', text: 'read' }] });
    expect((await called).content).toEqual([{ type: 'text', text: 'read' }]);
    expect([answer.get('iss'), answer.get('state')]).toEqual([place.publicUrl, 'a-state-of-the-sdk']);
    // The provider was never asked for a client, nor for what some providers refuse.
    expect(place.provider.to('/reg')).toEqual([]);
    expect(place.provider.asked.filter(({ params }) => params.has('resource'))).toEqual([]);
  });

  it('renews tokens with the scopes, as often as wanted', async () => {
    const place = await FrontPlace.open({ character });
    const login = await place.logIn();
    let tokens = (await place.redeem(login)).body;
    for (let round = 0; round < 3; round += 1) {
      const renewed = await place.renew(login.clientId, tokens.refresh_token, { resource: `${place.publicUrl}/mcp` });
      expect(renewed.status).toBe(200);
      expect(renewed.body.access_token).not.toBe(tokens.access_token);
      tokens = { ...tokens, ...renewed.body };
      expect(await place.statusWith(tokens.access_token)).toBe(200);
    }
    const asked = place.provider.to('/token').map(({ params }) => [params.get('scope'), params.has('resource')]);
    expect(asked).toEqual([[null, false], ...Array.from({ length: 3 }, () => [SCOPE, false])]);
    expect(place.provider.reused).toBe(0);
  });
});

describe('a login through the front', () => {
  it('passes the answers of the provider on byte for byte, and logs no part of them', async () => {
    const place = await FrontPlace.open();
    const login = await place.logIn();
    const redeemed = await place.redeem(login);
    expect(redeemed.body).toMatchObject({ token_type: 'Bearer', scope: SCOPE, expires_in: 3600 });
    expect(Object.fromEntries(redeemed.headers)).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' });
    await place.renew(login.clientId, redeemed.body.refresh_token);
    await place.renew(login.clientId, 'not-a-refresh-token-of-the-provider');
    const texts = JSON.stringify(place.log);
    for (const secret of place.provider.secrets) expect(texts).not.toContain(secret);
    // What the browser saw has no code of the provider but in the address to which the provider sent it.
    expect(place.provider.secrets.size).toBeGreaterThan(3);
  });

  it('uses PKCE with S256 towards the provider, with its own callback and client', async () => {
    const place = await FrontPlace.open();
    const login = await place.logIn();
    const [{ params: asked = new URLSearchParams() } = {}] = place.provider.to('/auth');
    expect(Object.fromEntries(asked)).toEqual({
      ...{ response_type: 'code', client_id: 'trunkline-at-the-provider', scope: SCOPE, code_challenge_method: 'S256' },
      redirect_uri: `${place.publicUrl}/authorize/callback`,
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{22}$/),
    });
    expect(login.url).not.toContain(asked.get('code_challenge') ?? '');
  });

  it('asks for the scopes, the resource and the parameters of the configuration', async () => {
    const resource = 'urn:of:the:configuration';
    const place = await FrontPlace.open({
      front: { scopes: ['one', 'two'], resource, parameters: { prompt: 'login' } },
    });
    const browser = new Browser('alice');
    browser.opens = (url) => url.startsWith(place.publicUrl);
    const { url } = await browser.submit(await browser.open((await place.begin({ scope: 'everything' })).url));
    expect(Object.fromEntries(paramsOf(url))).toMatchObject({ scope: 'one two', resource, prompt: 'login' });
  });

  it('asks the person once for each pair of client and redirect URI in a browser', async () => {
    const place = await FrontPlace.open();
    const browser = new Browser('alice');
    const clientId = await place.register([REDIRECT, 'http://127.0.0.1/other']);
    await browser.logIn((await place.begin({ client_id: clientId })).url);
    const again = await place.begin({ client_id: clientId, redirect_uri: REDIRECT.replace('59999', '60001') });
    browser.opens = (url) => url.startsWith('http') && !/:(?:59999|60001)/.test(url);
    const page = await browser.open(again.url);
    expect(page.text).not.toContain('/authorize/consent');
    for (const other of [{ redirect_uri: 'http://127.0.0.1:1/other', client_id: clientId }, {}])
      expect((await browser.open((await place.begin(other)).url)).text).toContain('/authorize/consent');
    expect((await new Browser('alice').open(again.url)).text).toContain('/authorize/consent');
  });

  it('shows the person the program, the place of return, the scopes and the provider', async () => {
    const place = await FrontPlace.open({ front: { scopes: ['mail.read', 'offline_access'] } });
    const client_id = await place.register([REDIRECT], '<b>Evil</b>\u202e & Co');
    const { text, headers, status } = await new Browser('alice').open((await place.begin({ client_id })).url);
    expect(status).toBe(200);
    expect(text).toContain('<q><bdi>&#60;b&#62;Evil&#60;/b&#62;\\u{202e} &#38; Co</bdi></q>');
    expect(text).toContain('Nobody has confirmed who made this program. It chose its name itself.');
    expect(text).toMatch(/<h1>Let a program use [^<]+<\/h1>/);
    expect(text).toContain('127.0.0.1, a program on this computer');
    expect(text).toContain('mail.read, offline_access');
    expect(text).toContain(new URL(place.provider.issuer).host);
    expect(text).not.toMatch(/<script|<b>/);
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none';.*frame-ancestors 'none'/);
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('ends with an error for the client if the person says no', async () => {
    const place = await FrontPlace.open();
    const browser = new Browser('alice');
    const page = await browser.submit(await browser.open((await place.begin()).url), 'deny');
    expect(page.text).not.toContain('http-equiv');
    expect(Object.fromEntries(paramsOf(backOf(page)))).toEqual({
      ...{ error: 'access_denied', error_description: 'You have cancelled the login, so the program gets no access.' },
      ...{ state: 'state-of-the-client', iss: place.publicUrl },
    });
    expect(place.provider.to('/auth')).toEqual([]);
  });

  it('tells the person and the client why the provider refuses, with its words', async () => {
    const place = await FrontPlace.open();
    const browser = new Browser('alice');
    browser.opens = (url) => url.startsWith(place.publicUrl);
    const atProvider = await browser.submit(await browser.open((await place.begin()).url));
    const query = new URLSearchParams({
      ...{ error: 'access_denied', error_description: 'AADSTS65004: "User" declined\nto <b>consent</b>' },
      ...{ state: paramsOf(atProvider.url).get('state') ?? '', iss: place.provider.issuer },
    });
    const page = await browser.open(`${place.publicUrl}/authorize/callback?${query}`);
    expect(page.text).toContain('AADSTS65004: &#39;User&#39; declined to consent');
    const back = backOf(page);
    expect(back.startsWith(`${REDIRECT}?`)).toBe(true);
    expect(Object.fromEntries(paramsOf(back))).toEqual({
      ...{ error: 'access_denied', error_description: "AADSTS65004: 'User' declined to consent" },
      ...{ state: 'state-of-the-client', iss: place.publicUrl },
    });
  });

  it.each([
    ['refuses the grant', 400, { error: 'invalid_grant', error_description: 'AADSTS70043' }, 400, 'invalid_grant'],
    [
      'refuses the gateway',
      401,
      { error: 'invalid_client', error_description: 'AADSTS7000218' },
      503,
      'temporarily_unavailable',
    ],
    [
      'does not know a scope that was added since the login',
      400,
      { error: 'invalid_scope', error_description: 'log in again' },
      400,
      'invalid_grant',
    ],
    [
      'does not know a resource that was changed since the login',
      400,
      { error: 'invalid_target', error_description: 'log in again' },
      400,
      'invalid_grant',
    ],
    ['is in trouble', 502, '<title>Bad gateway</title>', 503, 'temporarily_unavailable'],
    ['answers what is no error of OAuth', 400, '{}', 503, 'temporarily_unavailable'],
  ])('tells the client if the provider %s', async (_, status, body, told, error) => {
    const place = await FrontPlace.open();
    const login = await place.logIn();
    const { body: tokens } = await place.redeem(login);
    place.provider.before = ({ path }, response) => {
      if (path !== '/token') return false;
      response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
      return true;
    };
    const answer = await place.renew(login.clientId, tokens.refresh_token);
    expect([answer.status, answer.body.error]).toEqual([told, error]);
    if (typeof body !== 'string') expect(answer.body.error_description).toContain(body.error_description);
    // The log of the operator has what the operator can mend, and no token.
    expect(place.log.length).toBe(told === 503 ? 1 : 0);
    expect(JSON.stringify(place.log)).not.toContain(tokens.refresh_token);
  });

  it('renews what the provider has given if that is less than was asked for', async () => {
    // The provider gives no `offline_access` without a prompt for it, and refuses to renew it.
    const place = await FrontPlace.open({ front: { scopes: ['openid', 'offline_access', SCOPE] } });
    const login = await place.logIn();
    const { body: tokens } = await place.redeem(login);
    const renewed = await place.renew(login.clientId, tokens.refresh_token);
    expect([renewed.status, renewed.body.scope]).toEqual([200, tokens.scope]);
    expect(place.provider.to('/token').map(({ params }) => params.get('scope'))).toEqual([
      null,
      `openid offline_access ${SCOPE}`,
      null,
    ]);
  });

  it('tells the client and the person if the provider is away', async () => {
    const place = await FrontPlace.open();
    const login = await place.logIn();
    const { url } = await place.begin();
    await place.provider.close();
    expect((await place.redeem(login)).body).toEqual({
      error: 'temporarily_unavailable',
      error_description: expect.stringContaining(
        'The identity provider gives no tokens: the token endpoint does not answer',
      ),
    });
    // Its metadata are known, so the browser goes there, and shows that nobody answers.
    const browser = new Browser('alice');
    browser.opens = (next) => next.startsWith(place.publicUrl);
    expect((await browser.submit(await browser.open(url))).url).toContain(place.provider.issuer);
  });

  it('ends with a reason for the person and the client if the provider was never reachable', async () => {
    const place = await FrontPlace.open({ isAway: true });
    const browser = new Browser('alice');
    const page = await browser.submit(await browser.open((await place.begin()).url));
    expect(page.text).toContain('The identity provider gives no tokens: the metadata of');
    expect(page.text).toContain('error=temporarily_unavailable');
    const metadata = await fetch(`${place.publicUrl}/.well-known/oauth-authorization-server`);
    expect([metadata.status, metadata.headers.get('cache-control')]).toEqual([200, 'no-store']);
  });

  it('works with another gateway that has the same key, at each step', async () => {
    const place = await FrontPlace.open();
    const other = await place.another();
    const elsewhere = (url: string) => url.replace(place.publicUrl, other);
    const browser = new Browser('alice');
    const begun = await place.begin();
    const consent = await browser.open(elsewhere(begun.url));
    expect(consent.status).toBe(200);
    const { url } = await browser.open(`${place.publicUrl}/authorize/consent`, browser.formOf(consent));
    const code = paramsOf(await browser.logIn(url)).get('code') ?? '';
    expect((await place.redeem({ ...begun, code }, {}, other)).status).toBe(200);
  });
});

describe('the metadata of the front', () => {
  it.each(['oauth-authorization-server', 'openid-configuration'])(
    'at %s name this gateway, and the keys of the provider',
    async (path) => {
      const place = await FrontPlace.open();
      const response = await fetch(`${place.publicUrl}/.well-known/${path}`);
      expect(response.headers.get('access-control-allow-origin')).toBe('*');
      const metadata = await response.json();
      expect(metadata).toMatchObject({
        ...{ issuer: place.publicUrl, authorization_endpoint: `${place.publicUrl}/authorize` },
        ...{ token_endpoint: `${place.publicUrl}/token`, registration_endpoint: `${place.publicUrl}/register` },
        ...{ code_challenge_methods_supported: ['S256'], token_endpoint_auth_methods_supported: ['none'] },
        ...{ client_id_metadata_document_supported: true, authorization_response_iss_parameter_supported: true },
        jwks_uri: `${place.provider.issuer}/jwks`,
      });
      // Endpoints at which the id of a client of the front would mean nothing.
      for (const name of [
        'revocation_endpoint',
        'pushed_authorization_request_endpoint',
        'device_authorization_endpoint',
      ])
        expect(metadata).not.toHaveProperty(name);
    },
  );

  it('are named by those of the protected resource', async () => {
    const place = await FrontPlace.open();
    const metadata = await (await fetch(`${place.publicUrl}/.well-known/oauth-protected-resource/mcp`)).json();
    expect(metadata).toMatchObject({ authorization_servers: [place.publicUrl], resource: `${place.publicUrl}/mcp` });
  });
});
