import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, get, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createFetch } from '../../../src/host/http/fetch.js';
import { systemClock } from '../../../src/host/observe/system-clock.js';
import { FolderVault } from '../../../src/upstream/auth/folder-vault.js';
import { beginLogin } from '../../../src/upstream/auth/login.js';
import {
  authorizationUrl,
  clientCredentials,
  clientFor,
  discover,
  refresh,
  startDeviceLogin,
} from '../../../src/upstream/auth/oauth.js';
import type { LoginRecord } from '../../../src/upstream/auth/vault.js';
import { sampleSpec } from '../../servers/supervision/sample-spec.js';
import { freePort } from '../../support/free-port.js';
import { SHORT_TMP } from '../../support/platform.js';

type Answer = object | ((response: ServerResponse) => void);

/** A server and its authorization server on one origin, with these answers by path; `ORIGIN` in them is the origin. */
async function site(answers: Readonly<Record<string, Answer>>) {
  const asked: string[] = [];
  /** The headers of each request, and its form. */
  const got: { readonly headers: IncomingHttpHeaders; readonly form: string }[] = [];
  const server = createServer(async (request, response) => {
    const { url = '', headers } = request;
    asked.push(url);
    got.push({ headers, form: await text(request) });
    const answer = answers[url] ?? answers[url.split('?', 1)[0] ?? ''];
    if (answer === undefined) response.writeHead(404).end();
    else if (typeof answer === 'function') answer(response);
    else response.end(JSON.stringify(answer).replaceAll('ORIGIN', origin));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = new URL(`${origin}/mcp`);
  return { asked, got, origin, url, fetch: createFetch({ clock: systemClock, server: url }) };
}

const SETTINGS = { server: 's', configFile: '/c.yaml', grant: 'authorization_code' as const };
const REMOTE = { kind: 'remote' as const, transport: 'http' as const, headers: {}, missing: undefined };
const RESOURCE = '/.well-known/oauth-protected-resource';
const METADATA = '/.well-known/oauth-authorization-server';
const ENDPOINTS = {
  ...{ issuer: 'ORIGIN', authorization_endpoint: 'ORIGIN/authorize', token_endpoint: 'ORIGIN/token' },
  code_challenge_methods_supported: ['S256'],
};
const challengeOf = (params: Record<string, string>) => ({ scheme: 'bearer', params });

async function discovered(answers: Readonly<Record<string, Answer>>, params: Record<string, string> = {}) {
  const { url, fetch, asked, origin } = await site(answers);
  const named = Object.fromEntries(
    Object.entries(params).map(([name, value]) => [name, value.replace('ORIGIN', origin)]),
  );
  const found = discover(url, challengeOf(named), SETTINGS, fetch);
  return { found, asked, origin, fetch };
}

describe('the authorization server of a server', () => {
  it('is looked for in the order of the specification', async () => {
    const { found, asked, origin } = await discovered({
      [RESOURCE]: { resource: 'ORIGIN', authorization_servers: ['ORIGIN/tenant'] },
      '/tenant/.well-known/openid-configuration': { ...ENDPOINTS, issuer: 'ORIGIN/tenant' },
    });
    expect(await found).toMatchObject({ issuer: `${origin}/tenant`, resource: origin, scopes: [] });
    expect(asked).toEqual([
      ...[`${RESOURCE}/mcp`, RESOURCE, `${METADATA}/tenant`],
      ...['/.well-known/openid-configuration/tenant', '/tenant/.well-known/openid-configuration'],
    ]);
  });

  it('is the server itself without documents, as in 2025-03-26', async () => {
    const { found, origin } = await discovered({});
    expect(await found).toMatchObject({ issuer: origin, metadata: undefined, resource: `${origin}/mcp` });
  });

  it.each<[string, Record<string, Answer>, Record<string, string>, string]>([
    [
      'a document that the challenge names and that is missing',
      {},
      { resource_metadata: 'ORIGIN/x' },
      'cannot be used',
    ],
    ['a document at a link-local address', {}, { resource_metadata: 'https://169.254.169.254/x' }, 'link-local'],
    ['a document that is not encrypted', {}, { resource_metadata: 'http://203.0.113.1/x' }, 'not encrypted'],
    [
      'the document of another server',
      { [RESOURCE]: { resource: 'https://evil.example/mcp' } },
      {},
      'names another server',
    ],
    ['the document of another path', { [RESOURCE]: { resource: 'ORIGIN/mcp/x' } }, {}, 'names another server'],
    [
      'an authorization server at a link-local address',
      { [RESOURCE]: { resource: 'ORIGIN', authorization_servers: ['https://[fe80::1]/'] } },
      {},
      'link-local',
    ],
    [
      'metadata of another issuer',
      { [METADATA]: { ...ENDPOINTS, issuer: 'https://evil.example' } },
      {},
      'belongs to another issuer',
    ],
    [
      'metadata without an endpoint',
      { [METADATA]: { issuer: 'ORIGIN', token_endpoint: 'x' } },
      {},
      'lacks `token_endpoint`',
    ],
    ['metadata of 1 MB', { [METADATA]: (response) => response.end('x'.repeat(1_000_000)) }, {}, 'more than 64 KiB'],
    [
      'an authorization server out of order',
      { [METADATA]: (response) => response.writeHead(500).end() },
      {},
      'HTTP 500',
    ],
  ])('is not used with %s', async (_, answers, params, reason) => {
    await expect((await discovered(answers, params)).found).rejects.toThrow(reason);
  });

  it.each([
    ['javascript:alert(1)//', 'not encrypted'],
    ['file:///etc/passwd', 'not encrypted'],
    ['http://203.0.113.1/authorize', 'not encrypted'],
  ])('sends the browser nowhere to %s', async (endpoint, reason) => {
    const { found } = await discovered({ [METADATA]: { ...ENDPOINTS, authorization_endpoint: endpoint } });
    const client = { client_id: 'c', isRegistered: false };
    const request = { redirectUri: 'http://127.0.0.1:1/callback', scopes: [], state: 's' };
    await expect(authorizationUrl(await found, client, request)).rejects.toThrow(reason);
  });

  const OTHER = 'names another authorization server';
  const UNNAMED = /names the authorization server http.*, which would get `clientSecret` of the configuration/;
  it.each<[string, boolean, { isSecret?: boolean; issuer?: string; before?: string; says?: boolean }, unknown]>([
    ['is named by the configuration', true, { issuer: 'ORIGIN', before: 'https://as.example' }, undefined],
    ['has the stored login', true, { before: 'ORIGIN' }, undefined],
    ['is another one than that of the stored login', false, { before: 'https://as.example', says: true }, OTHER],
    ['is another one, and the client has no secret', false, { before: 'https://as.example', isSecret: false }, OTHER],
    ['is named by the server alone', false, {}, UNNAMED],
    ['is named by the server, and the person says no', false, { says: false }, UNNAMED],
    ['is named by the server, and the person says yes', true, { says: true }, undefined],
    ['is named by the server, and there is no secret', true, { isSecret: false }, undefined],
  ])('that %s is asked for its metadata: %s', async (_, isAsked, { isSecret = true, says, ...named }, fault) => {
    const { url, fetch, asked, origin } = await site({ [METADATA]: ENDPOINTS });
    const issuerOf = (text: string | undefined) => text?.replace('ORIGIN', origin);
    const [issuer, stored] = [issuerOf(named.issuer), issuerOf(named.before)];
    const before =
      stored === undefined ? undefined : { issuer: stored, client: { client_id: 'c', isRegistered: false } };
    const settings = {
      ...{ ...SETTINGS, clientId: 'c', ...(issuer && { issuer }) },
      ...(isSecret && { clientSecret: 'secret', confidential: ['clientSecret'] }),
    };
    const questions: unknown[] = [];
    const confirmIssuer = async (...question: unknown[]) => questions.push(question) > 0 && says === true;
    const found = discover(url, undefined, settings, fetch, { before, ...(says !== undefined && { confirmIssuer }) });
    if (fault === undefined) await expect(found).resolves.toMatchObject({ issuer: origin });
    else await expect(found).rejects.toThrow(fault as string);
    expect(asked.includes(METADATA)).toBe(isAsked);
    expect(questions).toEqual(says === undefined || fault === OTHER ? [] : [[origin, ['clientSecret']]]);
  });

  it('is not looked for at another host that the server names, if secret headers would go there', async () => {
    const other = await site({ '/prm': { authorization_servers: [] } });
    const { url } = await site({ [METADATA]: ENDPOINTS });
    const headers = { 'x-firewall': 'secret' };
    const fetch = createFetch({ clock: systemClock, server: url, headers });
    const challenge = challengeOf({ resource_metadata: `${other.origin}/prm` });
    const settings = { ...SETTINGS, headers, confidential: ['headers'] };
    const fault = /another host would get `oauth.headers`/;
    await expect(discover(url, challenge, settings, fetch)).rejects.toThrow(fault);
    expect(other.asked).toEqual([]);
    const named = { ...settings, issuer: url.origin };
    expect(await discover(url, challenge, named, fetch)).toMatchObject({ issuer: url.origin });
    expect(other.asked).toEqual([]);
  });

  it('registers a client for its own redirect URI, issuer and scopes', async () => {
    const forms: string[] = [];
    const { found, fetch, origin } = await discovered({
      [METADATA]: { ...ENDPOINTS, registration_endpoint: 'ORIGIN/reg' },
      '/reg': { client_id: 'new', redirect_uris: [] },
    });
    const spying: typeof fetch = (url, init) => {
      forms.push(String(init?.body));
      return fetch(url, init);
    };
    const redirectUri = 'http://127.0.0.1:27890/callback';
    const client = { client_id: 'old', redirectUri, isRegistered: true };
    const before = { issuer: origin, client, requestedScopes: ['a'] } as unknown as LoginRecord;
    const used = async (changes: object, scopes = ['a']) => {
      const request = { redirectUri, before: { ...before, ...changes }, scopes, fetch: spying };
      return (await clientFor(await found, SETTINGS, request)).client_id;
    };
    expect(await used({})).toBe('old');
    expect(await used({ issuer: 'https://as.example' })).toBe('new');
    expect(await used({ client: { ...client, redirectUri: 'http://127.0.0.1:1/callback' } })).toBe('new');
    expect(await used({}, ['a', 'b'])).toBe('new');
    expect(JSON.parse(forms.at(-1) ?? '')).toMatchObject({
      ...{ application_type: 'native', redirect_uris: [redirectUri], scope: 'a b', token_endpoint_auth_method: 'none' },
    });
    expect(await used({}, ['b'])).toBe('new');
    expect(JSON.parse(forms.at(-1) ?? '')).toMatchObject({ scope: 'a b' });
    const request = {
      redirectUri: 'https://mcp.example/logins/callback/linear',
      before: undefined,
      scopes: [],
      fetch: spying,
    };
    await clientFor(await found, SETTINGS, request);
    expect(JSON.parse(forms.at(-1) ?? '')).toMatchObject({ application_type: 'web' });
  });

  it('gives device codes with times and pages that make sense', async () => {
    const device = { device_code: 'd', user_code: 'u', verification_uri: 'https://as.example/d\u001b[2J' };
    const begin = async (changes: object) => {
      const { found, fetch } = await discovered({
        [METADATA]: { ...ENDPOINTS, device_authorization_endpoint: 'ORIGIN/device' },
        '/device': { ...device, ...changes },
      });
      const client = { client_id: 'c', isRegistered: false };
      return await startDeviceLogin({ ...(await found), client, settings: SETTINGS, dpop: undefined, fetch }, []);
    };
    expect(await begin({})).toMatchObject({
      ...{ verificationUri: 'https://as.example/d%1B[2J', intervalMs: 5_000, expiresInMs: 600_000 },
    });
    expect(await begin({ interval: 0, expires_in: 1e12 })).toMatchObject({ intervalMs: 1_000, expiresInMs: 1_800_000 });
    await expect(begin({ verification_uri: 'javascript:alert(1)' })).rejects.toThrow('no device code');
  });
});

describe('metadata as the field has it', () => {
  const page: Answer = (response) => response.end('<html>Welcome</html>');
  const moved =
    (location: string): Answer =>
    (response) =>
      response.writeHead(301, { location }).end();

  it.each<[string, Record<string, Answer>, Partial<typeof SETTINGS> & object]>([
    ['a page at the first address', { [`${RESOURCE}/mcp`]: page, [METADATA]: ENDPOINTS }, {}],
    [
      'a page at the first address of the issuer',
      { [METADATA]: page, '/.well-known/openid-configuration': ENDPOINTS },
      {},
    ],
    ['a redirect', { [METADATA]: moved('/moved'), '/moved': ENDPOINTS }, {}],
    [
      'members that are null',
      { [METADATA]: { ...ENDPOINTS, registration_endpoint: null, scopes_supported: null } },
      {},
    ],
    ['a slash at the end of the issuer in the metadata', { [METADATA]: { ...ENDPOINTS, issuer: 'ORIGIN/' } }, {}],
    [
      'a slash at the end of the issuer that the server names',
      { [RESOURCE]: { resource: 'ORIGIN', authorization_servers: ['ORIGIN/'] }, [METADATA]: ENDPOINTS },
      {},
    ],
    [
      'no page for logins, for the credentials of a client',
      { [METADATA]: { issuer: 'ORIGIN', token_endpoint: 'ORIGIN/token' } },
      { grant: 'client_credentials' as never },
    ],
    [
      'a wrong resource that the entry replaces',
      { [RESOURCE]: { resource: 'https://old.example/mcp' }, [METADATA]: ENDPOINTS },
      { resource: 'https://right.example' } as object,
    ],
    [
      'a wrong endpoint that the entry replaces',
      { [METADATA]: { ...ENDPOINTS, token_endpoint: 'relative' } },
      { metadata: { token_endpoint: 'https://as.example/token' } } as object,
    ],
    [
      'no document, but the endpoints in the entry',
      {},
      {
        metadata: { token_endpoint: 'https://as.example/t', authorization_endpoint: 'https://as.example/a' },
      } as object,
    ],
  ])('is read with %s', async (_, answers, settings) => {
    const { url, fetch } = await site(answers);
    const found = await discover(url, undefined, { ...SETTINGS, ...settings }, fetch);
    expect(found.metadata?.token_endpoint).toMatch(/^http/);
  });

  it('of a broken document that the challenge names is looked for at the usual address', async () => {
    const { url, origin, fetch } = await site({ [RESOURCE]: { resource: 'ORIGIN' }, [METADATA]: ENDPOINTS });
    const challenge = challengeOf({ resource_metadata: `${origin}/missing` });
    expect(await discover(url, challenge, SETTINGS, fetch)).toMatchObject({ issuer: origin });
  });

  it('takes the headers of the entry, and not to another origin', async () => {
    const elsewhere = await site({ '/moved': ENDPOINTS });
    const { url, got } = await site({ [METADATA]: moved(`${elsewhere.origin}/moved`) });
    const fetch = createFetch({ clock: systemClock, server: url, headers: { 'x-firewall': 'secret' } });
    await discover(url, undefined, SETTINGS, fetch).catch(() => {});
    expect(got.map(({ headers }) => headers['x-firewall'])).toContain('secret');
    expect(elsewhere.got.map(({ headers }) => headers['x-firewall'])).toEqual([undefined]);
  });
});

describe('tokens as the field has them', () => {
  async function tokens(answer: Answer, settings: object = {}) {
    const { url, got, fetch } = await site({ [METADATA]: ENDPOINTS, '/token': answer });
    const all = { ...SETTINGS, ...settings };
    const found = await discover(url, undefined, all, fetch);
    const client = { client_id: 'c', client_secret: 'secret-4711', isRegistered: false };
    const context = { ...found, client, settings: all, dpop: undefined, fetch };
    const form = () => new URLSearchParams(got.at(-1)?.form);
    return { context, form };
  }

  it.each<[string, Answer, object]>([
    ['without `token_type`', { access_token: 'a' }, { token_type: 'Bearer' }],
    ['with members that are null', { access_token: 'a', refresh_token: null, scope: null }, { access_token: 'a' }],
    ['as a form', (response) => response.end('access_token=a&token_type=bearer&scope=x'), { scope: 'x' }],
    ['with a lifetime as text', { access_token: 'a', expires_in: '60' }, { expiresAt: expect.any(Number) }],
  ])('are taken %s', async (_, answer, taken) => {
    const { context } = await tokens(answer);
    expect(await clientCredentials(context, [])).toMatchObject({ access_token: 'a', ...taken });
  });

  it('that have expired when they come are used until they are refused', async () => {
    const { context } = await tokens({ access_token: 'a', expires_in: 0 });
    expect(await clientCredentials(context, [])).not.toHaveProperty('expiresAt');
  });

  it('are renewed with their scopes, and with the parameters of the entry', async () => {
    const { context, form } = await tokens({ access_token: 'a' }, { resource: false, tokenParams: { audience: 'x' } });
    expect(await refresh(context, 'old', ['s', 't'])).toMatchObject({ refresh_token: 'old' });
    expect(Object.fromEntries(form())).toMatchObject({ scope: 's t', audience: 'x', refresh_token: 'old' });
    expect(form().has('resource')).toBe(false);
  });

  it('are refused in the words of the authorization server, without the secrets of the request', async () => {
    const words = { error: 'invalid_target', error_description: 'no resource for secret-4711' };
    const { context } = await tokens((response) => response.writeHead(400).end(JSON.stringify(words)));
    await expect(clientCredentials(context, [])).rejects.toMatchObject({
      message: 'the authorization server gives no token (HTTP 400: invalid_target: no resource for [redacted])',
      hint: expect.stringContaining('resource: false'),
    });
  });
});

describe('the page to which the browser comes back', () => {
  it.each([['http://127.0.0.1'], ['http://localhost'], ['http://127.0.0.2'], ['http://[::1]']])(
    'at %s takes only the answer with the state of the login, under its own host',
    async (machine) => {
      const redirectUri = `${machine}:${await freePort()}/back`;
      const { url } = await site({ [METADATA]: ENDPOINTS });
      const folder = mkdtempSync(join(SHORT_TMP, 'tlo-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const login = { ...SETTINGS, configFile: join(folder, 'c.yaml'), clientId: 'by-hand', redirectUri };
      const spec = { ...sampleSpec(), ...REMOTE, url: url.href, login };
      const pending = await beginLogin({ spec, vault: new FolderVault(folder), clock: systemClock });
      const state = new URL(pending.url).searchParams.get('state');
      const { host, hostname, port } = new URL(redirectUri);
      const ask = (query: string, headers: object = {}) =>
        new Promise<number | undefined>((resolve, reject) => {
          const address = hostname === 'localhost' ? '127.0.0.1' : hostname.replace(/[[\]]/g, '');
          const options = { host: address, port, path: `/back?${query}`, headers: { host, ...headers } };
          get(options, (response) => resolve(response.resume().statusCode)).on('error', reject);
        });
      const foreign = [
        await ask('code=1&state=x'),
        await ask('error=access_denied&state=x'),
        await ask('error=access_denied'),
        await ask('code=1&state='),
        await ask(`error=rebound&state=${state}`, { host: `evil.example:${port}` }),
      ];
      expect(foreign).toEqual([404, 404, 404, 404, 404]);
      expect(await ask(`error=access_denied&state=${state}`)).toBe(400);
      await expect(pending.finished).rejects.toThrow('access_denied');
    },
  );
});

describe('an answer of another authorization server', () => {
  it.each<[string, Readonly<Record<string, Answer>>]>([
    ['with metadata', { [METADATA]: { ...ENDPOINTS, registration_endpoint: 'ORIGIN/register' } }],
    ['without metadata', {}],
  ])('gives the code to no server %s that has sent the browser on', async (_, answers) => {
    const honest = await site({});
    const { url, asked } = await site({ ...answers, '/register': { client_id: 'c' }, '/token': { access_token: 't' } });
    const folder = mkdtempSync(join(SHORT_TMP, 'tlo-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const login = { ...SETTINGS, configFile: join(folder, 'c.yaml') };
    const spec = { ...sampleSpec(), ...REMOTE, url: url.href, login };
    const pending = await beginLogin({ spec, vault: new FolderVault(folder), clock: systemClock });
    const state = new URL(pending.url).searchParams.get('state') ?? '';
    const answer = new URLSearchParams({ code: 'of-the-honest', state, iss: honest.origin });
    expect(pending.submit(`${pending.redirectUri}?${answer}`)).toBe(true);
    await expect(pending.finished).rejects.toThrow('is not from the authorization server of this login');
    expect(asked).not.toContain('/token');
  });
});

describe('a registration', () => {
  it('by hand whose page is refused is told with the words of the page', async () => {
    const { url } = await site({
      [METADATA]: ENDPOINTS,
      '/authorize': (response) => response.writeHead(400).end('<title>redirect_uri_mismatch</title>'),
    });
    const folder = mkdtempSync(join(SHORT_TMP, 'tlo-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const login = {
      ...SETTINGS,
      configFile: join(folder, 'c.yaml'),
      clientId: 'by-hand',
      redirectUri: 'https://x.example/back',
    };
    const spec = { ...sampleSpec(), ...REMOTE, url: url.href, login };
    const pending = await beginLogin({ spec, vault: new FolderVault(folder), clock: systemClock });
    expect(pending).toMatchObject({ refusal: 'HTTP 400: redirect_uri_mismatch', redirectUri: login.redirectUri });
    const { searchParams } = new URL(pending.url);
    pending.submit(`https://x.example/back?error=access_denied&state=${searchParams.get('state')}`);
    await expect(pending.finished).rejects.toThrow('access_denied');
  });

  it('is made with a secret where no public client is registered', async () => {
    let count = 0;
    const { url, fetch, got } = await site({
      [METADATA]: { ...ENDPOINTS, registration_endpoint: 'ORIGIN/reg' },
      '/reg': (response) => {
        count += 1;
        if (count === 1) response.writeHead(400).end('{"error":"invalid_client_metadata"}');
        else response.end('{"client_id":"c","client_secret":"s","client_secret_expires_at":null}');
      },
    });
    const found = await discover(url, undefined, SETTINGS, fetch);
    const request = { redirectUri: 'http://127.0.0.1:1/callback', before: undefined, scopes: [], fetch };
    expect(await clientFor(found, SETTINGS, request)).toMatchObject({ client_id: 'c', client_secret: 's' });
    expect(JSON.parse(got.at(-1)?.form ?? '')).toMatchObject({ token_endpoint_auth_method: 'client_secret_post' });
  });

  it('that the authorization server has forgotten is made anew for the page, once', async () => {
    let registered = 0;
    const { url, asked } = await site({
      [METADATA]: { ...ENDPOINTS, registration_endpoint: 'ORIGIN/reg' },
      '/reg': (response) => {
        registered += 1;
        response.end(JSON.stringify({ client_id: `c-${registered}` }));
      },
      '/authorize': (response) =>
        response.writeHead(400).end('{"error":"invalid_client","error_description":"no such client"}'),
    });
    const folder = mkdtempSync(join(SHORT_TMP, 'tlo-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const login = { ...SETTINGS, configFile: join(folder, 'c.yaml'), authorizationParams: { prompt: 'consent' } };
    const spec = { ...sampleSpec(), ...REMOTE, url: url.href, login };
    const vault = new FolderVault(folder);
    const id = { server: 's', configFile: login.configFile, url: url.href };
    const redirectUri = `http://127.0.0.1:${await freePort()}/callback`;
    const client = { client_id: 'c-0', redirectUri, isRegistered: true };
    await vault.locked(id, AbortSignal.timeout(10_000), async (stored) => {
      const record = {
        ...id,
        state: 'expired' as const,
        identity: 'i',
        issuer: url.origin,
        requestedScopes: [],
        client,
      };
      await stored.write(record);
    });
    const pending = await beginLogin({ spec, vault, clock: systemClock });
    const pages = asked.filter((one) => one.startsWith('/authorize')).map((one) => new URL(one, url).searchParams);
    const page = new URL(pending.url).searchParams;
    expect([...pages, page].map((one) => one.get('client_id'))).toEqual(['c-0', 'c-1']);
    expect([page.get('prompt'), registered, pending.refusal]).toEqual(['consent', 1, undefined]);
    pending.submit(`${pending.redirectUri}?error=invalid_client&state=${page.get('state')}`);
    await expect(pending.finished).rejects.toThrow('invalid_client');
  });
});
