import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FrontConfig } from '../../../src/config/file/check-file.js';
import { UserCheck } from '../../../src/downstream/users/user-check.js';
import { FakeClock } from '../../support/fake-clock.js';
import { sha256 } from '../../support/sha256.js';
import { AUDIENCE, MemoryIssuer, NOW } from './memory-issuer.js';

const MACHINE_TOKEN = 'a-token-of-a-machine-that-is-long-enough-to-be-one';
const WHERE = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource';

let folder: string;
let tokens: string;
let server: Server;
let issuer: MemoryIssuer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-users-'));
  tokens = join(folder, 'tokens');
  writeFileSync(tokens, `ci ${sha256(MACHINE_TOKEN)} builders\nweak ${sha256('short')}\n`);
  server = createServer(async (request, response) => {
    const answer = await issuer.fetch(`${issuer.issuer}${request.url}`).catch(() => new Response('', { status: 503 }));
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = await MemoryIssuer.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await new Promise((resolve) => server.close(resolve));
});

interface Wanted {
  readonly scopes?: string[];
  readonly clients?: string[];
  readonly front?: FrontConfig;
  readonly hasJwt?: boolean;
  readonly hasTokens?: boolean;
}

function usersWith({ scopes, clients, front, hasJwt = true, hasTokens = true }: Wanted = {}) {
  const jwt = { issuer: issuer.issuer, audience: [AUDIENCE], ...(scopes && { scopes }), ...(clients && { clients }) };
  const clock = new FakeClock();
  let now = NOW;
  const noted: string[] = [];
  const users = new UserCheck({
    auth: {
      ...(hasJwt && { jwt }),
      ...(front && { front }),
      ...(hasTokens && { tokens }),
    },
    publicUrl: 'https://mcp.example.com',
    clock,
    now: () => now,
    log: { warn: () => {}, error: () => {} },
    onToken: (_, token) => noted.push(token),
  });
  return {
    users,
    noted,
    admit: async (token: string | undefined, endpoint?: string) =>
      await users.admit(token === undefined ? undefined : `Bearer ${token}`, '192.0.2.1', clock.now(), endpoint),
    pass: (ms: number) => {
      now += ms;
      clock.advance(ms);
    },
  };
}

async function refusalOf(admission: Promise<unknown>) {
  const { refusal } = (await admission) as { refusal?: { status: number; headers: Record<string, string> } };
  return [refusal?.status, refusal?.headers['www-authenticate']];
}

describe('a request without a token', () => {
  it.each([
    [undefined, '/mcp'],
    ['files', '/mcp/files'],
    ['v/dev', '/mcp/v/dev'],
    ['a"b\r\nc', '/mcp/a%22b%0D%0Ac'],
  ])('for %j learns where to log in', async (endpoint, path) => {
    expect(await refusalOf(usersWith().admit(undefined, endpoint))).toEqual([401, `Bearer ${WHERE}${path}"`]);
  });

  it('learns the scopes', async () => {
    const { admit } = usersWith({ scopes: ['mcp:read', 'mcp:write'] });
    expect(await refusalOf(admit(undefined))).toEqual([401, `Bearer scope="mcp:read mcp:write", ${WHERE}/mcp"`]);
  });

  it('learns of no login if only machines have tokens', async () => {
    const { admit, users } = usersWith({ hasJwt: false });
    expect(await refusalOf(admit(undefined))).toEqual([401, 'Bearer realm="trunkline"']);
    expect(users.metadata('/mcp')).toBeUndefined();
  });
});

