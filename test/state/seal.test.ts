import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { UsageError } from '../../src/errors/usage-error.js';
import type { Logger } from '../../src/observe/logger.js';
import { createSeals, readSealKey, readSealSecret } from '../../src/state/seal.js';
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
