import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { UsageError } from '../../src/host/errors/usage-error.js';
import type { Logger } from '../../src/host/observe/logger.js';
import { createSeals, readSealKeys, readSealSecret } from '../../src/state/seal.js';
import { sealFile } from '../../src/state/user-files.js';
import { isSealOf } from '../../src/wire/mcp/task-id.js';
import { shownMode } from '../support/platform.js';
import { until } from '../support/processes.js';

const KEY = 'k'.repeat(43);

describe('the seals of a gateway', () => {
  it('are those of every gateway with the same shared key, but for what ends with the process', () => {
    const [one, other] = [
      createSeals({ sharedKeys: [KEY], secret: 'a' }),
      createSeals({ sharedKeys: [KEY], secret: 'b' }),
    ];
    expect(one.lasting('text')).toBe(other.lasting('text'));
    expect(one.cursors('text')).toBe(other.cursors('text'));
    expect(one.keysFor('sessions')).toEqual(other.keysFor('sessions'));
    expect(one.run('text')).not.toBe(other.run('text'));
    expect(createSeals({ sharedKeys: [`${KEY}x`] }).lasting('text')).not.toBe(one.lasting('text'));
  });

  it('differ by purpose, so that a cursor is no task id', () => {
    const { lasting: seal, cursors: hmac, keysFor } = createSeals({ sharedKeys: [KEY] });
    expect(seal('text')).not.toBe(hmac('text'));
    expect(keysFor('sessions')).not.toEqual(keysFor('events'));
  });

  it('F315: are those of the first key, and are valid under all of them', () => {
    const [older, newer] = [createSeals({ sharedKeys: [KEY] }), createSeals({ sharedKeys: [`${KEY}x`, KEY] })];
    expect(newer.lasting('text')).toBe(createSeals({ sharedKeys: [`${KEY}x`] }).lasting('text'));
    expect(isSealOf(older.lasting('text'), 'text', newer.lasting)).toBe(true);
    expect(isSealOf(newer.lasting('text'), 'text', older.lasting)).toBe(false);
    expect(isSealOf(older.lasting('text'), 'other', newer.lasting)).toBe(false);
    expect(newer.keysFor('sessions')[1]).toEqual(older.keysFor('sessions')[0]);
  });

  it('have the key of the user for what outlives the process, without a shared one', () => {
    const [one, other] = [createSeals({ secret: 'own' }), createSeals({ secret: 'own' })];
    expect(one.lasting('text')).toBe(other.lasting('text'));
    expect(one.keysFor('sessions')).toEqual(other.keysFor('sessions'));
    expect(one.cursors('text')).not.toBe(other.cursors('text'));
  });

  it('have a random key without any', () => {
    expect(createSeals().keysFor('sessions')).not.toEqual(createSeals().keysFor('sessions'));
    expect(createSeals().lasting('text')).not.toBe(createSeals().lasting('text'));
  });

  it('have another name in each process', () => {
    const names = Array.from({ length: 100 }, () => createSeals().instance);
    expect(new Set(names).size).toBe(100);
    expect(names.join('')).toMatch(/^[a-z2-7]{1000}$/);
  });
});

describe('the key of the user', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
    for (const name of ['XDG_DATA_HOME', 'LOCALAPPDATA']) vi.stubEnv(name, folder);
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
    createSeals({ secret, onSealed }).lasting('a task');
    await until('it is stored', () => existsSync(sealFile()));
    expect(statSync(sealFile()).mode & 0o777).toBe(shownMode(0o600));
    expect((await read()).secret).toBe(secret);
    expect(warn).not.toHaveBeenCalled();
  });

  it('is another one in each run where it cannot be stored, which is logged', async () => {
    mkdirSync(sealFile(), { recursive: true });
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

  it('has one key, or up to three, a line each', async () => {
    expect(await readSealKeys(fileWith(`${KEY}\n`))).toEqual([KEY]);
    expect(await readSealKeys(fileWith(`${KEY}\n${KEY}b\r\n${KEY}c`))).toEqual([KEY, `${KEY}b`, `${KEY}c`]);
  });

  it.each(['', 'k'.repeat(42), `${KEY}\n\n${KEY}`, `${KEY}\n${KEY}\n${KEY}\n${KEY}`, `${KEY}\u00e9`])(
    'is refused if anybody could guess it, or if it has too many keys: %j',
    async (text) => {
      await expect(readSealKeys(fileWith(text))).rejects.toThrow(UsageError);
      await expect(readSealKeys(fileWith(text))).rejects.toThrow(
        'must have one to 3 lines, each with a key of at least 43 visible characters',
      );
    },
  );

  it('is refused if it is missing, with the command that makes it', async () => {
    const refused = readSealKeys(join(folder, 'none'));
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining('it does not exist') });
    await expect(refused).rejects.toMatchObject({ hint: expect.stringContaining('openssl rand -base64 32') });
  });

  it.skipIf(process.platform === 'win32')('F161: is refused if others can read it', async () => {
    const file = fileWith(KEY);
    chmodSync(file, 0o640);
    await expect(readSealKeys(file)).rejects.toThrow(UsageError);
    await expect(readSealKeys(file)).rejects.toMatchObject({ hint: expect.stringContaining(`chmod 600 ${file}`) });
  });

  describe.skipIf(process.platform === 'win32')('in a folder of secrets of the system', () => {
    /** The files of a Secret volume of Kubernetes, in which a file is a link to a link to a folder. */
    function secretVolume(mode: number): string {
      mkdirSync(join(folder, 'volume', '..2026'), { recursive: true });
      writeFileSync(join(folder, 'volume', '..2026', 'key'), KEY);
      chmodSync(join(folder, 'volume', '..2026', 'key'), mode);
      symlinkSync('..2026', join(folder, 'volume', '..data'));
      symlinkSync(join('..data', 'key'), join(folder, 'volume', 'key'));
      return join(folder, 'volume', 'key');
    }

    it('may be a link in the folder, and be readable by its group', async () => {
      expect(await readSealKeys(secretVolume(0o440), join(folder, 'volume'))).toEqual([KEY]);
    });

    it.each([0o444, 0o460, 0o441])('is refused if others can read it, or the group can change it: %o', async (mode) => {
      const refused = readSealKeys(secretVolume(mode), join(folder, 'volume'));
      await expect(refused).rejects.toThrow('other users can read or change it');
    });

    it('is refused outside of the folder, also behind a link', async () => {
      const outside = fileWith(KEY);
      mkdirSync(join(folder, 'volume'));
      symlinkSync(outside, join(folder, 'volume', 'key'));
      await expect(readSealKeys(join(folder, 'volume', 'key'), join(folder, 'volume'))).rejects.toThrow(
        'it is a symbolic link',
      );
      chmodSync(outside, 0o440);
      await expect(readSealKeys(outside, join(folder, 'volume'))).rejects.toThrow('other users can read or change it');
    });
  });
});
