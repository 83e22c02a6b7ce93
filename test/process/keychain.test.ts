import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Keychain, readSecrets, systemKeychain, writeSecretFile } from '../../src/config/resolve/secrets.js';
import { FolderVault } from '../../src/upstream/auth/folder-vault.js';
import type { LoginRecord } from '../../src/upstream/auth/vault.js';
import { folderWith } from '../config/files.js';

let folder: string;
beforeEach(() => {
  folder = folderWith();
  mkdirSync(join(folder, 'bin'));
});
/** As the program of libsecret: the value on stdin, and printed without a line break. Values are in a file, and calls in another one. */
const SECRET_TOOL = `#!${process.execPath}
const { appendFileSync, existsSync, readFileSync, writeFileSync } = process.getBuiltinModule('node:fs');
const [values, calls] = ['values.json', 'calls'].map((name) => process.argv[1].replace(/bin.[^/]+$/, name));
const args = process.argv.slice(2);
appendFileSync(calls, args.join(' ') + '\\n');
const all = existsSync(values) ? JSON.parse(readFileSync(values, 'utf8')) : {};
const save = () => writeFileSync(values, JSON.stringify(all));
const name = args[args.indexOf('account') + 1];
if (args[0] === 'store') { all[name] = readFileSync(0, 'utf8'); save(); }
if (args[0] === 'lookup') { if (!(name in all)) process.exit(1); process.stdout.write(all[name]); }
if (args[0] === 'clear') { delete all[name]; save(); }
`;

const STAND_IN = join(import.meta.dirname, '../../scripts/macos/stand-ins/security');
/** The stand-in for the program of macOS, which notes its calls. */
const SECURITY = `#!/bin/sh
echo "$*" >>"\${0%/bin/*}/calls"
exec ${process.execPath} "$0.stand-in" "$@"
`;

const PROGRAMS = { linux: ['secret-tool', SECRET_TOOL], darwin: ['security', SECURITY] } as const;

function environment() {
  return { PATH: join(folder, 'bin') };
}

function install(platform: keyof typeof PROGRAMS, script: string = PROGRAMS[platform][1]): Keychain {
  const file = join(folder, 'bin', PROGRAMS[platform][0]);
  writeFileSync(file, script);
  chmodSync(file, 0o755);
  if (platform === 'darwin') copyFileSync(STAND_IN, `${file}.stand-in`);
  return open(platform);
}

function open(platform: keyof typeof PROGRAMS): Keychain {
  const program = join(folder, 'bin', PROGRAMS[platform][0]);
  const keychain = systemKeychain({ env: environment(), cwd: folder, timeoutMs: 20_000, program }, platform);
  if (keychain === undefined) throw new Error(`no keychain on ${platform}`);
  return keychain;
}

const VALUE = 'canary "7f3a" $(x)';

describe.runIf(process.platform !== 'win32')('the keychain of the system', () => {
  it.each(['linux', 'darwin'] as const)('of %s keeps a value that is never an argument', async (platform) => {
    const keychain = install(platform);
    for (const value of [VALUE, 'two\nlines, ü', 'base64:eA==']) {
      expect(await keychain.store('TOKEN', value)).toBeUndefined();
      expect(await keychain.read('TOKEN')).toEqual({ value });
    }
    expect(await keychain.remove('TOKEN')).toBeUndefined();
    expect(await keychain.read('TOKEN')).toEqual({ fault: expect.stringMatching(/^it ended with exit code \d+$/) });
    const calls = readFileSync(join(folder, 'calls'), 'utf8');
    expect(calls).toContain('TOKEN');
    expect(calls).not.toMatch(/canary|lines|63616e617279/);
  });

  it('of darwin refuses a value that `security` would cut, and stores nothing', async () => {
    const keychain = install('darwin');
    expect(await keychain.store('TOKEN', 'x'.repeat(2_000))).toBeUndefined();
    const fault = 'it is too long for `security`, which cuts a line after 4095 bytes';
    expect(await keychain.store('TOKEN', 'y'.repeat(2_100))).toBe(fault);
    expect(await keychain.read('TOKEN')).toEqual({ value: 'x'.repeat(2_000) });
  });

  it('says that its program is not installed', async () => {
    const fault = '`secret-tool` is not installed';
    expect(await open('linux').read('TOKEN')).toEqual({ fault });
    expect(await open('linux').store('TOKEN', 'x')).toBe(fault);
  });

  it('is believed only when it has the value afterwards', async () => {
    const forgetful = SECURITY.replace('exec', '[ "$1" = -i ] || exec');
    expect(await install('darwin', forgetful).store('TOKEN', 'x')).toBe('it ended with exit code 44');
  });

  it('cannot be used on Windows', () => {
    expect(systemKeychain({ env: {}, cwd: folder }, 'win32')).toBeUndefined();
  });
});

