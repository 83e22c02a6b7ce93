import { createHmac } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { JwtCheck, TokenRefused } from '../../../src/downstream/users/jwt-check.js';
import { AUDIENCE, assembled, encoded, MemoryIssuer, NOW } from './memory-issuer.js';

const NOW_S = NOW / 1_000;
type Config = Partial<ConstructorParameters<typeof JwtCheck>[0]>;

let issuer: MemoryIssuer;
let attacker: MemoryIssuer;

beforeAll(async () => {
  issuer = await MemoryIssuer.open();
  for (const [kid, alg] of [
    ['rsa', 'RS256'],
    ['pss', 'PS256'],
    ['rsa512', 'RS512'],
    ['ed', 'EdDSA'],
    ['old', 'ES256'],
  ] as const)
    await issuer.addKey(kid, alg);
  await issuer.addKey('sealing', 'ES256', { use: 'enc' });
  issuer.withdraw('old');
  attacker = await MemoryIssuer.open(issuer.issuer);
});

function checkOf(config: Config = {}) {
  const identity = { issuer: issuer.issuer, audience: [AUDIENCE, 'gateway'] };
  return new JwtCheck({ ...identity, ...config }, issuer.keys(), () => NOW);
}

async function reasonFor(token: string, config: Config = {}): Promise<string> {
  const outcome = await checkOf(config)
    .check(token)
    .catch((error: unknown) => error);
  if (outcome instanceof TokenRefused) return outcome.message;
  throw new Error(`Not refused: ${JSON.stringify(outcome)} ${String(outcome)}`);
}

const WRONG = 'its signature is wrong';
const NO_JWT = 'it is no JWT that can be checked';
const NOT_ACCEPTED = 'its algorithm is not accepted';
const NO_KEY = 'the issuer has no such key';
const ID_TOKEN = 'it is an ID token, and no access token';
const OTHER_ISSUER = 'it is from another issuer';

/** A claim other than those of an ordinary token. */
const withClaims = (claims: Record<string, unknown>) => () => issuer.token(claims);
const withHeader = (header: Record<string, unknown>) => () => issuer.token({}, { header });
const audienceIs = (text: string) => `it is for another audience (${text})`;
const claims = (more: object = {}) => ({ iss: issuer.issuer, aud: AUDIENCE, sub: 'ann', exp: NOW_S + 600, ...more });

/** A token of the issuer, of which one part was replaced. */
async function replaced(at: 0 | 1 | 2, by: (part: string) => string): Promise<string> {
  const parts = (await issuer.token()).split('.');
  parts[at] = by(parts[at] ?? '');
  return parts.join('.');
}

function hmacSigned(secret: string): string {
  const head = `${encoded({ alg: 'HS256', kid: 'rsa', typ: 'at+jwt' })}.${encoded(claims())}`;
  return `${head}.${createHmac('sha256', secret).update(head).digest('base64url')}`;
}