describe('a token', () => {
  it('of a user proves the user', async () => {
    const found = await usersWith().admit(await issuer.token({ groups: ['eng'] }));
    expect(found).toMatchObject({ user: { name: 'ann', kind: 'user', groups: ['eng'] } });
  });

  it('of a request is kept for exchanges, and that of a sign-in in a browser is not', async () => {
    const { users, admit, noted } = usersWith();
    const [signedIn, requested] = [await issuer.token(), await issuer.token({ jti: 'other' })];
    expect(await users.userOf(signedIn)).toMatchObject({ name: 'ann' });
    expect(await users.userOf(signedIn)).toMatchObject({ name: 'ann' });
    expect(await users.userOf(`${signedIn}x`)).toBeUndefined();
    expect(noted).toEqual([]);
    await admit(requested);
    await admit(requested);
    await admit(`${requested}x`);
    expect(noted).toEqual([requested, requested]);
  });

  it('of a machine proves the machine', async () => {
    expect(await usersWith().admit(MACHINE_TOKEN)).toMatchObject({
      user: { name: 'ci', kind: 'machine', groups: ['builders'] },
    });
  });

  it('of a machine that is short enough to be guessed is refused', async () => {
    expect((await refusalOf(usersWith().admit('short')))[0]).toBe(401);
  });

  it('that is not accepted is told why, without characters that end a header', async () => {
    const wrong = await issuer.token({ aud: 'a"b\\c\r\nx: y é' });
    expect(await refusalOf(usersWith().admit(wrong))).toEqual([
      401,
      `Bearer error="invalid_token", error_description="it is for another audience (a?b?c??x: y ?)", ${WHERE}/mcp"`,
    ]);
  });

  it('with a long audience is told a part of it', async () => {
    const [, challenge = ''] = await refusalOf(usersWith().admit(await issuer.token({ aud: 'a'.repeat(5_000) })));
    expect(String(challenge).length).toBeLessThan(500);
  });

  it('of another app is refused behind a front, unless the configuration names it or any app', async () => {
    const front = { clientId: 'own', clientIds: { 'claude.ai': 'second' } };
    const statusOf = async (azp: string | undefined, clients?: string[]) =>
      (await refusalOf(usersWith({ front, ...(clients && { clients }) }).admit(await issuer.token({ azp }))))[0];
    expect([await statusOf('other'), await statusOf(undefined)]).toEqual([401, 401]);
    expect([await statusOf('own'), await statusOf('second')]).toEqual([undefined, undefined]);
    expect([await statusOf('other', ['other']), await statusOf('own', ['other'])]).toEqual([undefined, 401]);
    expect(await statusOf(undefined, ['any'])).toBeUndefined();
  });

  it('without a scope is refused with all scopes', async () => {
    const { admit } = usersWith({ scopes: ['mcp:read', 'mcp:write'] });
    expect(await refusalOf(admit(await issuer.token({ scope: 'mcp:read' })))).toEqual([
      403,
      `Bearer error="insufficient_scope", scope="mcp:read mcp:write", ${WHERE}/mcp"`,
    ]);
  });

  it('is checked once in five minutes, and after that again', async () => {
    await issuer.addKey('brief');
    const token = await issuer.token({ exp: NOW / 1_000 + 3_600 }, { kid: 'brief' });
    // Reads the keys at once.
    const { admit, pass } = usersWith();
    expect(await admit(token)).toHaveProperty('user');
    issuer.withdraw('brief');
    pass(5 * 60_000 - 1);
    expect(await admit(token)).toHaveProperty('user');
    pass(5 * 60_000 + 1);
    expect((await refusalOf(admit(token)))[0]).toBe(401);
  });

  it('is refused after its end, also if it was checked before', async () => {
    const { admit, pass } = usersWith();
    const token = await issuer.token({ exp: NOW / 1_000 + 10 });
    expect(await admit(token)).toHaveProperty('user');
    pass(70_000);
    expect((await refusalOf(admit(token)))[0]).toBe(401);
  });

  it('cannot be checked before the keys are known, which is no fault of the token', async () => {
    issuer.isDown = true;
    const { admit, pass } = usersWith();
    const token = await issuer.token();
    expect((await refusalOf(admit(token)))[0]).toBe(503);
    issuer.isDown = false;
    pass(2_000);
    expect(await admit(token)).toHaveProperty('user');
  });
});

describe('the metadata of the endpoints', () => {
  it.each([
    [undefined, ''],
    ['/mcp', '/mcp'],
    ['/mcp/v/dev', '/mcp/v/dev'],
  ])('at %s name the issuer', (path, resource) => {
    expect(usersWith({ scopes: ['mcp:read'] }).users.metadata(path)).toEqual({
      resource: `https://mcp.example.com${resource}`,
      authorization_servers: [issuer.issuer],
      bearer_methods_supported: ['header'],
      scopes_supported: ['mcp:read'],
      resource_name: 'Trunkline',
    });
  });
});
