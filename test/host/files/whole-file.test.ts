import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  createFileSync,
  privateFile,
  type ReadFile,
  type ReadRules,
  readJsonFile,
  readRegularFile,
  readRegularFileSync,
  realPath,
  replaceFile,
  replaceFileSync,
} from '../../../src/host/files/whole-file.js';
import { folderWith } from '../../config/files.js';
import { IS_WINDOWS, shownMode } from '../../support/platform.js';

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
const creating = [['createFileSync', createFileSync]] as const;

describe.each([...replacing, ...creating])('%s', (_, write) => {
  it('creates the file and its folder for the owner alone, and leaves no draft', async () => {
    await write(file, 'text');
    expect(readFileSync(file, 'utf8')).toBe('text');
    expect(statSync(file).mode & 0o777).toBe(shownMode(0o600));
    expect(statSync(join(root, 'new')).mode & 0o777).toBe(shownMode(0o700));
    expect(readdirSync(join(root, 'new'))).toEqual(['file']);
  });

  it('throws when the folder cannot be made, and the error is that of the write, not of tidying up after it', async () => {
    writeFileSync(join(root, 'new'), '');
    const error = await (async () => await write(file, 'text'))().catch((cause: NodeJS.ErrnoException) => cause);
    const [named, reason] = String(Object(error).message).split(' cannot be written: ');
    // Windows says ENOENT of a folder whose path leads through a file.
    expect(reason).toMatch(/^(?:a .* folder.* [(]E(?:NOTDIR|EXIST)[)]|.*[(]ENOENT[)])$/);
    expect(named).toBe(file);
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

describe('the real path of a file', () => {
  it('is undefined without the file, and has the letters of the disk on Windows', () => {
    const folder = folderWith({ 'Some file': '' });
    const path = join(folder, 'Some file');
    expect(basename(realPath(IS_WINDOWS ? path.toLowerCase() : path) ?? '')).toBe('Some file');
    expect(realPath(IS_WINDOWS ? path.toLowerCase() : path)).toBe(realPath(path));
    expect(realPath(join(folder, 'none'))).toBeUndefined();
  });
});

const isPosix = process.platform !== 'win32';
const ANY: ReadRules = { maxBytes: 100 };

describe.each([
  ['readRegularFile', readRegularFile],
  ['readRegularFileSync', async (file: string, rules: ReadRules) => readRegularFileSync(file, rules)],
])('%s', (_, read) => {
  const faultOf = async (file: string, rules = ANY) => {
    const found: ReadFile = await read(file, rules);
    return found.kind === 'unusable' ? [found.fault, found.reason] : found.kind;
  };

  it('reads a file up to the limit', async () => {
    const folder = folderWith({ a: 'x'.repeat(100), b: 'x'.repeat(101) });
    expect(await read(join(folder, 'a'), ANY)).toMatchObject({ kind: 'read', bytes: Buffer.from('x'.repeat(100)) });
    expect(await faultOf(join(folder, 'b'))).toEqual(['too-large', 'it is too large']);
    expect(await faultOf(join(folder, 'c'))).toBe('absent');
  });

  it.runIf(isPosix)('refuses at once what is not a regular file', async () => {
    const folder = folderWith({ file: 'x' });
    const [pipe, socket, inside] = ['pipe', 'socket', 'inside'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    execFileSync('mkfifo', [pipe]);
    mkdirSync(inside);
    const server = createServer().listen(socket);
    await new Promise((done) => server.once('listening', done));
    onTestFinished(() => void server.close());
    expect(await faultOf(pipe)).toEqual(['not-regular', 'it is a pipe, not a regular file']);
    expect(await faultOf(socket)).toEqual(['not-regular', 'it is a socket or a device, not a regular file']);
    expect(await faultOf(inside)).toEqual(['not-regular', 'it is a folder, not a file']);
    expect(await faultOf('/dev/null')).toEqual(['not-regular', 'it is a device, not a regular file']);
    expect(await faultOf(join(folder, 'file', 'below'))).toEqual([
      'unreadable',
      'it cannot be read: a part of its path is a file, not a folder (ENOTDIR)',
    ]);
  });

  it.runIf(isPosix)('follows a symbolic link only if it is told to, and then to a regular file only', async () => {
    const folder = folderWith({ file: 'x' });
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    symlinkSync('file', join(folder, 'link'));
    symlinkSync('pipe', join(folder, 'link-to-pipe'));
    expect(await faultOf(join(folder, 'link'))).toEqual(['link', 'it is a symbolic link, not a regular file']);
    const rules = { ...ANY, followsLinks: true };
    expect(await faultOf(join(folder, 'link'), rules)).toBe('read');
    expect((await faultOf(join(folder, 'link-to-pipe'), rules))[0]).toBe('not-regular');
  });

  it.runIf(isPosix)('refuses a private file to which others have access', async () => {
    const file = join(folderWith({ a: 'x' }), 'a');
    for (const mode of [0o640, 0o604, 0o620]) {
      chmodSync(file, mode);
      expect(await faultOf(file)).toBe('read');
      expect(await faultOf(file, privateFile(100))).toEqual(['exposed', 'other users can read or change it']);
    }
    chmodSync(file, 0o600);
    expect(await faultOf(file, privateFile(100))).toBe('read');
  });

  it.runIf(process.getuid?.() === 0)('refuses a private file of another user', async () => {
    const file = join(folderWith(), 'a');
    writeFileSync(file, 'x', { mode: 0o600 });
    chownSync(file, 4_711, 4_711);
    expect(await faultOf(file)).toBe('read');
    expect(await faultOf(file, privateFile(100))).toEqual(['foreign', 'it belongs to another user']);
  });
});

describe('readJsonFile', () => {
  it('has nothing to say of a file that is missing, torn or a pipe', () => {
    const folder = folderWith({ good: '{"a":1}', torn: '{"a"', empty: '' });
    if (isPosix) execFileSync('mkfifo', [join(folder, 'pipe')]);
    expect(existsSync(join(folder, 'pipe'))).toBe(isPosix);
    const read = ['good', 'torn', 'empty', 'pipe', 'missing'].map((name) => readJsonFile(join(folder, name)));
    expect(read).toEqual([{ a: 1 }, undefined, undefined, undefined, undefined]);
  });
});
