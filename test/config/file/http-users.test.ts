import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { variantOf } from '../../../src/config/resolve/config.js';
import { load, loadServer, problemsOf } from '../loading.js';

const JWT = { issuer: 'https://idp.example.com/', audience: ['https://mcp.example.com/mcp'] };

/** A configuration with these settings of HTTP, as JSON on one line. */
const withHttp = (http: object, more: object = {}) =>
  JSON.stringify({ servers: { a: { command: 'x' } }, ...more, gateway: { http } });
const withFront = (front: object) => withHttp({ publicUrl: 'https://mcp.example.com', auth: { jwt: JWT, front } });
const withJwt = (jwt: object) => withHttp({ publicUrl: 'https://mcp.example.com', auth: { jwt: { ...JWT, ...jwt } } });
/** The problems without their positions. */
const faultsOf = (text: string) => problemsOf(text).map((problem) => problem.replace(/^\d+:\d+ /, ''));

const HTTPS = 'a URL that begins with https://, or with http:// and a loopback address';
const isWindows = process.platform === 'win32';
const PUBLIC = 'a URL without a path that begins with https://, or with http:// and a loopback address';

describe('the users of HTTP', () => {
  test('are read with their files, which are relative to the file of the configuration', () => {
    const { file, gateway } = load(
      withHttp({
        maxSessions: 7,
        publicUrl: 'https://MCP.example.com/',
        auth: { jwt: JWT, tokens: 'machines', variables: '~/v' },
      }),
    );
    expect(gateway.http).toMatchObject({
      ...{ maxSessions: 7, maxConnections: 256, publicUrl: 'https://mcp.example.com' },
      auth: {
        jwt: JWT,
        tokens: file.replace('trunkline.yaml', 'machines'),
        variables: resolve(tmpdir(), '/home/ada/v'),
      },
    });
  });

  test('are absent without `auth`', () => {
    expect(load(withHttp({ maxSessions: 7 })).gateway.http).not.toHaveProperty('auth');
  });

  test.each<[text: string, fault: string]>([
    [
      withHttp({ auth: {} }),
      'gateway.http.auth: found neither `jwt` nor `tokens`, so nobody could log in; add one of them',
    ],
    [
      withHttp({ auth: { jwt: JWT } }),
      'gateway.http.auth: found `auth.jwt` without `publicUrl`, which tells clients where to log in; add `publicUrl`',
    ],
    [withJwt({ issuer: undefined }), `gateway.http.auth.jwt.issuer: found no value; expected ${HTTPS}`],
    [withJwt({ audience: undefined }), 'gateway.http.auth.jwt.audience: found no value; expected a list of strings'],
    [
      withJwt({ audience: [] }),
      'gateway.http.auth.jwt.audience: found a list; expected a list with at least one audience',
    ],
    [withJwt({ audience: 'x' }), 'gateway.http.auth.jwt.audience: found a string; expected a list of strings'],
    [
      withJwt({ issuer: 'http://idp.example.com' }),
      `gateway.http.auth.jwt.issuer: found the string "http://idp.example.com"; expected ${HTTPS}`,
    ],
    [
      withJwt({ jwksUri: 'http://10.0.0.1/keys' }),
      `gateway.http.auth.jwt.jwksUri: found the string "http://10.0.0.1/keys"; expected ${HTTPS}`,
    ],
    [
      withJwt({ issuer: 'https://user@idp.example.com' }),
      `gateway.http.auth.jwt.issuer: found the string "https://user@idp.example.com"; expected ${HTTPS}`,
    ],
    ...['https://mcp.example.com/mcp', 'https://mcp.example.com/?x', 'mcp.example.com', 'http://mcp.example.com'].map(
      (publicUrl): [string, string] => [
        withHttp({ publicUrl }),
        `gateway.http.publicUrl: found the string ${JSON.stringify(publicUrl)}; expected ${PUBLIC}`,
      ],
    ),
    [
      withJwt({ algorithms: [] }),
      'gateway.http.auth.jwt.algorithms: found a list; expected a list with at least one algorithm',
    ],
    [withFront({}), 'gateway.http.auth.front.clientId: found no value; expected the id of a client'],
    [
      withHttp({ auth: { tokens: 't', front: { clientId: 'x' } } }),
      'gateway.http.auth.front: found `front` without `jwt`, the identity provider to which it leads; add `jwt`',
    ],
    [
      withFront({ clientId: 'x', parameters: { state: 'x' } }),
      'gateway.http.auth.front.parameters.state: found `state`, which Trunkline sets itself; remove it',
    ],
    ...[
      ...['http://evil.example/', 'https://x/#y', 'https://u@x/', 'javascript:', 'data:', 'http:', 'https:', 'vscode'],
      ...['VSCODE:', 'vscode:', 'x://a#b', 'x://a b', 'file:', 'file:///x', 'javascript:alert(1)', '*', ''],
    ].map((uri): [string, string] => [
      withFront({ clientId: 'x', redirects: [uri] }),
      `gateway.http.auth.front.redirects[0]: found the string ${JSON.stringify(uri)}; expected \`loopback\`, a URL that begins with https://, or the whole URI of an app such as \`cursor://x/y\``,
    ]),
  ])('cannot be configured as in %s', (text, fault) => {
    expect(faultsOf(text)).toEqual([fault]);
  });

  test.each(['HS256', 'none', 'rs256'])('cannot have tokens with the algorithm %s', (algorithm) => {
    const [fault] = faultsOf(withJwt({ algorithms: ['RS256', algorithm] }));
    expect(fault).toContain(
      `gateway.http.auth.jwt.algorithms[1]: found the string "${algorithm}"; expected one of RS256,`,
    );
  });

  test.each(['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080'])(
    'may be on this machine: %s',
    (url) => {
      const http = { publicUrl: url, auth: { jwt: { ...JWT, issuer: url } } };
      expect(load(withHttp(http)).gateway.http.publicUrl).toBe(url);
    },
  );

  test.each<[what: string, http: object, more: object, warning: string | undefined]>([
    [
      'groups without users',
      {},
      { views: { v: { groups: ['g'] } } },
      '`groups` has no effect without `gateway.http.auth`',
    ],
    [
      'views for names of clients beside groups',
      { auth: { tokens: 't' } },
      { views: { v: { groups: ['g'] } }, clients: { x: 'v' } },
      '`clients` has no effect over HTTP',
    ],
    ['groups with users', { auth: { tokens: 't' } }, { views: { v: { groups: ['g'] } } }, undefined],
    [
      'views for names of clients with users',
      { auth: { tokens: 't' } },
      { views: { v: {} }, clients: { x: 'v' } },
      undefined,
    ],
  ])('%s: a warning, or none', (_, http, more, warning) => {
    const { warnings } = load(withHttp(http, more));
    expect(warnings).toEqual(warning === undefined ? [] : [expect.stringContaining(warning)]);
  });
});