describe.runIf(process.platform === 'linux')('a secret in the keychain', () => {
  const read = () => {
    const places = { configFile: join(folder, 'trunkline.yaml'), secretFile: join(folder, 'secrets') };
    return readSecrets(['A', 'B'], { secretCommands: {} }, { ...places, env: environment(), timeoutMs: 20_000 });
  };

  it('is read by its name from there, beside those in the file', async () => {
    await install('linux').store('A', VALUE);
    await writeSecretFile(join(folder, 'secrets'), { secrets: new Map([['B', 'b']]), inKeychain: new Set(['A']) });
    expect(Object.fromEntries(await read())).toEqual({ A: { value: VALUE }, B: { value: 'b' } });
  });

  it('F171: has a fault that names it if the keychain does not give it', async () => {
    await writeSecretFile(join(folder, 'secrets'), { secrets: new Map([['B', 'b']]), inKeychain: new Set(['A']) });
    expect((await read()).get('A')).toEqual({
      fault: 'the secret A cannot be read from the keychain: `secret-tool` is not installed',
      hint: 'unlock the keychain, or store the secret again: `trunkline secret set A`',
    });
  });
});

describe.runIf(process.platform !== 'win32')('the key of the logins', () => {
  const id = () => ({ server: 's', configFile: join(folder, 'c.yaml'), url: 'https://mcp.example/' });
  const record: Pick<LoginRecord, 'state' | 'identity' | 'issuer' | 'requestedScopes'> = {
    ...{ state: 'logged_in', identity: 'i', issuer: 'https://as.example', requestedScopes: [] },
  };
  const store = (vault: FolderVault) =>
    vault.locked(id(), AbortSignal.timeout(20_000), ({ write }) =>
      write({ ...id(), ...record, client: { client_id: 'c', isRegistered: false } }),
    );

  it('is in the keychain alone, and a login is read again when the keychain is unlocked', async () => {
    await store(new FolderVault(join(folder, 'auth'), install('linux')));
    const later = new FolderVault(join(folder, 'auth'), open('linux'));
    expect([await later.storedIn(), readFileSync(join(folder, 'auth', 'key'), 'utf8')]).toEqual([
      'keychain',
      'keychain',
    ]);
    expect(await later.read(id())).toMatchObject({ identity: 'i' });

    const locked = install('linux', `#!${process.execPath}\nprocess.exit(1);\n`);
    const vault = new FolderVault(join(folder, 'auth'), locked);
    await expect(vault.read(id())).rejects.toThrow('cannot be read from the keychain: it ended with exit code 1');
    install('linux');
    expect(await vault.read(id())).toMatchObject({ identity: 'i' });
  });

  it('is in a file where the keychain takes none', async () => {
    const refusing = install('linux', `#!${process.execPath}\nprocess.exit(1);\n`);
    await store(new FolderVault(join(folder, 'auth'), refusing));
    expect(await new FolderVault(join(folder, 'auth'), refusing).storedIn()).toBe('file');
  });
});