describe('a JWT is refused', () => {
  it.each<[what: string, make: () => string | Promise<string>, reason: string]>([
    ['that is no JWT', () => 'x'.repeat(60), NO_JWT],
    ['with two parts', () => `${encoded({ alg: 'ES256' })}.${encoded({})}`, NO_JWT],
    ['with five parts, as an encrypted one has', async () => `${await issuer.token()}.a.b`, NO_JWT],
    [
      'with two signatures, in the form of JSON',
      async () => {
        const [, payload, signature] = (await issuer.token()).split('.');
        const signatures = [{ protected: encoded({ alg: 'ES256', kid: 'one' }), signature }, { signature }];
        return JSON.stringify({ payload, signatures });
      },
      NO_JWT,
    ],
    ['of a megabyte that is no JWT', () => `${'a'.repeat(1024 * 1024)}.b.c`, NO_JWT],
    ['without a signature', () => replaced(2, () => ''), WRONG],
    [
      'with a signature of zeros',
      () => replaced(2, (part) => Buffer.alloc(64).toString('base64url').slice(0, part.length)),
      WRONG,
    ],
    ['with half a signature', () => replaced(2, (part) => part.slice(0, 40)), WRONG],
    ['with a signature of another token', async () => replaced(2, () => ''.padEnd(86, 'A')), WRONG],
    ['whose claims were changed', () => replaced(1, () => encoded(claims({ sub: 'root' }))), WRONG],
    ['whose header was changed', () => replaced(0, () => encoded({ alg: 'ES256', kid: 'one', typ: 'jwt' })), WRONG],
    ['with the algorithm `none`', () => assembled({ alg: 'none' }, claims()), NOT_ACCEPTED],
    ['with the algorithm `nOnE` and a key', () => assembled({ alg: 'nOnE', kid: 'one' }, claims()), NOT_ACCEPTED],
    ['without an algorithm', () => assembled({ kid: 'one' }, claims(), 'AA'), NO_JWT],
    ['signed with the modulus of a public key as HS256', () => hmacSigned(issuer.jwkOf('rsa').n ?? ''), NOT_ACCEPTED],
    ['signed with a public key as HS256', () => hmacSigned(JSON.stringify(issuer.jwkOf('rsa'))), NOT_ACCEPTED],
    [
      'of a key of the issuer with an algorithm that is not accepted',
      () => issuer.token({}, { kid: 'rsa512' }),
      NOT_ACCEPTED,
    ],
    ['that names ES256 for an RSA key', () => assembled({ alg: 'ES256', kid: 'rsa' }, claims(), 'AA'), NO_KEY],
    ['of another key with the same name', () => attacker.token(), WRONG],
    ['of an unknown key', async () => assembled({ alg: 'ES256', kid: 'two' }, claims(), 'AA'), NO_KEY],
    ['whose key is a path', () => assembled({ alg: 'ES256', kid: '../../../../dev/null' }, claims(), 'AA'), NO_KEY],
    ['whose key is a query', () => assembled({ alg: 'ES256', kid: "' OR 1=1 --" }, claims(), 'AA'), NO_KEY],
    ['whose key is a number', () => assembled({ alg: 'ES256', kid: 1 }, claims(), 'AA'), NO_KEY],
    [
      'whose key has the name of a member of every object',
      () => assembled({ alg: 'ES256', kid: '__proto__' }, claims(), 'AA'),
      NO_KEY,
    ],
    ['of a key that was withdrawn', () => issuer.token({}, { kid: 'old' }), NO_KEY],
    ['of a key for encryption', () => issuer.token({}, { kid: 'sealing' }), NO_KEY],
    ['that brings its own key', () => attacker.token({}, { header: { jwk: attacker.jwkOf('one') } }), WRONG],
    [
      'that names its own keys',
      () => attacker.token({}, { header: { jku: 'https://evil.example/keys', x5u: 'https://evil.example/cert' } }),
      WRONG,
    ],
    [
      'with the thumbprint of its own key as name',
      async () => attacker.token({}, { header: { kid: await calculateJwkThumbprint(attacker.jwkOf('one')) } }),
      NO_KEY,
    ],
    [
      'with an extension that must be understood',
      () => assembled({ alg: 'ES256', kid: 'one', crit: ['exp2'], exp2: 1 }, claims(), 'AA'),
      NO_JWT,
    ],
    [
      'whose claims are a list',
      () => issuer.token({}).then(() => assembled({ alg: 'ES256', kid: 'one' }, [], 'AA')),
      WRONG,
    ],
    ['of another issuer', withClaims({ iss: 'https://evil.example' }), OTHER_ISSUER],
    ['of the issuer with a slash', withClaims({ iss: 'https://idp.example.com/' }), OTHER_ISSUER],
    ['of several issuers', withClaims({ iss: ['https://idp.example.com'] }), OTHER_ISSUER],
    ['without an issuer', withClaims({ iss: undefined }), 'it has no claim iss'],
    ['for another audience', withClaims({ aud: 'https://other.example/mcp' }), audienceIs('https://other.example/mcp')],
    ['for other audiences', withClaims({ aud: ['a', 'b'] }), audienceIs('a, b')],
    [
      'for the beginning of the audience',
      withClaims({ aud: 'https://mcp.example.com' }),
      audienceIs('https://mcp.example.com'),
    ],
    ['for the audience with a slash', withClaims({ aud: `${AUDIENCE}/` }), audienceIs(`${AUDIENCE}/`)],
    ['whose audience is a map', withClaims({ aud: { [AUDIENCE]: true } }), audienceIs('[object Object]')],
    ['without an audience', withClaims({ aud: undefined }), 'it has no claim aud'],
    ['that expired a minute ago', withClaims({ exp: NOW_S - 60 }), 'it has expired'],
    ['that expired long ago', withClaims({ exp: 1 }), 'it has expired'],
    ['without an end', withClaims({ exp: undefined }), 'it has no claim exp'],
    ['whose end is a text', withClaims({ exp: '9999999999' }), 'its claim exp is not valid'],
    ['that is valid from later on', withClaims({ nbf: NOW_S + 61 }), 'it is not valid yet'],
    ['whose begin is a text', withClaims({ nbf: 'soon' }), 'its claim nbf is not valid'],
    ['without a subject', withClaims({ sub: undefined }), 'it has no claim sub'],
    ['with an empty subject', withClaims({ sub: '' }), 'its claim sub does not name a user'],
    ['whose subject is a number', withClaims({ sub: 7 }), 'its claim sub does not name a user'],
    ['whose subject is a list', withClaims({ sub: ['ann'] }), 'its claim sub does not name a user'],
    ['whose subject has a NUL character', withClaims({ sub: 'ann\0root' }), 'its claim sub does not name a user'],
    ['whose subject is no Unicode', withClaims({ sub: 'ann\ud800' }), 'its claim sub does not name a user'],
    [
      'whose subject is longer than OpenID Connect allows',
      withClaims({ sub: 'a'.repeat(256) }),
      'its claim sub does not name a user',
    ],
    ['for the logout of a user', withHeader({ typ: 'logout+jwt' }), 'its type is not that of an access token'],
    ['that proves a key', withHeader({ typ: 'dpop+jwt' }), 'its type is not that of an access token'],
    [
      'that is bound to a key',
      withClaims({ cnf: { jkt: 'x' } }),
      'it is bound to a key, which this gateway does not check',
    ],
    ['that is an ID token with the nonce of a login', withClaims({ nonce: 'x' }), ID_TOKEN],
    ['that is an ID token with the hash of an access token', withClaims({ at_hash: 'x' }), ID_TOKEN],
    ['that is an ID token with the hash of a code', withClaims({ c_hash: 'x' }), ID_TOKEN],
  ])('%s', async (_, make, reason) => {
    expect(await reasonFor(await make())).toBe(reason);
  });

  it('that does not say which of two keys has signed it', async () => {
    const twice = await MemoryIssuer.open(issuer.issuer);
    await twice.addKey('two');
    const check = new JwtCheck({ issuer: twice.issuer, audience: [AUDIENCE] }, twice.keys(), () => NOW);
    const token = await twice.token({}, { header: { kid: undefined } });
    await expect(check.check(token)).rejects.toThrow('it does not say which key of the issuer has signed it');
  });

  it('whose algorithm the configuration leaves out', async () => {
    expect(await reasonFor(await issuer.token(), { algorithms: ['RS256'] })).toBe(NOT_ACCEPTED);
  });

  it.each<[what: string, claims: Record<string, unknown>, reason: string]>([
    ['to another app', { azp: 'other' }, 'it was issued to another app (other)'],
    ['to another app at Okta', { cid: 'other' }, 'it was issued to another app (other)'],
    ['to another app by RFC 9068', { client_id: 'other' }, 'it was issued to another app (other)'],
    ['to another app by version 1 of Entra', { appid: 'other' }, 'it was issued to another app (other)'],
    ['to another app, and names this one, too', { azp: 'x', appid: 'own' }, 'it was issued to another app (x)'],
    ['to a list of apps', { azp: ['own'] }, 'it was issued to another app (own)'],
    ['to no app', {}, 'it does not say to which app it was issued'],
  ])('that was issued %s', async (_, more, reason) => {
    expect(await reasonFor(await issuer.token(more), { clients: ['own', 'second'] })).toBe(reason);
  });

  it('without the claim that identifies users', async () => {
    expect(await reasonFor(await issuer.token(), { userClaim: 'oid' })).toBe('its claim oid does not name a user');
  });
});

