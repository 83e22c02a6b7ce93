import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { createFile, createFileSync, replaceFile, replaceFileSync } from '../../src/files/whole-file.js';
import { folderWith } from '../config/files.js';

let root: string;
let file: string;
beforeEach(() => {
  root = folderWith();
  file = join(root, 'new', 'file');
});

const replacing = [
  ['replaceFile', replaceFile],
  ['replaceFileSync', replaceFileSync],
] as const;
const creating = [
  ['createFile', createFile],
  ['createFileSync', createFileSync],
] as const;

describe.each([...replacing, ...creating])('%s', (_, write) => {
  it('creates the file and its folder for the owner alone, and leaves no draft', async () => {
    await write(file, 'text');
    expect(readFileSync(file, 'utf8')).toBe('text');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(root, 'new')).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(root, 'new'))).toEqual(['file']);
  });

  it('throws when the folder cannot be made, and the error is that of the write, not of tidying up after it', async () => {
    writeFileSync(join(root, 'new'), '');
    const error = await (async () => await write(file, 'text'))().catch((cause: NodeJS.ErrnoException) => cause);
    expect(error).toMatchObject({ syscall: expect.stringMatching(/^(open|mkdir)$/) });
  });
});

describe.each(replacing)('%s', (_, write) => {
  it('replaces the content, and a link instead of what it leads to', async () => {
    mkdirSync(join(root, 'new'));
    writeFileSync(join(root, 'elsewhere'), 'before');
    symlinkSync(join(root, 'elsewhere'), file);
    await write(file, 'after');
    expect([readFileSync(file, 'utf8'), readFileSync(join(root, 'elsewhere'), 'utf8')]).toEqual(['after', 'before']);
  });

  it('removes the draft when the file cannot be put in place', async () => {
    mkdirSync(file, { recursive: true });
    await expect((async () => await write(file, 'text'))()).rejects.toThrow();
    expect(readdirSync(join(root, 'new'))).toEqual(['file']);
  });
});

describe.each(creating)('%s', (_, write) => {
  it('lets one of several writers win, and changes nothing for the others', async () => {
    const outcomes = await Promise.all(['one', 'two', 'three'].map(async (text) => await write(file, text)));
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    expect(readFileSync(file, 'utf8')).toBe(['one', 'two', 'three'][outcomes.indexOf(true)]);
    expect(readdirSync(join(root, 'new'))).toEqual(['file']);
  });
});