describe('a variable of a user', () => {
  const TEXT = JSON.stringify({
    servers: { a: { command: 'x', args: [`\${user:KEY}`], env: { B: `\${user:OTHER:-none}` } } },
  });
  const origin = (environment: Record<string, string>, user?: string) => ({ environment, folder: '/', user });

  test('has the value of the user, and a default for others', () => {
    const { serverFor } = load(TEXT);
    expect(serverFor('a', origin({ 'user:KEY': 'k' }, 'ann'))?.spec).toMatchObject({
      args: ['k'],
      env: { B: 'none' },
    });
  });

  test('is missing without a user, also if a variable of the environment has its name', () => {
    const { problem } = loadServer(TEXT, { env: { KEY: 'k', HOME: '/home/ada' } });
    expect(problem).toMatchObject({ isOfUser: 'any' });
    expect(problem?.message).toContain('the variable KEY of the user is not set');
    expect(problem?.hint).toMatch(/^run `trunkline user set USER KEY` for each user.*\$\{user:KEY:-default\}/);
  });

  test.each([
    ['ann@example.com', false, 'the user ann@example.com', 'set ann@example.com KEY`'],
    ['ci', true, 'the machine ci', 'set ci KEY --machine`'],
    ["auth0|o'ann", false, "the user auth0|o'ann", `set ${isWindows ? `"auth0|o'ann"` : `'auth0|o'\\''ann'`} KEY\``],
    ['a\nb', false, 'the user a\\u{a}b', `set ${isWindows ? `"a\\u{a}b"` : `'a\\u{a}b'`} KEY\``],
  ])('of %j that is missing is named with its owner and the command', (userName, isMachine, owner, command) => {
    const { problem } = load(TEXT).serverFor('a', { ...origin({}, 'p'), userName, isMachine }) ?? {};
    expect(problem).toMatchObject({ isOfUser: 'one', message: expect.stringContaining(`KEY of ${owner} is not set`) });
    expect(problem?.hint).toContain(`run \`trunkline user ${command} where the gateway runs`);
  });

  test('is a secret, whatever its name', () => {
    const { serverFor } = load(TEXT);
    expect(serverFor('a', origin({ 'user:KEY': 'k', 'user:OTHER': 'o' }, 'ann'))?.secrets).toEqual({
      'user:KEY': 'k',
      'user:OTHER': 'o',
    });
  });

  test('makes a variant for each user, also of equal values', () => {
    const server = loadServer(TEXT);
    const variants = ['ann', 'bob', undefined].map((user) => variantOf(server, origin({ 'user:KEY': 'k' }, user)));
    expect(new Set([...variants, variantOf(server)]).size).toBe(4);
  });

  test('is not needed for a variant for each user if a sandbox gives each user a home folder', () => {
    const variantsOf = (more: object) => {
      const server = loadServer(JSON.stringify({ servers: { a: { command: 'x', sandbox: true, ...more } } }));
      return new Set(['ann', 'bob'].map((user) => variantOf(server, origin({}, user)))).size;
    };
    expect([variantsOf({}), variantsOf({ sharing: 'all' })]).toEqual([2, 1]);
  });

  test('makes no variant of a server that names none', () => {
    const server = loadServer('servers: { a: { command: x } }');
    expect(variantOf(server, origin({ 'user:KEY': 'k' }, 'ann'))).toBe(variantOf(server));
  });
});