describe('a JWT is accepted', () => {
  it.each(['one', 'rsa', 'pss', 'ed'])('that the key %s has signed', async (kid) => {
    expect((await checkOf().check(await issuer.token({}, { kid }))).user.name).toBe('ann');
  });

  it.each([
    ['for one of several audiences', { aud: ['other', 'gateway'] }],
    ['that expired less than a minute ago', { exp: NOW_S - 59 }],
    ['that is valid within a minute', { nbf: NOW_S + 60 }],
  ])('%s', async (_, more) => {
    expect((await checkOf().check(await issuer.token(more))).user.name).toBe('ann');
  });

  it.each([
    ['one of its apps', ['own', 'second'], { azp: 'second' }],
    ['one of its apps, as Okta says it', ['own'], { cid: 'own' }],
    ['any app', ['any'], { azp: 'other' }],
    ['any app, without its name', ['any'], {}],
  ])('that was issued to %s', async (_, clients, more) => {
    expect((await checkOf({ clients }).check(await issuer.token(more))).user.name).toBe('ann');
  });

  it.each([undefined, 'JWT', 'at+jwt', 'application/at+jwt'])('of the type %s', async (typ) => {
    expect((await checkOf().check(await issuer.token({}, { header: { typ } }))).user.kind).toBe('user');
  });

  it('and belongs to a principal of issuer and subject, whatever else is in it', async () => {
    const principalOf = async (claims: object) =>
      (await checkOf().check(await issuer.token({ ...claims }))).user.principal;
    const ann = await principalOf({});
    expect(ann).toMatch(/^[0-9a-f]{64}$/);
    expect(await principalOf({ jti: 'another', exp: NOW_S + 1, groups: ['eng'] })).toBe(ann);
    expect(await principalOf({ sub: 'bob' })).not.toBe(ann);
    expect(await principalOf({ sub: 'Ann' })).not.toBe(ann);
  });

  it('and tells its end', async () => {
    expect((await checkOf().check(await issuer.token())).expiresAt).toBe(NOW + 600_000);
  });
});

