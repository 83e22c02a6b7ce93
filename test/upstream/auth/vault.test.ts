import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FolderVault } from '../../../src/upstream/auth/folder-vault.js';
import type { LoginId, LoginRecord } from '../../../src/upstream/auth/vault.js';
import { HAS_MODES, IS_WINDOWS, SHORT_TMP } from '../../support/platform.js';

let folder: string;
beforeEach(() => {
  // The path of a socket is short.
  folder = mkdtempSync(join(SHORT_TMP, 'tlv-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const NONE = { fault: 'there is no keychain' };
const noKeychain = { read: async () => NONE, store: async () => 'there is no keychain', remove: async () => undefined };
const open = (at = 'auth') => new FolderVault(join(folder, at), noKeychain as never);

const id = (server = 'files'): LoginId => ({
  server,
  configFile: join(folder, 'trunkline.yaml'),
  url: 'https://mcp.example/',
});
const recordOf = (login: LoginId): LoginRecord => ({
  ...login,
  ...{ state: 'logged_in', identity: 'i', issuer: 'https://as.example', requestedScopes: ['a'] },
  client: { client_id: 'client-1', client_secret: 'client-secret-1', isRegistered: true },
  tokens: { access_token: 'access-1', refresh_token: 'refresh-1', token_type: 'Bearer', obtainedAt: 1 },
});
const store = async (vault: FolderVault, login = id()) => {
  await vault.locked(login, AbortSignal.timeout(10_000), ({ write }) => write(recordOf(login)));
  return vault.fileOf(login);
};

describe('the vault', () => {
  it('keeps logins in files that others cannot read, and whose content says nothing', async () => {
    const file = await store(open());
    expect(await open().read(id())).toEqual(recordOf(id()));
    expect(await open().storedIn()).toBe('file');
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    for (const entry of entries) {
      const { mode } = statSync(join(entry.parentPath, entry.name));
      if (!entry.isSocket()) expect([entry.name, mode & 0o077]).toEqual([entry.name, HAS_MODES ? 0 : 0o066]);
    }
    expect(readFileSync(file, 'latin1')).not.toMatch(/files|example|client|access|refresh|Bearer/);
  });

  it('F380: says which file the system refuses to write, why, and what to do', async () => {
    writeFileSync(join(folder, 'auth'), '');
    const refused = await store(open('auth/below')).catch((error: unknown) => error);
    const reason = IS_WINDOWS
      ? /a file is in the place|a part of its path is a file/
      : /a part of its path is a file, not a folder/;
    expect(refused).toMatchObject({
      name: 'LoginError',
      message: expect.stringMatching(/^the login cannot be stored: .*below\S* cannot be used: /),
      hint: expect.stringMatching(/move that file away$/),
    });
    expect(String(refused)).toMatch(reason);
  });

  it('knows a configuration by all of its names, and no other server, URL or configuration', async () => {
    await store(open());
    writeFileSync(id().configFile, '');
    symlinkSync(id().configFile, join(folder, 'link.yaml'));
    expect(await open().read({ ...id(), configFile: join(folder, 'link.yaml') })).toBeDefined();
    for (const other of [{ server: 'x' }, { url: 'https://mcp.example/x' }, { configFile: join(folder, 'x') }])
      expect(await open().read({ ...id(), ...other })).toBeUndefined();
  });

  it('accepts no login in the place of another one', async () => {
    const vault = open();
    copyFileSync(await store(vault, id('one')), await store(vault, id('two')));
    await expect(vault.read(id('two'))).rejects.toThrow('is damaged');
    expect(await vault.read(id('one'))).toBeDefined();
  });

  it('accepts no login of a user in the place of that of another one', async () => {
    const vault = open();
    const [ann, bob] = [
      { ...id(), user: 'ann' },
      { ...id(), user: 'bob' },
    ];
    copyFileSync(await store(vault, ann), await store(vault, bob));
    await expect(vault.read(bob)).rejects.toThrow('is damaged');
    expect(await vault.read(ann)).toEqual(recordOf(ann));
  });

  it.each<[what: string, user: string | undefined]>([
    ['the machine', undefined],
    ['another user', 'bob'],
    ['nobody', ''],
    ['a user whose principal leads into another folder', '../ann'],
    ['a user whose principal looks like the name of the file', 'ann","x'],
  ])('does not give the login of a user to %s', async (_, user) => {
    const vault = open();
    const file = await store(vault, { ...id(), user: 'ann' });
    const other = { ...id(), ...(user !== undefined && { user }) };
    expect(await vault.read(other)).toBeUndefined();
    expect(dirname(vault.fileOf(other))).not.toBe(dirname(file));
    expect(vault.fileOf(other)).toMatch(/auth[\\/](?:users[\\/][0-9a-f]{32}[\\/])?[0-9a-f]{32}\.login$/);
  });

  it.each([
    ['a changed byte', (bytes: Buffer) => Buffer.concat([bytes.subarray(0, -1), Buffer.of((bytes.at(-1) ?? 0) ^ 1)])],
    ['a cut end', (bytes: Buffer) => bytes.subarray(0, 40)],
    ['another format', () => Buffer.from('{"tokens":{}}')],
    ['no content', () => Buffer.alloc(0)],
  ])('F244: reads no login from a file with %s, and takes a new one', async (_, damage) => {
    const file = await store(open());
    writeFileSync(file, damage(readFileSync(file)));
    await expect(open().read(id())).rejects.toThrow(`the login in ${file} is damaged`);
    await store(open());
    expect(await open().read(id())).toBeDefined();
  });

  it.each([
    ['is missing', (key: string) => rmSync(key), 'is missing'],
    [
      'is that of another vault',
      (key: string) => writeFileSync(key, Buffer.alloc(32).toString('base64')),
      'another key',
    ],
    ['is damaged', (key: string) => writeFileSync(key, 'x'), 'is damaged'],
    [
      'is readable by others',
      (key: string) => {
        rmSync(key);
        writeFileSync(key, 'x', { mode: 0o644 });
      },
      HAS_MODES ? 'cannot be used' : 'is damaged',
    ],
  ])('says so when the key %s', async (_, change, reason) => {
    await store(open());
    change(join(folder, 'auth', 'key'));
    await expect(open().read(id())).rejects.toThrow(reason);
  });

  it('makes one key, also for logins at the same time', async () => {
    const servers = ['a', 'b', 'c', 'd', 'e'];
    await Promise.all(servers.map((server) => store(open(), id(server))));
    const logins = await Promise.all(servers.map((server) => open().read(id(server))));
    expect(logins.map((login) => login?.server)).toEqual(servers);
  });
});
