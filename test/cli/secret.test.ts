import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { useSecrets } from '../../src/cli/secret.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'secret-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs `trunkline secret` with these words, for a person who gives this value. */
const use = (words: string, value?: string) =>
  useSecrets(words.split(' '), { file: join(folder, 'data', 'secrets'), readValue: async () => value });

describe('the command for secrets', () => {
  it('stores a secret for this user alone, lists names without values, and removes one', async () => {
    expect((await use('list')).note).toContain('No secrets are stored');
    expect((await use('set TOKEN', 'hunter2')).note).toContain('Stored the secret TOKEN.');
    await use('set KEY', 'other');
    expect(statSync(join(folder, 'data', 'secrets')).mode & 0o777).toBe(0o600);
    expect(await use('list')).toEqual({ names: ['KEY', 'TOKEN'], note: '' });
    await use('remove TOKEN');
    expect(await use('list')).toEqual({ names: ['KEY'], note: '' });
  });

  it.each([
    ['get X', 'needs `set NAME`, `list` or `remove NAME`'],
    ['set', 'needs a name'],
    ['set A hunter2', 'takes a name and nothing else'],
    ['list A', 'takes no arguments'],
    ['set a-b', '`a-b` is not a name of a secret'],
    ['remove A', 'there is no secret `A`'],
    ['set A', 'nothing was stored'],
  ])('explains what is wrong with `%s`, and stores nothing', async (words, message) => {
    await expect(use(words)).rejects.toThrow(message);
    expect((await use('list')).names).toEqual([]);
  });

  it('stores no empty value, and leaves a damaged file alone', async () => {
    await expect(use('set A', '')).rejects.toThrow('the value is empty');
    await use('set A', 'x');
    writeFileSync(join(folder, 'data', 'secrets'), '{', { mode: 0o600 });
    await expect(use('set B', 'x')).rejects.toThrow('it is damaged');
  });
});
