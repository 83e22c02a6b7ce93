import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { folderWith } from '../../config/files.js';
import { problemsOf } from '../../config/loading.js';
import { sha256 } from '../../support/sha256.js';
import { endAll } from '../../upstream/http/remote-server.js';
import { exchanging, guarded, SECRET, TokenProvider, who } from './token-provider.js';

afterEach(endAll);

const TYPE = 'urn:ietf:params:oauth:token-type:';
const GRANT = 'urn:ietf:params:oauth:grant-type:';
const CLIENT = { clientId: 'gateway', clientSecret: `${'$'}{secret:CLIENT}` };
const BASIC = `Basic ${Buffer.from(`gateway:${SECRET}`).toString('base64')}`;

describe('the token of a user', () => {
  it('becomes a token for the server by the exchange of RFC 8693', async () => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    const settings = { ...CLIENT, audience: 'far', scopes: ['read', 'write'], parameters: { tenant: 't' } };
    const gateway = await exchanging(provider, server.origin, settings);
    const token = await provider.tokenOf('ann');
    expect(await who(gateway, token)).toBe('for-ann-1');
    const [asked] = provider.asked;
    expect(asked?.headers.authorization).toBe(BASIC);
    expect(asked?.form).toEqual({
      ...{ grant_type: `${GRANT}token-exchange`, subject_token: token, subject_token_type: `${TYPE}access_token` },
      ...{ requested_token_type: `${TYPE}access_token`, audience: 'far', scope: 'read write', tenant: 't' },
    });
  });

  it('becomes one on behalf of the user, as Entra wants it', async () => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    provider.metadata = { token_endpoint_auth_methods_supported: ['client_secret_post'] };
    const settings = { ...CLIENT, grant: 'on-behalf-of', scopes: ['api://far/.default'] };
    const gateway = await exchanging(provider, server.origin, settings);
    const token = await provider.tokenOf('ann');
    expect(await who(gateway, token)).toBe('for-ann-1');
    expect(provider.asked[0]?.form).toEqual({
      ...{ grant_type: `${GRANT}jwt-bearer`, assertion: token, requested_token_use: 'on_behalf_of' },
      ...{ scope: 'api://far/.default', client_id: 'gateway', client_secret: SECRET },
    });
  });

  it('becomes an ID-JAG, which the authorization server of the server takes', async () => {
    const [provider, own, server] = [await TokenProvider.open(), await TokenProvider.open(), await guarded()];
    provider.answer = () => ({
      body: { access_token: 'the-id-jag', token_type: 'N_A', issued_token_type: `${TYPE}id-jag` },
    });
    const authorizationServer = { issuer: own.issuer, clientId: 'there', clientSecret: 'secret-there' };
    const settings = { ...CLIENT, grant: 'id-jag', subjectTokenType: 'jwt', authorizationServer };
    const gateway = await exchanging(provider, server.origin, settings);
    const token = await provider.tokenOf('ann');
    expect(await who(gateway, token)).toBe('for--1');
    expect(provider.asked.map(({ form }) => form)).toEqual([
      {
        ...{ grant_type: `${GRANT}token-exchange`, subject_token: token, subject_token_type: `${TYPE}jwt` },
        ...{ requested_token_type: `${TYPE}id-jag`, audience: own.issuer, resource: `${server.origin}/mcp` },
      },
    ]);
    expect(own.asked[0]?.form).toEqual({ grant_type: `${GRANT}jwt-bearer`, assertion: 'the-id-jag' });
    expect(own.asked[0]?.headers.authorization).toBe(`Basic ${Buffer.from('there:secret-there').toString('base64')}`);
  });

  it('may be the one of the workload, which is read anew for each exchange and serves clients without users', async () => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    const file = join(folderWith({}), 'token');
    writeFileSync(file, `${await provider.tokenOf('workload')}\n`);
    const settings = { grant: 'jwt-bearer', subjectTokenFile: file, scopes: ['read'] };
    const gateway = await exchanging(provider, server.origin, settings);
    expect(await who(gateway, await provider.tokenOf('ann'))).toBe('for-workload-1');
    expect(await who(gateway, await provider.tokenOf('bob'))).toBe('for-workload-1');
    expect(provider.asked[0]?.form).toMatchObject({ resource: `${server.origin}/mcp`, scope: 'read' });
    expect(provider.asked[0]?.form).not.toHaveProperty('client_id');
  });

  it('is exchanged once for all clients and calls of the user, and for no other user', async () => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    const gateway = await exchanging(provider, server.origin, { audience: 'far' }, { sharing: 'all', concurrency: 64 });
    const users = await Promise.all(
      ['ann', 'bob', 'cat'].map(async (name) => {
        const tokens = [await provider.tokenOf(name), await provider.tokenOf(name)] as const;
        const session = await gateway.session({ authorization: `Bearer ${tokens[0]}` });
        return { name, tokens, session };
      }),
    );
    const calls = users.flatMap(({ name, tokens: [first, second], session }) =>
      Array.from({ length: 6 }, async (_, at) => ({
        name,
        got: await who(gateway, at % 2 === 0 ? first : second, at % 3 === 0 ? {} : session),
      })),
    );
    for (const { name, got } of await Promise.all(calls)) expect(got).toMatch(new RegExp(`^for-${name}-`));
    expect(provider.asked.map(({ user }) => user).sort()).toEqual(['ann', 'bob', 'cat']);
  });

  it('is forgotten with the user', async () => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    const gateway = await exchanging(provider, server.origin);
    const [ann, bob] = [await provider.tokenOf('ann'), await provider.tokenOf('bob')];
    expect([await who(gateway, ann), await who(gateway, bob)]).toEqual(['for-ann-1', 'for-bob-2']);
    gateway.composition.forget(sha256(`${provider.issuer}\0ann`));
    expect([await who(gateway, ann), await who(gateway, bob)]).toEqual(['for-ann-3', 'for-bob-2']);
  });

  it('is exchanged again when the server does not accept the first one anymore', async () => {
    const provider = await TokenProvider.open();
    const server = await guarded((token) => token.startsWith('for-') && token !== revoked);
    let revoked = '';
    const gateway = await exchanging(provider, server.origin);
    const token = await provider.tokenOf('ann');
    expect(await who(gateway, token)).toBe('for-ann-1');
    revoked = 'for-ann-1';
    expect(await who(gateway, token)).toContain('does not accept a token that was just given for it');
    expect(provider.asked).toHaveLength(1);
  });
});

