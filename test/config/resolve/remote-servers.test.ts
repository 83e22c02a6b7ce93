import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { secretSourcesOf } from '../../../src/app/active-config.js';
import { checkFile } from '../../../src/config/file/check-file.js';
import { type ServerConfig, variantOf } from '../../../src/config/resolve/config.js';
import { resolveConfig } from '../../../src/config/resolve/resolve-config.js';
import { KnownSecrets } from '../../../src/host/observe/redact.js';
import type { RemoteSpec } from '../../../src/spec/server-spec.js';
import { folderWith } from '../files.js';
import { problemsOf } from '../loading.js';

const $ = '$';

interface Loading {
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly root?: 'servers' | 'mcpServers';
}

/** The server of a file that has this entry alone. */
function serverOf(entry: object, { env = {}, files = {}, secrets = {}, root = 'servers' }: Loading = {}): ServerConfig {
  const file = join(folderWith(files), 'trunkline.yaml');
  const text = JSON.stringify({ [root]: { far: entry } });
  writeFileSync(file, text);
  const [server] = resolveConfig(file, checkFile(text, file), {
    env: { HOME: '/home/ada', ...env },
    nodePath: '/opt/node',
    ownFolder: '/opt/trunkline',
    secrets: new Map(Object.entries(secrets).map(([name, value]) => [name, { value }])),
  }).servers;
  if (server === undefined) throw new Error('the text has no server');
  return server;
}

const URL = 'https://far.test/mcp';

describe('a server behind a URL', () => {
  it('has the headers of its entry, by names in lower case, with variables and secrets in them', () => {
    const headers = { Authorization: `Bearer ${$}{secret:TOKEN}`, 'X-Team': `${$}{TEAM}`, 'X-Own': `${$}{OWN}` };
    const server = serverOf(
      { url: `https://${$}{HOST}/mcp`, headers, envFile: 'my.env' },
      { env: { HOST: 'far.test', TEAM: 'blue' }, secrets: { TOKEN: 'canary' }, files: { 'my.env': 'OWN=mine' } },
    );
    expect(server.problem).toBeUndefined();
    expect(server.spec).toMatchObject({
      kind: 'remote',
      key: 'far',
      url: URL,
      transport: 'auto',
      headers: { authorization: 'Bearer canary', 'x-team': 'blue', 'x-own': 'mine' },
    });
    expect(server.variables).toEqual(['HOST', 'TEAM']);
  });

  it.each([
    [{}, 'auto'],
    [{ type: 'http' }, 'http'],
    [{ type: 'streamable-http' }, 'http'],
    [{ type: 'sse' }, 'sse'],
    [{ transport: 'sse' }, 'sse'],
    [{ type: 'http', transport: 'auto' }, 'auto'],
  ])('with %j has the transport %s', (keys, transport) => {
    expect(serverOf({ url: URL, ...keys }).spec).toMatchObject({ transport });
  });

  it.each(['http://localhost:8080/mcp', 'http://127.0.0.1/mcp', 'http://[::1]:1/mcp'])(
    'may be without encryption on this machine: %s',
    (url) => expect(serverOf({ url }).spec).toMatchObject({ url }),
  );

  it('may have a proxy, certificates of its own, and a command that prints headers', () => {
    const pem = '-----BEGIN CERTIFICATE-----\n';
    const entry = {
      url: URL,
      headersCommand: `print $TOKEN $${$}{SHELL}`,
      env: { TOKEN: `${$}{PROXY}` },
      proxy: `http://${$}{PROXY}:3128`,
      caFile: './ca.pem',
    };
    const server = serverOf(entry, { env: { PROXY: 'proxy.test' }, files: { 'ca.pem': pem } });
    expect(server.spec).toMatchObject({
      proxy: 'http://proxy.test:3128',
      ca: pem,
      headersCommand: { line: `print $TOKEN ${$}{SHELL}`, env: { TOKEN: 'proxy.test' } },
    });
  });

  it('does not get the variables of `defaults.env`, which are for programs', () => {
    const text = `defaults: { env: { A: "${$}{UNSET}" } }\nservers: { far: { url: "${URL}" } }`;
    const file = join(folderWith({}), 'trunkline.yaml');
    const options = { env: {}, nodePath: '/opt/node', ownFolder: '/opt/trunkline' };
    expect(resolveConfig(file, checkFile(text, file), options).servers[0]?.problem).toBeUndefined();
  });

  it('passes on headers whose names only look like those of an address', () => {
    const passHeaders = ['X-Membership', 'X-Zip', 'X-Email-Address', 'X-Tenant_Id', 'Traceparent'];
    expect(serverOf({ url: URL, passHeaders }).passHeaders).toEqual(passHeaders.map((name) => name.toLowerCase()));
  });
});

