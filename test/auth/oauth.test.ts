import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { authorizationUrl, checkBinding, clientFor, discover, startDeviceLogin } from '../../src/auth/oauth.js';
import type { LoginRecord } from '../../src/auth/vault.js';
import { createFetch } from '../../src/http/fetch.js';
import { systemClock } from '../../src/observe/system-clock.js';

type Answer = object | ((response: ServerResponse) => void);

/** A server and its authorization server on one origin, with these answers by path; `ORIGIN` in them is the origin. */
async function site(answers: Readonly<Record<string, Answer>>) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { url = '' } = request;
    asked.push(url);
    const answer = answers[url];
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
  return { asked, origin, url, fetch: createFetch({ clock: systemClock, server: url }) };
}

const SETTINGS = { server: 's', configFile: '/c.yaml', grant: 'authorization_code' as const };
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
      'lacks an endpoint',
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

  it('gets the client of the configuration only as long as it is the same one', async () => {
    const { found, origin } = await discovered({ [METADATA]: ENDPOINTS });
    const earlier = (issuer: string) =>
      ({ issuer, client: { client_id: 'c', isRegistered: false } }) as unknown as LoginRecord;
    const settings = { ...SETTINGS, clientId: 'c', clientSecret: 'secret' };
    checkBinding(await found, settings, earlier(origin));
    checkBinding(await found, settings, undefined);
    checkBinding(await found, { ...settings, issuer: origin }, earlier('https://as.example'));
    const now = await found;
    expect(() => checkBinding(now, settings, earlier('https://as.example'))).toThrow(
      'names another authorization server',
    );
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
