import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { FolderVault } from '../../src/upstream/auth/folder-vault.js';
import { type LockedLogin, LoginError, type LoginId } from '../../src/upstream/auth/vault.js';
import { until } from '../support/processes.js';
import { describeRenewals, loggedIn } from './renewals.js';

const NO_KEYCHAIN = {
  title: '',
  read: async () => ({ fault: 'none' }),
  store: async () => 'none',
  remove: async () => 'none',
};
const inFolder = async (folder: string) => new FolderVault(join(folder, 'auth'), NO_KEYCHAIN);

describeRenewals('a login in a folder', inFolder);

describe('a login', () => {
  it.each([
    [3_600, 60],
    [301, 60],
    [300, 60],
    [100, 20],
    [10, 2],
  ])('whose tokens live %i s is renewed %i s before their end', async (lifetime, before) => {
    const { access, clock, first, refreshes, record, pass, identity } = await loggedIn(inFolder, lifetime);
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

  it('stays when the server refuses one token after the other', async () => {
    const { access, first, refreshes, record } = await loggedIn(inFolder);
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
    const { server, access, clock, first, refreshes, record, pass } = await loggedIn(inFolder, 100);
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
    const { server, access, first, refreshes, record } = await loggedIn(inFolder, 100);
    const own = await access();
    server.before = ({ path }, response) => {
      if (path === '/token') answer(response);
      return path === '/token';
    };
    const words = expect.stringMatching(/the authorization server answered HTTP \d+: (?:expired|bad_refresh_token)\)/);
    expect(await own.rejected(first)).toMatchObject({ blocked: 'login_required', because: words });
    expect(await own.token()).toMatchObject({ blocked: 'login_required', because: words });
    expect([refreshes(), (await record())?.state]).toEqual([1, 'expired']);
  });
});

it('F242: a login uses no refresh token whose answer it could not store', async () => {
  const { folder, access, first, refreshes } = await loggedIn(inFolder);
  const fails = async () => {
    throw new LoginError('the login cannot be stored');
  };
  class FullVault extends FolderVault {
    override locked<T>(id: LoginId, signal: AbortSignal, work: (login: LockedLogin) => Promise<T>): Promise<T> {
      return super.locked(id, signal, (login) => work({ ...login, check: fails, write: fails }));
    }
  }
  const own = await access(new FullVault(join(folder, 'auth'), NO_KEYCHAIN));
  expect(await own.rejected(first)).toMatchObject({
    blocked: 'login_required',
    because: expect.stringContaining('stored'),
  });
  expect(refreshes()).toBe(0);
  expect(await (await access()).rejected(first)).toBe('again');
});
