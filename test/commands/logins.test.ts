import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FolderVault } from '../../src/upstream/auth/folder-vault.js';
import { Workplace } from '../cli/cli-run.js';
import { CONFIDENTIAL, startProtected } from '../fixtures/servers/protected.mjs';
import { freePort } from '../support/free-port.js';
import { GatewayProcess } from '../support/gateway-process.js';
import { WITH_HUB } from '../support/hub-place.js';
import { programsWith, until } from '../support/processes.js';

const BROWSER = fileURLToPath(new URL('../fixtures/cli/browser.mjs', import.meta.url));
const run = promisify(execFile);

type Protected = Awaited<ReturnType<typeof startProtected>>;

/** A user with one server behind a URL that wants a login. */
class LoginPlace {
  readonly commands = new Workplace();
  /** The path of a socket is short. */
  readonly data = mkdtempSync('/tmp/tll-');
  readonly server: Protected;
  gateway: GatewayProcess | undefined;

  constructor(server: Protected, oauth?: object, isNamed = false) {
    this.server = server;
    this.commands.configure({
      files: { url: server.url, ...(oauth && { oauth: { ...oauth, ...(isNamed && { issuer: server.issuer }) } }) },
    });
    Object.assign(this.commands.env, { ...this.#env, BROWSER: `"${process.execPath}" "${BROWSER}"` });
  }

  get #env() {
    // Without the program of a keychain, which is that of the user who runs the test.
    const PATH = dirname(process.execPath);
    return { PATH, XDG_DATA_HOME: this.data, TRUNKLINE_HUB_DIR: join(this.data, 'h') };
  }

  /** Starts a gateway with the configuration of the commands. */
  async serve(options: Partial<Parameters<typeof GatewayProcess.start>[0]> = {}): Promise<GatewayProcess> {
    const { folder } = this.commands;
    const { files } = JSON.parse(readFileSync(join(folder, 'trunkline.yaml'), 'utf8')).servers;
    const env = { ...this.#env, ...options.env };
    this.gateway = await GatewayProcess.start({ servers: { files }, ...options, folder, env });
    return this.gateway;
  }

  async login(...args: string[]) {
    return await this.commands.run(['login', 'files', ...args]);
  }

  async status() {
    return JSON.parse((await this.commands.run(['auth', 'status', '--json'])).stdout).logins[0];
  }

  /** The stored login. */
  async record() {
    const vault = new FolderVault(join(this.data, 'trunkline', 'auth'));
    const configFile = join(this.commands.folder, 'trunkline.yaml');
    return await vault.read({ server: 'files', configFile, url: this.server.url });
  }

  /** Begins a login whose page is opened on another machine. */
  async elsewhere(...args: string[]) {
    const { process: running, finished } = this.commands.start(['login', 'files', ...args]);
    let shown = '';
    running.stdout.on('data', (chunk) => {
      shown += chunk;
    });
    await until('the page is shown', () => shown.endsWith('\n'));
    const page = shown.trim();
    /** Opens the page. Resolves with the address of the last one. */
    const browse = async (env: Record<string, string> = {}) => {
      const { stdout } = await run(process.execPath, [BROWSER, page], { env: { ...process.env, ...env } });
      return new URL(stdout.trim());
    };
    return { page: new URL(page), browse, paste: (text: string) => running.stdin.write(`${text}\n`), finished };
  }

  async dispose(): Promise<void> {
    await this.gateway?.end();
    for (const { pid } of programsWith(`hub serve --place ${join(this.data, 'h')}`)) process.kill(pid, 'SIGTERM');
    await until('all hubs end', () => programsWith(`hub serve --place ${join(this.data, 'h')}`).length === 0);
    this.commands.dispose();
    rmSync(this.data, { recursive: true, force: true });
    await this.server.close();
  }
}

async function open(
  options?: Parameters<typeof startProtected>[0],
  oauth?: object,
  isNamed?: boolean,
): Promise<LoginPlace> {
  const place = new LoginPlace(await startProtected(options), oauth, isNamed);
  onTestFinished(() => place.dispose());
  return place;
}

const textOf = ({ message }: Awaited<ReturnType<GatewayProcess['call']>>) => {
  const { content, isError = false } = message.result;
  return { isError, text: content[0].text as string };
};
const LOGIN = expect.stringMatching(/`trunkline login files( --config [^`]+)?`/);
const NEEDS_LOGIN = { isError: true, text: LOGIN };

describe('a login', () => {
  it('comes back to the redirect URI of the entry, with the headers of the entry in every request of it', async () => {
    const redirectUri = `http://localhost:${await freePort()}/back`;
    const place = await open({}, { redirectUri, headers: { 'X-Firewall': 'yes' } });
    const log = join(place.data, 'opened');
    place.commands.env.BROWSER_LOG = log;
    expect(await place.login()).toMatchObject({ code: 0, stderr: expect.stringContaining('Logged in at files') });
    // Other users can read arguments, and the URL has the `state` of the login.
    const [argument = '', page] = readFileSync(log, 'utf8').split('\n');
    expect([argument, page]).toEqual([expect.stringMatching(/^file:[^?]*$/), expect.stringContaining('&state=')]);
    expect(existsSync(fileURLToPath(argument))).toBe(false);
    expect((await place.record())?.client.redirectUri).toBe(redirectUri);
    const own = place.server.asked.filter(({ path }) => ['/reg', '/token'].includes(path));
    expect(own.map(({ headers }) => headers['x-firewall'])).toEqual(['yes', 'yes']);
  });

  it.each([
    ['gateway', {}],
    ['hub', WITH_HUB],
  ])('in the browser reaches a running %s, and so does its end', async (_, env) => {
    const place = await open();
    const { commands, server } = place;
    const gateway = await place.serve({ env });
    await gateway.untilState('files', 'blocked');
    expect(textOf(await gateway.call('files__read'))).toEqual(NEEDS_LOGIN);
    expect(textOf(await gateway.call('files__anything'))).toEqual(NEEDS_LOGIN);

    const login = await place.login();
    expect(login).toMatchObject({ code: 0, stderr: expect.stringContaining('Logged in at files') });
    await gateway.untilState('files', 'ready');
    expect(textOf(await gateway.call('files__read'))).toEqual({ isError: false, text: 'read done' });
    expect(server.to('/token')).toHaveLength(1);
    expect(await place.status()).toEqual({
      ...{ server: 'files', issuer: server.issuer, state: 'logged_in', scopes: ['mcp:read'] },
      ...{ expiresAt: expect.any(String), storedIn: 'file' },
    });

    expect(await commands.run(['logout', 'files'])).toMatchObject({ code: 0 });
    await gateway.untilState('files', 'blocked');
    expect(textOf(await gateway.call('files__read'))).toEqual(NEEDS_LOGIN);
    expect((await gateway.listTools()).map(({ name }) => name)).toContain('files__read');
    expect(await place.status()).toMatchObject({ state: 'login_required', storedIn: null });
  });

  it('on another machine ends with the pasted address, while stdin stays open', async () => {
    const place = await open();
    const { server } = place;
    const { page, browse, paste, finished } = await place.elsewhere('--no-browser');
    expect(Object.fromEntries(page.searchParams)).toMatchObject({
      ...{ response_type: 'code', code_challenge_method: 'S256', scope: 'mcp:read offline_access' },
      ...{ resource: server.url, redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/) },
    });
    const last = await browse({ STOP_BEFORE_CALLBACK: '1' });
    paste('what?');
    paste(last.href.replace(/state=[^&]+/, 'state=x'));
    paste(last.href);
    const { code, stderr } = await finished;
    expect([code, stderr.match(/This is not the address/g)?.length]).toEqual([0, 2]);
  });

  it.each([
    ['a wrong issuer', { iss: 'https://evil.example' }, 'its `iss` is wrong or missing'],
    ['an issuer with a slash', { iss: 'SLASH' }, 'its `iss` is wrong or missing'],
    ['no issuer', { iss: undefined }, 'its `iss` is wrong or missing'],
    [
      'an error of another server',
      { error: 'shown?', code: undefined, iss: 'https://evil.example' },
      'its `iss` is wrong',
    ],
    ['an error', { error: 'access_denied', code: undefined }, 'answers `access_denied`'],
  ])('F243: with %s fails at once, and no token is asked for', async (_, changes, reason) => {
    const place = await open();
    const { server } = place;
    const { browse, paste, finished } = await place.elsewhere('--no-browser');
    const last = await browse({ STOP_BEFORE_CALLBACK: '1' });
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined) last.searchParams.delete(name);
      else last.searchParams.set(name, value === 'SLASH' ? `${last.searchParams.get(name)}/` : value);
    }
    paste(last.href);
    const { code, stderr } = await finished;
    expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
    expect(stderr).not.toContain('shown?');
    expect(server.to('/token')).toHaveLength(0);
    expect(await place.status()).toMatchObject({ state: 'login_required' });
  });

  it('goes on when pages of others are asked of its listener', async () => {
    const place = await open();
    const { page, browse, finished } = await place.elsewhere('--no-browser');
    const { origin } = new URL(page.searchParams.get('redirect_uri') ?? '');
    for (const path of [
      '//',
      '/',
      '/callback',
      '/callback?',
      '/callback?x=1',
      '/%',
      '/other?code=1&state=2',
      '/callback?code=1&state=2',
    ])
      expect((await fetch(`${origin}${path}`)).status).toBe(404);
    expect((await fetch(`${origin}/callback?code=1`, { method: 'POST' })).status).toBe(404);
    await browse();
    expect(await finished).toMatchObject({ code: 0 });
  });

  it('on another device needs a code there', async () => {
    const place = await open();
    const { server } = place;
    const { page, browse, finished } = await place.elsewhere('--device');
    expect(page.pathname).toBe('/device');
    await browse();
    expect(await finished).toMatchObject({ code: 0, stderr: expect.stringContaining('Type this code there:') });
    expect(await place.status()).toMatchObject({ state: 'logged_in', issuer: server.issuer });
  });

  it('is asked for the scopes that a call lacked, besides those that it has', async () => {
    const place = await open();
    const { commands, server } = place;
    await place.login();
    const refused = await commands.run(['call', 'files__write']);
    expect([refused.code, refused.stdout + refused.stderr]).toEqual([7, expect.stringContaining('`mcp:write`')]);
    expect(refused.stdout + refused.stderr).toContain('trunkline login files');
    expect(await place.status()).toMatchObject({ state: 'scope_missing', scopes: ['mcp:read'] });
    expect(await commands.run(['call', 'files__read'])).toMatchObject({ code: 0 });

    await place.login();
    expect(await commands.run(['call', 'files__write'])).toMatchObject({ code: 0, stdout: 'write done\n' });
    expect(await place.status()).toMatchObject({ state: 'logged_in', scopes: ['mcp:read', 'mcp:write'] });
    // The client was registered for the scopes of the first login.
    expect(server.to('/reg')).toHaveLength(2);
  });

  it('F237: that was revoked says so, and how to log in again', async () => {
    const place = await open();
    const { commands, server } = place;
    await place.login();
    const record = await place.record();
    await server.revokeLogin(record?.tokens?.access_token ?? '');
    const { code, stderr } = await commands.run(['call', 'files__read']);
    expect([code, stderr]).toEqual([
      7,
      expect.stringMatching(/has expired or was revoked \(.*invalid_grant.*`trunkline login files/),
    ]);
    expect(await place.status()).toMatchObject({ state: 'login_expired' });
    await place.login();
    expect(await commands.run(['call', 'files__read'])).toMatchObject({ code: 0 });
  });

  it('of a registered app is revoked as its tokens were asked for', async () => {
    const place = await open({}, { ...CONFIDENTIAL, scopes: ['mcp:read'] }, true);
    const { commands, server } = place;
    expect(await place.login()).toMatchObject({ code: 0 });
    expect(await commands.run(['call', 'files__read'])).toMatchObject({ code: 0 });
    const logout = await commands.run(['logout', 'files', '--revoke', '--json']);
    expect(JSON.parse(logout.stdout)).toEqual({ server: 'files', result: 'logged_out', problem: null });
    const basic = `Basic ${Buffer.from(`${CONFIDENTIAL.clientId}:${CONFIDENTIAL.clientSecret}`).toString('base64')}`;
    const authorizations = ['/token', '/token/revocation'].map((path) => server.to(path)[0]?.headers.authorization);
    expect(authorizations).toEqual([basic, basic]);
    expect(server.to('/reg')).toHaveLength(0);
  });

  it('with a secret is refused without a terminal and without `issuer`, and nothing is asked of the authorization server', async () => {
    const place = await open({}, CONFIDENTIAL);
    const { code, stderr } = await place.login();
    expect([code, stderr]).toEqual([1, expect.stringContaining(`add \`issuer: ${place.server.issuer}\` to \`oauth\``)]);
    expect(place.server.asked.map(({ path }) => path).filter((path) => !/mcp|protected-resource/.test(path))).toEqual(
      [],
    );
  });

  it('leaves no secret in logs, records, status, caches, commands or files, from its begin to its end', async () => {
    const place = await open();
    const { commands, server, data } = place;
    const gateway = await place.serve({
      args: ['-vv', '--record', 'RUN/messages.jsonl'],
      gateway: { callLog: 'full' },
    });
    const shown: string[] = [];
    const told = async (...args: string[]) => {
      const { stdout, stderr } = await commands.run(args);
      shown.push(stdout, stderr);
    };
    const processes = async () => shown.push((await run('ps', ['-eo', 'args'])).stdout);
    await told('login', 'files', '-vv');
    await gateway.untilState('files', 'ready');
    await gateway.call('files__read');
    await gateway.call('files__write');
    await processes();
    // The server refuses the token: it is renewed.
    server.refused.add((await place.record())?.tokens?.access_token);
    expect(textOf(await gateway.call('files__read'))).toMatchObject({ isError: false });
    await processes();
    for (const args of [['auth', 'status'], ['auth', 'status', '--json'], ['check', '-vv'], ['doctor'], ['ps']])
      await told(...args);
    shown.push(JSON.stringify(await gateway.status('files')));
    await server.revokeLogin((await place.record())?.tokens?.access_token);
    shown.push(textOf(await gateway.call('files__read')).text);
    await told('login', 'files');
    await told('logout', 'files', '--revoke', '-vv');
    await gateway.end();
    shown.push(gateway.stderr, ...gateway.received.map(({ raw }) => raw));
    for (const folder of [data, commands.folder]) {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
        if (entry.isFile()) shown.push(readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    }
    // Two logins with their codes, and a renewal.
    expect(server.secrets.size).toBeGreaterThanOrEqual(8);
    const all = shown.join('\n');
    expect(all).toContain('files__read');
    expect([...server.secrets].filter((secret) => all.includes(secret))).toEqual([]);
  });
});
