import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readOrCreateToken, readToken } from '../../src/state/token-file.js';
import { IS_WINDOWS } from '../support/platform.js';

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
    // On Windows, nothing is below a file, and only making the folder fails.
    const code = IS_WINDOWS ? 'EEXIST' : 'token-file-unusable';
    await expect(readOrCreateToken(below)).rejects.toMatchObject({ code });
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
