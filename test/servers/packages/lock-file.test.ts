import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type LockedPackage, LockFile } from '../../../src/servers/packages/lock-file.js';
import { folderWith } from '../../config/files.js';

const LOCKED: LockedPackage = { version: '1.2.3', integrity: 'sha512-AAAA', tree: { 'node_modules/a': { x: 1 } } };

function lockIn(folder: string, configFile = join(folder, 'trunkline.yaml')): LockFile {
  return new LockFile({ configFile, locksFolder: join(folder, 'locks') });
}

describe('the lock file', () => {
  it('locks nothing before there is one', () => {
    expect(lockIn(folderWith()).read()).toEqual(new Map());
  });

  it('returns what was locked, and is written as a whole, sorted by key', () => {
    const folder = folderWith();
    const lock = lockIn(folder);
    for (const spec of ['b', '@a/b@1.2.3', 'a']) expect(lock.lock(spec, LOCKED)).toBe(lock.path);
    lock.lock('a', { ...LOCKED, version: '2.0.0' });
    expect([...lockIn(folder).read()]).toEqual([
      ['@a/b@1.2.3', LOCKED],
      ['a', { ...LOCKED, version: '2.0.0' }],
      ['b', LOCKED],
    ]);
    expect(readdirSync(folder)).toEqual(['trunkline.lock']);
    expect(readFileSync(lock.path, 'utf8')).toMatch(/^\{\n "lockVersion": 1,\n "packages": \{\n {2}"@a\/b@1\.2\.3"/);
  });

  it('takes no package with which nobody could read it again', () => {
    const folder = folderWith();
    const lock = lockIn(folder);
    lock.lock('a', LOCKED);
    const huge = { ...LOCKED, tree: { 'node_modules/b': { x: 'x'.repeat(64 * 1024 * 1024) } } };
    expect(() => lock.lock('b', huge)).toThrow('too large');
    expect([...lockIn(folder).read().keys()]).toEqual(['a']);
  });

  it.runIf(process.platform === 'linux')(
    'is stored elsewhere if its folder cannot be written, and takes precedence there',
    () => {
      const folder = folderWith();
      // Not even root can write there.
      const lock = lockIn(folder, '/sys/trunkline.yaml');
      const file = lock.lock('a', LOCKED);
      expect(file).toMatch(new RegExp(`^${join(folder, 'locks')}/[0-9a-f]{16}\\.lock$`));
      expect(lock.path).toBe('/sys/trunkline.lock');
      expect(lockIn(folder, '/sys/trunkline.yaml').read()).toEqual(new Map([['a', LOCKED]]));
      expect(lockIn(folder, '/sys/other/trunkline.yaml').read()).toEqual(new Map());
    },
  );

  it.each(['', '\n', '\0\0\0\0'])('that is empty, as after a power failure, is named and locks nothing: %j', (text) => {
    const folder = folderWith({ 'trunkline.lock': text });
    const empty: string[] = [];
    const configFile = join(folder, 'trunkline.yaml');
    const lock = new LockFile({
      configFile,
      locksFolder: join(folder, 'locks'),
      onEmpty: (file) => empty.push(file),
    });
    expect(lock.read()).toEqual(new Map());
    lock.lock('a', LOCKED);
    expect(empty).toEqual([lock.path]);
    expect(lock.read()).toEqual(new Map([['a', LOCKED]]));
  });

  it.runIf(process.platform !== 'win32')('that is a pipe is refused at once', () => {
    const folder = folderWith();
    execFileSync('mkfifo', [join(folder, 'trunkline.lock')]);
    expect(() => lockIn(folder).read()).toThrow(/trunkline\.lock cannot be used: it is a pipe, not a regular file$/);
  });

  it.runIf(process.platform !== 'win32')('may be a link', () => {
    const folder = folderWith({ elsewhere: lockWith(LOCKED) });
    symlinkSync('elsewhere', join(folder, 'trunkline.lock'));
    expect([...lockIn(folder).read().values()]).toEqual([LOCKED]);
  });

  it.runIf(process.platform !== 'win32')('stays a link when the file behind it gets another entry', () => {
    const folder = folderWith({ elsewhere: lockWith(LOCKED) });
    const lock = lockIn(folder);
    symlinkSync('elsewhere', lock.path);
    expect(lock.lock('another', LOCKED)).toBe(lock.path);
    expect(readlinkSync(lock.path)).toBe('elsewhere');
    expect(readFileSync(join(folder, 'elsewhere'), 'utf8')).toContain('"another"');
    expect(lock.read().size).toBe(2);
  });

  it.each([
    ['is torn', '{"lockVersion":1,"packages":{', 'is not a valid lock file'],
    ['is a list', '[]', 'is not a valid lock file'],
    ['has a conflict', '<<<<<<< ours', 'is not a valid lock file'],
    ['has no packages', '{"lockVersion":1}', 'is not a valid lock file'],
    ['has no integrity', lockWith({ ...LOCKED, integrity: undefined }), 'is not a valid lock file'],
    ['has a path for a version', lockWith({ ...LOCKED, version: '../1.0.0' }), 'is not a valid lock file'],
    ['has no tree', lockWith({ ...LOCKED, tree: [] }), 'is not a valid lock file'],
    ['is of the future', '{"lockVersion":2,"packages":{}}', 'was written by another version of Trunkline'],
  ])('that %s is refused rather than ignored, and not written over', (_, text, message) => {
    const folder = folderWith({ 'trunkline.lock': text });
    expect(() => lockIn(folder).read()).toThrow(message);
    expect(() => lockIn(folder).lock('a', LOCKED)).toThrow(message);
    expect(readFileSync(join(folder, 'trunkline.lock'), 'utf8')).toBe(text);
  });

  it('is as good as any after it was mended', () => {
    const folder = folderWith({ 'trunkline.lock': '{' });
    const lock = lockIn(folder);
    expect(() => lock.read()).toThrow();
    writeFileSync(lock.path, lockWith(LOCKED));
    expect(lock.read()).toEqual(new Map([['a', LOCKED]]));
  });
});

function lockWith(entry: object): string {
  return JSON.stringify({ lockVersion: 1, packages: { a: entry } });
}