describe('the claims of a user', () => {
  const userOf = async (more: Record<string, unknown>, config: Config) =>
    (await checkOf(config).check(await issuer.token(more))).user;

  it.each<[claims: Record<string, unknown>, groupsClaim: string | undefined, groups: string[]]>([
    [{}, undefined, []],
    [{ groups: ['eng', 'ops'] }, undefined, ['eng', 'ops']],
    [{ groups: 'eng' }, undefined, ['eng']],
    [{ groups: ['eng', 7, null, { ops: 1 }] }, undefined, ['eng']],
    [{ roles: ['admin'] }, 'roles', ['admin']],
    [{ realm_access: { roles: ['admin'] } }, 'realm_access.roles', ['admin']],
    [{ 'https://example.com/groups': ['eng'] }, 'https://example.com/groups', ['eng']],
    [{}, 'constructor.name', []],
    [{}, '__proto__', []],
  ])('%j at %s name the groups %j', async (more, groupsClaim, groups) => {
    expect((await userOf(more, groupsClaim === undefined ? {} : { groupsClaim })).groups).toEqual(groups);
  });

  it('name the user', async () => {
    expect((await userOf({ oid: '00-1' }, { userClaim: 'oid' })).name).toBe('00-1');
  });

  it.each<[claims: Record<string, unknown>, missing: string[]]>([
    [{ scope: 'read write' }, []],
    [{ scope: 'read' }, ['write']],
    [{ scp: 'write read' }, []],
    [{ scp: ['read', 'write'] }, []],
    [{ scope: 'readwrite' }, ['read', 'write']],
    [{ scope: 7 }, ['read', 'write']],
    [{}, ['read', 'write']],
  ])('%j lack the scopes %j', async (more, missing) => {
    const { missing: found } = await checkOf({ scopes: ['read', 'write'] }).check(await issuer.token(more));
    expect(found).toEqual(missing);
  });
});
