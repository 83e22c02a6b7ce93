// The renewal of a login at a real authorization server, on a clock that the test moves.
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/host/observe/system-clock.js';
import { beginLogin } from '../../src/upstream/auth/login.js';
import { OAuthAccess } from '../../src/upstream/auth/oauth-access.js';
import type { Vault } from '../../src/upstream/auth/vault.js';
import { browse } from '../fixtures/cli/browser.mjs';
import { startProtected } from '../fixtures/servers/protected.mjs';
import { sampleSpec } from '../servers/supervision/sample-spec.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/processes.js';

let folder: string;
/** Opens the vault of logins as another process does. `folder` is that of the test. */
export type OpenVault = (folder: string) => Promise<Vault>;

/** A login at a server, and the access of one or more processes to it. */
export async function loggedIn(openVault: OpenVault, lifetimeSeconds = 3_600) {
  const server = await startProtected({ lifetimeSeconds });
  onTestFinished(async () => void (await server.close()));
  const { key, timeouts, restart } = sampleSpec();
  const login = { server: 'files', configFile: join(folder, 'trunkline.yaml'), grant: 'authorization_code' as const };
  const remote = { kind: 'remote' as const, transport: 'http' as const, headers: {} };
  const spec = { key, timeouts, restart, ...remote, url: server.url, login };
  const vault = await openVault(folder);
  const pending = await beginLogin({ spec, vault, clock: systemClock });
  await browse(pending.url);
  const { identity, tokens } = await pending.finished;
  const first = tokens?.access_token ?? '';
  const request = { method: 'POST', url: new URL(server.url) };
  const clock = new FakeClock();
  const access = async (withVault?: Vault) => {
    const opened = new OAuthAccess({
      spec,
      vault: withVault ?? (await openVault(folder)),
      clock,
      keepSecret: () => () => {},
    });
    return {
      use: () => opened.use(),
      reread: () => opened.reread(),
      token: async () => {
        const headers = await opened.headers(request);
        return 'authorization' in headers ? headers.authorization?.replace('Bearer ', '') : headers;
      },
      rejected: (token: string) =>
        opened.rejected({ status: 401, authenticate: ['Bearer'] }, { authorization: `Bearer ${token}` }, request),
    };
  };
  const refreshes = () => server.to('/token').filter(({ form }) => form.includes('grant_type=refresh_token')).length;
  const id = { ...login, url: server.url };
  const record = () => vault.read(id);
  /** Moves all clocks, and lets what falls due end. */
  const pass = async (ms: number, renewals: number) => {
    vi.setSystemTime(Date.now() + ms);
    clock.advance(ms);
    await until(`${renewals} renewals`, () => refreshes() === renewals);
    // A renewal has the lock until its end.
    await vault.locked(id, AbortSignal.timeout(10_000), async () => {});
  };
  return { folder, server, access, clock, first, identity, refreshes, record, pass };
}

const EXPIRED = {
  blocked: 'login_required',
  because: expect.stringMatching(
    /has expired or was revoked \(the authorization server answered HTTP 400: invalid_grant.*\); `trunkline login files --config .*` logs in$/,
  ),
};

