import { join } from 'node:path';
import { expect, it } from 'vitest';
import { FolderVault } from '../../src/upstream/auth/folder-vault.js';
import { type LockedLogin, LoginError, type LoginId } from '../../src/upstream/auth/vault.js';
import { describeRenewals, loggedIn } from './renewals.js';

const NO_KEYCHAIN = {
  title: '',
  read: async () => ({ fault: 'none' }),
  store: async () => 'none',
  remove: async () => 'none',
};
const inFolder = async (folder: string) => new FolderVault(join(folder, 'auth'), NO_KEYCHAIN);

describeRenewals('a login in a folder', inFolder);

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
