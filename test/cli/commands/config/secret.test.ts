import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type SecretStores, useSecrets } from '../../../../src/cli/commands/config/secret.js';
import type { Keychain } from '../../../../src/config/resolve/secrets.js';
import { shownMode } from '../../../support/platform.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'secret-'));
  vi.stubEnv('XDG_DATA_HOME', folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs `trunkline secret` with these words, for a person who gives this value. */
async function use(words: string, value?: string, { wanted = 'file', keychain }: Partial<SecretStores> = {}) {
  const file = join(folder, 'data', 'secrets');
  const [action, name = ''] = words.split(' ');
  return await useSecrets(action as 'set', name, { file, readValue: async () => value, keychain, wanted });
}

/** A keychain in memory. */
function memory(values = new Map<string, string>()) {
  const keychain: Keychain = {
    title: 'Secret Service',
    read: async (name) => ({ value: values.get(name) ?? '' }),
    store: async (name, value) => void values.set(name, value),
    remove: async (name) => void values.delete(name),
  };
  return { keychain, values };
}

describe('the command for secrets', () => {
  it('stores a secret for this user alone, lists names without values, and removes one', async () => {
    expect((await use('list')).note).toContain('No secrets are stored');
    expect((await use('set TOKEN', 'hunter2')).note).toContain('Stored the secret TOKEN.');
    await use('set KEY', 'other');
    expect(statSync(join(folder, 'data', 'secrets')).mode & 0o777).toBe(shownMode(0o600));
    expect(await use('list')).toMatchObject({ names: ['KEY', 'TOKEN'], note: '' });
    await use('remove TOKEN');
    expect(await use('list')).toMatchObject({ names: ['KEY'], note: '' });
  });

  it('F230: keeps what another command has stored while it asked for the value', async () => {
    const file = join(folder, 'data', 'secrets');
    const readValue = async () => {
      await use('set OTHER', 'stored meanwhile');
      return 'hunter2';
    };
    await useSecrets('set', 'TOKEN', { file, readValue, keychain: undefined, wanted: 'file' });
    expect((await use('list')).names).toEqual(['OTHER', 'TOKEN']);
  });

  it.each([
    ['set a-b', '`a-b` is not a name of a secret'],
    ['remove A', 'there is no secret `A`'],
    ['set A', 'nothing was stored'],
  ])('explains what is wrong with `%s`, and stores nothing', async (words, message) => {
    await expect(use(words)).rejects.toThrow(message);
    expect((await use('list')).names).toEqual([]);
  });

  it('moves a secret into the keychain and back, and keeps it in one place only', async () => {
    const { keychain, values } = memory();
    const file = () => readFileSync(join(folder, 'data', 'secrets'), 'utf8');
    await use('set TOKEN', 'hunter2');
    const stored = await use('set TOKEN', 'hunter3', { keychain, wanted: 'keychain' });
    expect(stored).toMatchObject({ storage: 'keychain', note: expect.stringContaining('TOKEN in the keychain.') });
    expect([file().includes('hunter'), values.get('TOKEN')]).toEqual([false, 'hunter3']);
    const note = 'In the keychain: TOKEN.';
    expect(await use('list', undefined, { keychain })).toMatchObject({ names: ['TOKEN'], inKeychain: ['TOKEN'], note });
    await use('set TOKEN', 'hunter4', { keychain });
    expect([file().includes('hunter4'), values.size]).toEqual([true, 0]);
  });

  it('removes a secret from the keychain, and forgets it even if the keychain keeps it', async () => {
    const { keychain, values } = memory();
    await use('set A', 'x', { keychain, wanted: 'keychain' });
    await use('set B', 'x', { keychain, wanted: 'keychain' });
    expect(await use('remove A', undefined, { keychain })).toMatchObject({ storage: 'keychain' });
    expect([...values.keys()]).toEqual(['B']);
    const locked = { ...keychain, remove: async () => 'it is locked' };
    const { note } = await use('remove B', undefined, { keychain: locked });
    expect(note).toContain('It is still in the keychain, and not used: it is locked.');
    expect((await use('list')).names).toEqual([]);
  });

  it('stores nothing if the keychain does not take the value, and says what else helps', async () => {
    const wanted = 'keychain' as const;
    const locked = { ...memory().keychain, store: async () => 'it is locked' };
    await expect(use('set A', 'x', { keychain: locked, wanted })).rejects.toThrow(
      'does not take the secret A: it is locked',
    );
    await expect(use('set A', 'x', { wanted })).rejects.toThrow('cannot use the keychain of this system');
    expect((await use('list')).names).toEqual([]);
  });

  it('stores no empty value, and leaves a damaged file alone', async () => {
    await expect(use('set A', '')).rejects.toThrow('the value is empty');
    await use('set A', 'x');
    writeFileSync(join(folder, 'data', 'secrets'), '{', { mode: 0o600 });
    await expect(use('set B', 'x')).rejects.toThrow('it is damaged');
  });
});
