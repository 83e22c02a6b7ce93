import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  privateFile,
  type ReadFile,
  type ReadRules,
  readRegularFile,
  readRegularFileSync,
} from '../../src/files/regular-file.js';
import { readJsonFile } from '../../src/files/whole-file.js';
import { folderWith } from '../config/files.js';

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
    expect(await faultOf(join(folder, 'file', 'below'))).toEqual(['unreadable', 'it cannot be read (ENOTDIR)']);
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