describe('a provider that gives no token', () => {
  it.each([
    ['invalid_client', 'correct `clientId` and `clientSecret`'],
    ['invalid_target', 'correct `audience` or `resource`'],
    ['invalid_scope', 'correct `scopes`'],
    ['invalid_grant', 'the user has to log in again'],
    ['unauthorized_client', `allow the client the grant ${GRANT}token-exchange there`],
    ['interaction_required', 'an administrator has to consent'],
  ])('answers %s, and the call says what to do', async (error, advice) => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    provider.answer = () => ({ status: 400, body: { error, error_description: 'Words of the provider' } });
    const gateway = await exchanging(provider, server.origin, CLIENT);
    const text = await who(gateway, await provider.tokenOf('ann'));
    expect(text).toContain('Words of the provider');
    expect(text).toContain(advice);
    expect(text).not.toContain('trunkline login');
    expect(server.got).toEqual([]);
  });

  it('is asked again when the user comes with another token, and not before', async () => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    const old = await provider.tokenOf('ann');
    provider.answer = ({ form }) =>
      form.subject_token === old ? { status: 400, body: { error: 'invalid_grant' } } : undefined;
    const gateway = await exchanging(provider, server.origin);
    for (let at = 0; at < 5; at += 1) expect(await who(gateway, old)).toContain('invalid_grant');
    expect(provider.asked).toHaveLength(1);
    expect(await who(gateway, await provider.tokenOf('ann'))).toBe('for-ann-2');
  });

  it('is away, so that calls with a token go on, and others say why', async () => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    const gateway = await exchanging(provider, server.origin);
    const [ann, bob] = [await provider.tokenOf('ann'), await provider.tokenOf('bob')];
    expect(await who(gateway, ann)).toBe('for-ann-1');
    provider.answer = () => ({ status: 503, body: 'maintenance' });
    expect(await who(gateway, bob)).toContain('the identity provider gives no token for it');
    expect(await who(gateway, ann)).toBe('for-ann-1');
  });
});

