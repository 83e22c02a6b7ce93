import { describe, expect, it } from 'vitest';
import { explain, type FileError, fileErrorIn, systemFault, withFile } from '../../../src/host/errors/file-error.js';
import { LockFileError } from '../../../src/servers/packages/lock-file.js';

/** An error as Node throws it. */
const system = (code: string, syscall = 'write', path?: string) =>
  Object.assign(new Error(`${code}: words of the system, ${syscall}`), { code, syscall, ...(path && { path }) });

const REASONS = [
  ['ENOSPC', 'the disk is full', 'make room'],
  ['EDQUOT', 'your share of the disk is used up', 'remove files'],
  ['EFBIG', 'it would be larger than a file may be here', 'ulimit -f'],
  ['EROFS', 'its file system is read-only', 'make the file system writable'],
  ['EACCES', 'this user may not do that', 'correct the permissions'],
  ['EPERM', 'the system does not allow that', 'correct the owner'],
  ['EMFILE', 'this process has too many open files', 'ulimit -n'],
  ['ENFILE', 'this machine has too many open files', 'end other programs'],
  ['ENAMETOOLONG', 'its path is too long', 'choose a shorter path'],
  ['EISDIR', 'it is a folder, not a file', 'remove the folder'],
  ['ENOTDIR', 'a part of its path is a file, not a folder', 'move that file away'],
  ['EEXIST', 'a file is in the place of a folder of its path', 'move that file away'],
  ['ENOENT', 'it or its folder does not exist', 'correct the path'],
  ['ELOOP', 'it is a symbolic link, or its links have no end', 'remove the link'],
  ['EBUSY', 'another program uses it', 'end that program'],
  ['EIO', 'the disk has failed', 'check the disk'],
] as const;

describe('an error of the system at a file', () => {
  it.each(REASONS)('%s says once that %s, and what to do', (code, reason, hint) => {
    const { message, hint: next, code: kept } = withFile(system(code), '/f/x.yaml') as FileError;
    expect([message, kept]).toEqual([`/f/x.yaml cannot be written: ${reason} (${code})`, code]);
    expect(next).toContain(hint);
    expect(explain(system(code, 'open', '/f/x'))).toBe(`/f/x cannot be used: ${reason} (${code}); ${next}`);
    if (code !== 'EACCES' && code !== 'EPERM') expect(next).not.toContain('permissions');
  });

  it('has the name of the file, not of a draft, and keeps the first name that it was given', () => {
    const named = withFile(system('EACCES', 'open', '/f/x.4711.tmp'), '/f/x');
    expect(named).toMatchObject({ message: '/f/x cannot be written: this user may not do that (EACCES)' });
    expect(withFile(named, '/f/other')).toBe(named);
  });

  it.each([
    ['EPERM', -4048],
    ['EACCES', -4092],
  ])('may be held by another program on Windows, where the code %s is the same', (code, errno) => {
    const { reason, hint } = systemFault(Object.assign(new Error(code), { code, errno }));
    expect(reason).toBe(`another program uses it, or this user may not do that (${code})`);
    expect(hint).toMatch(/^end that program, or correct the permissions/);
  });

  it('has its code as the reason where no words are known', () => {
    expect(systemFault(system('ESTALE'))).toEqual({ reason: 'ESTALE', hint: 'check the file and its folder' });
    expect(systemFault(new Error('a bug'))).toMatchObject({ reason: 'unknown error' });
  });
});

describe('another error', () => {
  it.each([
    ['a connection that is refused', system('EACCES', 'connect', '/f/socket')],
    ['a program that may not be started', system('EACCES', 'spawn x', 'x')],
    ['a port that may not be used', system('EACCES', 'listen')],
    ['a code without words', system('ESTALE', 'open', '/f/x')],
    ['a bug', new TypeError('x is undefined')],
  ])('is none at a file: %s', (_, error) => {
    expect(fileErrorIn(error)).toBeUndefined();
    expect(withFile(error, '/f/x')).toBe(error);
    expect(explain(error)).toBe(error.message);
  });

  it('is explained with its hint, if it has one', () => {
    expect(explain(new LockFileError('x.lock is no lock file', 'remove it'))).toBe('x.lock is no lock file; remove it');
  });
});