/** The promises about a login, wherever the vault keeps it. */
export function describeRenewals(name: string, openVault: OpenVault): void {
  describe(name, () => {
    beforeEach(() => {
      // The time of the authorization server and of the logins, which a test moves. Timers are real.
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
      // The path of a socket is short.
      folder = mkdtempSync('/tmp/tlr-');
    });
    afterEach(() => {
      vi.useRealTimers();
      rmSync(folder, { recursive: true, force: true });
    });

    it.each([
      [3_600, 60],
      [301, 60],
      [300, 60],
      [100, 20],
      [10, 2],
    ])('whose tokens live %i s is renewed %i s before their end', async (lifetime, before) => {
      const { access, clock, first, refreshes, record, pass, identity } = await loggedIn(openVault, lifetime);
      const own = await access();
      const release = own.use();
      await until('the renewal is planned', () => clock.pending > 0);
      await pass((lifetime - before) * 1_000 - 1, 0);
      expect(await own.token()).toBe(first);
      await pass(1, 1);
      const stored = await record();
      expect([await own.token(), identity]).toEqual([stored?.tokens?.access_token, stored?.identity]);
      expect(stored?.tokens?.access_token).not.toBe(first);
      release();
      expect([clock.pending, refreshes()]).toEqual([0, 1]);
    });

    it('F239: is renewed once for all requests and processes whose token the server refuses', async () => {
      const { access, first, refreshes } = await loggedIn(openVault);
      const all = [await access(), await access(), await access()];
      for (const one of all) expect(await one.token()).toBe(first);
      const verdicts = await Promise.all([...all, ...all].map((one) => one.rejected(first)));
      expect([new Set(verdicts), refreshes()]).toEqual([new Set(['again']), 1]);
      expect(new Set(await Promise.all(all.map((one) => one.token()))).size).toBe(1);
    });

    it('stays when the server refuses one token after the other', async () => {
      const { access, first, refreshes, record } = await loggedIn(openVault);
      const own = await access();
      expect(await own.rejected(first)).toBe('again');
      const second = (await own.token()) as string;
      expect(await own.rejected(second)).toMatchObject({
        blocked: 'login_required',
        because: expect.stringContaining('does not accept a token that was renewed'),
      });
      expect([refreshes(), (await record())?.tokens?.access_token]).toEqual([1, second]);
      vi.setSystemTime(Date.now() + 60_000);
      expect(await own.rejected(second)).toBe('again');
    });

    it.each([
      ['503', (response: ServerResponse) => response.writeHead(503).end('<html>')],
      ['429', (response: ServerResponse) => response.writeHead(429).end()],
      ['server_error', (response: ServerResponse) => response.writeHead(400).end('{"error":"server_error"}')],
      ['a page', (response: ServerResponse) => response.writeHead(200).end('<html>Log in to the hotel</html>')],
      ['a redirect', (response: ServerResponse) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
      [
        'a token that fits no header',
        (response: ServerResponse) => response.end('{"access_token":"a\\nb","token_type":"Bearer"}'),
      ],
      ['no answer', (response: ServerResponse) => response.destroy()],
    ])('F238: survives a renewal that is answered with %s', async (_, answer) => {
      const { server, access, clock, first, refreshes, record, pass } = await loggedIn(openVault, 100);
      const own = await access();
      onTestFinished(own.use());
      await until('the renewal is planned', () => clock.pending > 0);
      server.before = ({ path }, response) => {
        if (path === '/token') answer(response);
        return path === '/token';
      };
      await pass(80_000, 1);
      expect(await own.token()).toBe(first);
      vi.setSystemTime(Date.now() + 20_000);
      await expect(own.token()).rejects.toMatchObject({ name: 'RequestError', sent: false });
      expect((await record())?.tokens).toMatchObject({ access_token: first, refresh_token: expect.any(String) });
      server.before = () => false;
      // The pause after the second failure has begun.
      await expect(own.token()).rejects.toMatchObject({ name: 'RequestError', sent: false });
      expect(refreshes()).toBe(2);
      vi.setSystemTime(Date.now() + 3_000);
      expect(await own.token()).toBe((await record())?.tokens?.access_token);
      expect(refreshes()).toBe(3);
    });

    it.each([
      ['400 without JSON', (response: ServerResponse) => response.writeHead(400).end('expired')],
      ['403', (response: ServerResponse) => response.writeHead(403).end('{"error_description":"expired"}')],
      ['an error in a 200', (response: ServerResponse) => response.end('{"error":"bad_refresh_token"}')],
    ])('ends with a renewal that is answered with %s, and sends that token no more', async (_, answer) => {
      const { server, access, first, refreshes, record } = await loggedIn(openVault, 100);
      const own = await access();
      server.before = ({ path }, response) => {
        if (path === '/token') answer(response);
        return path === '/token';
      };
      const words = expect.stringMatching(
        /the authorization server answered HTTP \d+: (?:expired|bad_refresh_token)\)/,
      );
      expect(await own.rejected(first)).toMatchObject({ blocked: 'login_required', because: words });
      expect(await own.token()).toMatchObject({ blocked: 'login_required', because: words });
      expect([refreshes(), (await record())?.state]).toEqual([1, 'expired']);
    });

    it('that is not renewed serves until its end, and then says how to log in', async () => {
      const { server, access, first, pass, clock } = await loggedIn(openVault, 100);
      await server.revokeLogin(first);
      const own = await access();
      onTestFinished(own.use());
      await until('the renewal is planned', () => clock.pending > 0);
      await pass(80_000, 1);
      expect(await own.token()).toBe(first);
      expect(await own.rejected(first)).toEqual(EXPIRED);
      expect(await own.token()).toEqual(EXPIRED);
      expect(await (await access()).token()).toEqual(EXPIRED);
    });

    it('is renewed once when it ends, for 50 calls of each of three processes', async () => {
      const { server, access, first, refreshes } = await loggedIn(openVault, 100);
      const all = [await access(), await access(), await access()];
      for (const one of all) expect(await one.token()).toBe(first);
      vi.setSystemTime(Date.now() + 100_000);
      const tokens = await Promise.all(all.flatMap((one) => Array.from({ length: 50 }, () => one.token())));
      expect([new Set(tokens).size, tokens.includes(first), refreshes(), server.reused]).toEqual([1, false, 1, 0]);
    });
  });
}