describe('hostile providers, servers and users', () => {
  it.each<[what: string, answer: (subject: string, server: string) => object, says: string]>([
    [
      'gives the token of the user back',
      (subject) => ({ body: { access_token: subject, token_type: 'Bearer' } }),
      'back',
    ],
    [
      'gives a token with a line break',
      () => ({ body: { access_token: 'a\r\nx-evil: 1', token_type: 'Bearer' } }),
      'characters',
    ],
    ['gives no token', () => ({ body: { token_type: 'Bearer' } }), 'no `access_token`'],
    [
      'gives a token that is no text',
      () => ({ body: { access_token: { a: 1 }, token_type: 'Bearer' } }),
      'no `access_token`',
    ],
    ['answers no JSON', () => ({ body: '<html>' }), 'no `access_token`'],
    [
      'sends the request on to the server',
      (_, to) => ({ status: 307, body: '', headers: { location: `${to}/token` } }),
      '307',
    ],
    [
      'sends the request elsewhere at the server',
      (_, to) => ({ status: 302, body: '', headers: { location: to } }),
      '302',
    ],
    [
      'repeats the token of the user and the secret in its error',
      (subject) => ({
        status: 400,
        body: { error: 'invalid_grant', error_description: `${'x'.repeat(200)} ${subject} ${SECRET}` },
      }),
      'redacted',
    ],
    ['answers more than a token can have', () => ({ body: { access_token: 'a'.repeat(100_000) } }), 'KiB'],
  ])('a provider that %s leads to no request at the server', async (_, answer, says) => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    const token = await provider.tokenOf('ann');
    provider.answer = () => answer(token, server.origin);
    const gateway = await exchanging(provider, server.origin, { ...CLIENT, audience: 'far' });
    const text = await who(gateway, token);
    expect(text).toContain(says);
    expect(server.got).toEqual([]);
    for (const shown of [text, ...gateway.log]) {
      expect(shown).not.toContain(token.slice(0, 40));
      expect(shown).not.toContain(SECRET);
    }
  });

  it.each<[what: string, metadata: (server: string) => object, says: string]>([
    ['at the server itself', (server) => ({ token_endpoint: `${server}/token` }), 'is at the server itself'],
    ['without encryption', () => ({ token_endpoint: 'http://idp.example.com/token' }), 'name no `token_endpoint`'],
    ['that is no text', () => ({ token_endpoint: 7 }), 'name no `token_endpoint`'],
    ['of another issuer', () => ({ issuer: 'https://other.example.com' }), 'metadata of another issuer'],
  ])('metadata with a token endpoint %s get no token of a user', async (_, metadata, says) => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    provider.metadata = metadata(server.origin);
    const gateway = await exchanging(provider, server.origin);
    expect(await who(gateway, await provider.tokenOf('ann'))).toContain(says);
    expect([...provider.asked, ...server.got]).toEqual([]);
  });

  it('an access token in place of an ID-JAG does not reach the authorization server of the server', async () => {
    const [provider, own, server] = [await TokenProvider.open(), await TokenProvider.open(), await guarded()];
    const settings = { grant: 'id-jag', authorizationServer: { issuer: own.issuer } };
    const gateway = await exchanging(provider, server.origin, settings);
    expect(await who(gateway, await provider.tokenOf('ann'))).toContain('gives a Bearer token instead of an ID-JAG');
    expect([...own.asked, ...server.got]).toEqual([]);
  });

  it('the token of a user never reaches a server, whatever the server answers', async () => {
    const provider = await TokenProvider.open();
    const answers = [401, 403, 307, 500];
    const server = await guarded(() => answers.length === 0);
    const gateway = await exchanging(provider, server.origin);
    const token = await provider.tokenOf('ann');
    await who(gateway, token);
    expect(server.got.length).toBeGreaterThan(0);
    for (const { headers, url, message } of server.got)
      expect(JSON.stringify([headers, url, message])).not.toContain(token.split('.')[1]);
  });

  it.each<[what: string, forged: (provider: TokenProvider, other: TokenProvider) => Promise<string>]>([
    ['has ended', (provider) => provider.tokenOf('ann', { exp: 1 })],
    ['is for another audience', (provider) => provider.tokenOf('ann', { aud: 'other' })],
    ['is of another issuer', (_, other) => other.tokenOf('ann')],
    ['names another issuer', (provider) => provider.tokenOf('ann', { iss: 'https://evil.example' })],
    ['is signed by another key', async (provider, other) => other.tokenOf('ann', { iss: provider.issuer })],
    ['has no user', (provider) => provider.tokenOf('', { sub: '' })],
    ['is bound to a key', (provider) => provider.tokenOf('ann', { cnf: { jkt: 'x' } })],
    ['is changed', async (provider) => (await provider.tokenOf('ann')).replace(/\.[^.]*\./, '.eyJzdWIiOiJib2IifQ.')],
  ])('a token that %s is not exchanged, and uses no token of the user', async (_, forged) => {
    const [provider, other, server] = [await TokenProvider.open(), await TokenProvider.open(), await guarded()];
    const gateway = await exchanging(provider, server.origin);
    expect(await who(gateway, await provider.tokenOf('ann'))).toBe('for-ann-1');
    const before = server.got.length;
    expect(await who(gateway, await forged(provider, other))).toMatch(/^401 /);
    expect([provider.asked.length, server.got.length]).toEqual([1, before]);
  });

  it('a user whom the provider refuses gets no token of another user, in whose session either', async () => {
    const [provider, server] = [await TokenProvider.open(), await guarded()];
    provider.answer = ({ user }) => (user === 'bob' ? { status: 400, body: { error: 'access_denied' } } : undefined);
    const gateway = await exchanging(provider, server.origin, {}, { sharing: 'all' });
    const [ann, bob] = [await provider.tokenOf('ann'), await provider.tokenOf('bob')];
    const session = await gateway.session({ authorization: `Bearer ${ann}` });
    expect(await who(gateway, ann, session)).toMatch(/^for-ann-/);
    expect(await who(gateway, bob)).toContain('access_denied');
    expect(await who(gateway, bob, session)).toMatch(/^404 /);
    expect(await who(gateway, ann)).toMatch(/^for-ann-/);
    expect(server.got.every(({ headers }) => headers.authorization?.startsWith('Bearer for-ann-') === true)).toBe(true);
  });
});