describe('a remote server that cannot be used', () => {
  it.each(['PROXY', 'secret:KEY', 'user:TOKEN'])('refers to %s in the line of a command', (name) => {
    expect(serverOf({ url: URL, headersCommand: `print ${$}{${name}}` }).problem?.message).toContain(
      `far.headersCommand: the command is run by a shell, and the value of ${$}{${name}} would become a part`,
    );
  });

  it.each([
    [{ url: 'far.test/mcp' }, 'far.url: the URL is not valid'],
    [{ url: 'http://far.test/mcp' }, 'far.url: the URL is not encrypted, and its host is not this machine'],
    [{ url: 'http://127.0.0.1.far.test/' }, 'far.url: the URL is not encrypted'],
    [{ url: 'ws://far.test/' }, 'far.url: the URL begins with ws:'],
    [{ url: 'https://ada:canary@far.test/' }, 'far.url: the URL has a user name or a password'],
    [{ url: 'https://ada@far.test/' }, 'far.url: the URL has a user name or a password'],
    [{ url: URL, proxy: 'proxy.test:3128' }, 'far.proxy: the proxy is not a valid URL'],
    [{ url: URL, caFile: 'gone.pem' }, 'gone.pem cannot be read'],
    [{ url: URL, caFile: 'trunkline.yaml' }, 'trunkline.yaml has no certificate in PEM'],
    [{ url: URL, headers: { A: 'canary\nB: c' } }, 'far.headers.A: the value of the header has characters'],
    [{ url: URL, headers: { A: `${$}{UNSET}` } }, 'far.headers.A: the environment variable UNSET is not set'],
  ])('%j', (entry, message) => {
    const { spec, problem } = serverOf(entry);
    expect(spec).toBeUndefined();
    expect(problem?.message).toContain(message);
    expect(JSON.stringify(problem)).not.toContain('canary');
  });

  it.each([
    ...[
      'Authorization',
      'COOKIE',
      'Set-Cookie',
      'DPoP',
      'Host',
      'Connection',
      'Keep-Alive',
      'TE',
      'Trailer',
      'Upgrade',
    ],
    ...['Transfer-Encoding', 'Expect', 'Origin', 'Accept', 'Accept-Encoding', 'Last-Event-ID', 'Range', 'If-Match'],
    ...['Forwarded', 'Via', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Real-IP', 'X-HTTP-Method-Override'],
    ...['Content-Type', 'Content-Length', 'Content-Encoding', 'Mcp-Session-Id', 'Mcp-Param-Region', 'MCP-Name'],
    ...['Proxy-Authorization', 'Proxy-Connection', 'Sec-Fetch-Site', 'Trunkline-Hop', 'X-Original-URL'],
    ...['True-Client-IP', 'X-Client-IP', 'X-Cluster-Client-IP', 'CF-Connecting-IP', 'CF-Connecting-IPv6', 'Client-IP'],
    ...['Fastly-Client-IP', 'X-Envoy-External-Address', 'X-Remote-IP', 'X-Remote-Addr', 'X-Originating-IP'],
    ...['X-Azure-ClientIP', 'CloudFront-Viewer-Address', 'X-Forwarded', 'Z-Forwarded-For', 'X-Forward-For'],
    ...['X_Forwarded_For', 'x_real_ip', 'Content_Type', 'Mcp_Session-Id', 'Set_Cookie'],
  ])('would pass on the header %s of its clients', (name) => {
    const text = `servers:\n  far:\n    url: ${URL}\n    passHeaders: [X-Tenant, ${name}]\n`;
    expect(problemsOf(text)).toEqual([
      '4:29 servers.far.passHeaders[1]: this header of a client reaches no server, because it is a credential or belongs to the connection; remove it',
    ]);
  });

  it.each([
    ['passHeaders: [ "a b" ]', '4:20 servers.far.passHeaders[0]: this is not a valid name of an HTTP header'],
    [
      'headers: { x-tenant: red }\n    passHeaders: [X-Tenant]',
      '5:5 servers.far.passHeaders: found `X-Tenant` in both `headers` and `passHeaders`; remove it from one of them',
    ],
    [
      'headers: { x-tenant: red }\n    passHeaders: [X_Tenant]',
      '5:5 servers.far.passHeaders: found `X_Tenant` in both `headers` and `passHeaders`; remove it from one of them',
    ],
  ])('has %j', (line, problem) => {
    expect(problemsOf(`servers:\n  far:\n    url: ${URL}\n    ${line}\n`)).toEqual([problem]);
  });

  it('runs a program and would pass on headers, which only a URL can get', () => {
    const text = 'servers:\n  near:\n    command: x\n    passHeaders: [X-Tenant]\n';
    expect(problemsOf(text)).toEqual([
      '4:5 servers.near.passHeaders: found `passHeaders`, which a server with `command` does not have; remove it',
    ]);
  });

  it('stands below `mcpServers`, and says so', () => {
    const { spec, problem } = serverOf({ url: URL, type: 'http', oauth: {} }, { root: 'mcpServers' });
    expect(spec).toBeUndefined();
    expect(problem?.message).toContain('mcpServers.far: servers behind a URL are used below `servers:` only');
  });
});

describe('the secrets of a remote server', () => {
  it.each<[object, string[] | undefined]>([
    [{ clientId: 'c' }, undefined],
    [{ headers: { A: `${$}{TEAM}` }, tokenParams: { a: 'b' } }, undefined],
    [{ clientId: 'c', clientSecret: 'plain' }, ['clientSecret']],
    [{ clientId: 'c', privateKeyFile: 'key.pem' }, ['privateKeyFile']],
    [{ headers: { A: `${$}{secret:FIREWALL}` } }, ['headers']],
    [{ tokenParams: { a: 'b', c: `x ${$}{secret:FIREWALL}` } }, ['tokenParams']],
  ])('for its authorization server are found in %j', (oauth, confidential) => {
    const loading = { env: { TEAM: 't' }, secrets: { FIREWALL: 'canary firewall' }, files: { 'key.pem': 'key' } };
    const server = serverOf({ url: URL, oauth }, loading);
    expect(server.problem).toBeUndefined();
    const { login } = server.spec as RemoteSpec;
    expect(login?.confidential).toEqual(confidential);
    const secrets = new KnownSecrets();
    secrets.know(secretSourcesOf(server));
    expect(secrets.redact('canary firewall')).toBe(
      JSON.stringify(oauth).includes('secret:') ? '[redacted]' : 'canary firewall',
    );
  });

  it('are the values of its headers, and the keys in its URLs', () => {
    const server = serverOf({
      url: 'https://far.test/s/canary0123456789ABCDEF0123456789/mcp?api_key=canary-query&team=blue-team',
      headers: { Authorization: 'Bearer canary-token', 'X-Anything': 'canary anything' },
      proxy: 'http://ada:canary-proxy@proxy.test:3128',
    });
    const secrets = new KnownSecrets();
    secrets.know(secretSourcesOf(server));
    const told = secrets.redact(
      'canary-token, canary anything, canary-query, canary-proxy, canary0123456789ABCDEF0123456789 of blue-team',
    );
    expect(told).not.toContain('canary');
    expect(told).toContain('of blue-team');
  });
});

describe('a server with `login: user`', () => {
  const AUTH = { jwt: { issuer: 'https://idp.test', audience: ['x'] } };
  const configOf = (entry: object, auth: object | null = AUTH) => {
    const file = join(folderWith({}), 'trunkline.yaml');
    const text = JSON.stringify({
      servers: { far: { url: URL, login: 'user', ...entry } },
      ...(auth && { gateway: { http: { publicUrl: 'https://mcp.test', auth } } }),
    });
    return resolveConfig(file, checkFile(text, file), { env: {}, nodePath: '', ownFolder: '' });
  };
  const originOf = (user?: string, isMachine = false) => ({
    ...{ environment: {}, folder: '/', userName: `name of ${user}`, isMachine },
    ...(user !== undefined && { user }),
  });

  it('acts in the name of the user of a client, whose connection no other user shares', () => {
    const config = configOf({});
    const spec = (user?: string) => config.serverFor('far', originOf(user))?.spec as RemoteSpec;
    expect([spec('p1').user, spec('p2').user]).toEqual(['p1', 'p2']);
    const [server] = config.servers;
    const variants = ['p1', 'p2', undefined].map((user) => server && variantOf(server, originOf(user)));
    expect(new Set(variants).size).toBe(3);
  });

  it('has the login of the machine for clients without a user', () => {
    const [server] = configOf({}).servers;
    expect(server?.spec).not.toHaveProperty('user');
    expect(server?.spec).toHaveProperty('login');
  });

  it('does not run for a machine, which has no person who could log in', () => {
    const { spec, problem } = configOf({}).serverFor('far', originOf('p1', true)) ?? {};
    expect(spec).toBeUndefined();
    expect(problem).toMatchObject({
      message:
        'servers.far.login: the machine name of p1 cannot log in at a server with `login: user`, which needs a person',
      isOfUser: 'one',
    });
  });

  it.each<[what: string, auth: object | null, effect: string]>([
    ['no users', null, 'so it has no effect now'],
    ['machines only', { tokens: 'machines' }, 'so nobody can use the server over HTTP now'],
  ])('warns if there are %s', (_, auth, effect) => {
    expect(configOf({}, auth).warnings.join()).toContain(effect);
    expect(configOf({}).warnings).toEqual([]);
  });

  it.each<[entry: object, fault: string]>([
    [{ headers: { Authorization: 'x' } }, 'found `login` beside credentials in `headers` or `headersCommand`'],
    [{ headersCommand: 'x' }, 'found `login` beside credentials in `headers` or `headersCommand`'],
    [{ oauth: { grant: 'client_credentials', clientId: 'x' } }, 'found `login: user` with `grant: client_credentials`'],
    [{ url: undefined, command: 'x' }, 'found `login`, which a server with `command` does not have'],
    [{ login: 'machine' }, 'found the string "machine"; expected user'],
  ])('cannot be configured with %j', (entry, fault) => {
    expect(() => configOf(entry)).toThrow(fault);
  });
});
