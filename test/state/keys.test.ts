import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { UsageError } from '../../src/errors/usage-error.js';
import type { Logger } from '../../src/observe/logger.js';
import { createSeals, readOrCreateToken, readSealKey, readSealSecret, readToken } from '../../src/state/keys.js';
import { sealFile } from '../../src/state/user-files.js';
import { until } from '../support/processes.js';

const KEY = 'k'.repeat(43);

describe('the seals of a gateway', () => {
  it('are those of every gateway with the same shared key, but for what ends with the process', () => {
    const [one, other] = [createSeals({ sharedKey: KEY, secret: 'one' }), createSeals({ sharedKey: KEY, secret: 'b' })];
    expect(one.seal('text')).toBe(other.seal('text'));
    expect(one.hmac('text')).toBe(other.hmac('text'));
    expect(one.runSeal('text')).not.toBe(other.runSeal('text'));
    expect(createSeals({ sharedKey: `${KEY}x` }).seal('text')).not.toBe(one.seal('text'));
  });

  it('differ by purpose, so that a cursor is no task id', () => {
    const { seal, hmac } = createSeals({ sharedKey: KEY });
    expect(seal('text')).not.toBe(hmac('text'));
  });

  it('have the key of the user for task ids only, without a shared one', () => {
    const [one, other] = [createSeals({ secret: 'own' }), createSeals({ secret: 'own' })];
    expect(one.seal('text')).toBe(other.seal('text'));
    expect(one.hmac('text')).not.toBe(other.hmac('text'));
  });
});

describe('the key of the user', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
    vi.stubEnv('XDG_DATA_HOME', folder);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  const warn = vi.fn();
  const read = () => readSealSecret({ warn } as unknown as Logger);

  it('is stored for this user alone when it is first used, so that the next run has the same one', async () => {
    const { secret, isLasting, onSealed } = await read();
    expect([isLasting, existsSync(sealFile())]).toEqual([true, false]);
    createSeals({ secret, onSealed }).seal('a task');
    await until('it is stored', () => existsSync(sealFile()));
    expect(statSync(sealFile()).mode & 0o777).toBe(0o600);
    expect((await read()).secret).toBe(secret);
    expect(warn).not.toHaveBeenCalled();
  });

  it('is another one in each run where it cannot be stored, which is logged', async () => {
    vi.stubEnv('XDG_DATA_HOME', join(folder, 'file'));
    writeFileSync(join(folder, 'file'), '');
    const { secret, isLasting } = await read();
    expect([isLasting, (await read()).secret === secret]).toEqual([false, false]);
    expect(warn.mock.lastCall?.[1]).toContain('task ids become invalid when Trunkline restarts');
  });
});

describe('the file with a shared key', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  function fileWith(text: string): string {
    const file = join(folder, 'key');
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  }

  it('is read without its line break', async () => {
    expect(await readSealKey(fileWith(`${KEY}\n`))).toBe(KEY);
  });

  it.each(['', 'k'.repeat(42), `${KEY}\n${KEY}`, `${KEY}\u00e9`])(
    'is refused if anybody could guess it: %j',
    async (text) => {
      await expect(readSealKey(fileWith(text))).rejects.toThrow(UsageError);
      await expect(readSealKey(fileWith(text))).rejects.toThrow('must have one line of at least 43 visible characters');
    },
  );

  it('is refused if it is missing, with the command that makes it', async () => {
    const refused = readSealKey(join(folder, 'none'));
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining('it does not exist') });
    await expect(refused).rejects.toMatchObject({ hint: expect.stringContaining('openssl rand -base64 32') });
  });

  it.skipIf(process.platform === 'win32')('F161: is refused if others can read it', async () => {
    const file = fileWith(KEY);
    chmodSync(file, 0o640);
    await expect(readSealKey(file)).rejects.toThrow(UsageError);
  });
});

const isPosix = process.platform !== 'win32';

describe('the token file', () => {
  let root: string;
  let file: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'trunkline-token-'));
    file = join(root, 'state', 'trunkline', 'token');
  });

  afterEach(() => rm(root, { recursive: true, force: true }));

  it('is created with 256 random bits, and read from then on', async () => {
    expect(await readToken(file)).toBeUndefined();
    const token = await readOrCreateToken(file);
    expect(Buffer.from(token, 'base64url')).toHaveLength(32);
    expect(await readOrCreateToken(file)).toBe(token);
    expect(await readToken(file)).toBe(token);
    expect(await readFile(file, 'utf8')).toBe(`${token}\n`);
    expect(await readOrCreateToken(join(root, 'other'))).not.toBe(token);
  });

  it.runIf(isPosix)('is for its owner alone, and so are the folders made for it', async () => {
    const umask = process.umask(0);
    try {
      await readOrCreateToken(file);
    } finally {
      process.umask(umask);
    }
    const modes = await Promise.all([file, dirname(file), dirname(dirname(file))].map(modeOf));
    expect(modes).toEqual(['600', '700', '700']);
  });

  it('is one and the same for all who create it at once, and leaves no draft behind', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, () => readOrCreateToken(file)));
    expect(new Set(tokens).size).toBe(1);
    expect(await readdir(dirname(file))).toEqual(['token']);
  });

  it.runIf(isPosix).each([0o640, 0o604, 0o620, 0o666])('is refused when others have access: %o', async (mode) => {
    const token = await readOrCreateToken(file);
    await chmod(file, mode);
    await expect(readOrCreateToken(file)).rejects.toMatchObject({
      code: 'token-file-exposed',
      message: expect.not.stringContaining(token),
    });
  });

  it.each(['', 'short', `${'x'.repeat(43)} y`, `${'x'.repeat(43)}\n${'y'.repeat(43)}`, 'x'.repeat(10_000)])(
    'is refused when no token stands in it, and not replaced',
    async (content) => {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, content, { mode: 0o600 });
      const error = await readOrCreateToken(file).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'token-file-malformed' });
      if (content !== '') expect(String(error)).not.toContain(content);
      expect(await readFile(file, 'utf8')).toBe(content);
    },
  );

  it('may be written by its owner, with or without a line break', async () => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `${'own.token_'.repeat(5)}\r\n`, { mode: 0o600 });
    expect(await readOrCreateToken(file)).toBe('own.token_'.repeat(5));
  });

  it('that is no file, or in no place for one, is an error that says so', async () => {
    await mkdir(file, { recursive: true, mode: 0o700 });
    await chmod(file, 0o700);
    await expect(readOrCreateToken(file)).rejects.toMatchObject({
      code: 'token-file-unusable',
      message: `Cannot use the token file ${file}: it is a folder, not a file`,
    });
    await writeFile(join(root, 'plain'), '');
    const below = join(root, 'plain', 'token');
    await expect(readOrCreateToken(below)).rejects.toMatchObject({ code: 'token-file-unusable' });
  });

  it.runIf(process.getuid?.() === 0)('is refused when it belongs to another user, with what to do', async () => {
    const token = await readOrCreateToken(file);
    await chown(file, 4_711, 4_711);
    const error = await readOrCreateToken(file).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'token-file-exposed' });
    expect(String(error)).toContain(`${file} belongs to another user, who can read and change it; remove it`);
    expect(String(error)).not.toContain(token);
  });
});

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o777).toString(8);
}