describe('a configuration of an exchange', () => {
  const at = (settings: string, more = '') =>
    `servers:\n  far:\n    url: https://far.test/mcp\n    auth:\n      exchange: ${settings}\n${more}`;

  it.each([
    ['{ tokenEndpoint: "http://idp.test/token" }', '5:34 servers.far.auth.exchange.tokenEndpoint'],
    ['{ issuer: "http://idp.test" }', '5:27 servers.far.auth.exchange.issuer'],
    ['{ grant: password }', '5:26 servers.far.auth.exchange.grant'],
    [
      '{ grant: id-jag }',
      '5:19 servers.far.auth.exchange.grant: found `grant: id-jag` without `authorizationServer.issuer`',
    ],
    [
      '{ grant: on-behalf-of, clientId: x }',
      '5:19 servers.far.auth.exchange.grant: found `grant: on-behalf-of` without',
    ],
    ['{ authorizationServer: { clientId: x } }', '5:19 servers.far.auth.exchange.authorizationServer: found'],
    ['{ clientSecret: x }', '5:19 servers.far.auth.exchange.clientSecret: found `clientSecret` without `clientId`'],
    ['{ parameters: { assertion: x } }', '5:33 servers.far.auth.exchange.parameters.assertion: found `assertion`'],
    ['{ secret: x }', '5:19 servers.far.auth.exchange: unknown key `secret`'],
  ])('%s is refused', (settings, problem) => {
    expect(problemsOf(at(settings))[0]).toContain(problem);
  });

  it.each([
    ['    login: user\n', '6:5 servers.far.login: found `login: user` beside `auth`'],
    ['    headers: { Authorization: x }\n', '4:5 servers.far.auth: found `auth` beside'],
    ['    headersCommand: x\n', '4:5 servers.far.auth: found `auth` beside'],
    ['    oauth: { clientId: x }\n', '4:5 servers.far.auth: found `auth` beside'],
  ])('beside %j is refused', (more, problem) => {
    expect(problemsOf(at('{ issuer: "https://idp.test" }', more))[0]).toContain(problem);
  });
});
