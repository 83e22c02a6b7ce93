import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UsageError } from '../../src/errors/usage-error.js';
import { createSeals, readSealKey } from '../../src/state/seal.js';

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

  it.skipIf(process.platform === 'win32')('is refused if others can read it', async () => {
    const file = fileWith(KEY);
    chmodSync(file, 0o640);
    await expect(readSealKey(file)).rejects.toThrow(UsageError);
  });
});
