// The renewal of a login at a real authorization server, on a clock that the test moves.
import { mkdtempSync, rmSync } from 'node:fs';
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

/** The promises about a login that depend on its vault. All tests of the file get a folder, and a time that they move. */
export function describeRenewals(name: string, openVault: OpenVault): void {
  beforeEach(() => {
    // The time of the authorization server and of the logins. Timers are real.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    // The path of a socket is short.
    folder = mkdtempSync('/tmp/tlr-');
  });
  afterEach(() => {
    vi.useRealTimers();
    rmSync(folder, { recursive: true, force: true });
  });

  describe(name, () => {
    it('F239: is renewed once for all requests and processes whose token the server refuses', async () => {
      const { access, first, refreshes } = await loggedIn(openVault);
      const all = [await access(), await access(), await access()];
      for (const one of all) expect(await one.token()).toBe(first);
      const verdicts = await Promise.all([...all, ...all].map((one) => one.rejected(first)));
      expect([new Set(verdicts), refreshes()]).toEqual([new Set(['again']), 1]);
      expect(new Set(await Promise.all(all.map((one) => one.token()))).size).toBe(1);
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
