import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { LogFile } from '../../../src/host/observe/log-file.js';
import { folderWith } from '../../config/files.js';
import { shownMode } from '../../support/platform.js';

let folder: string;
let internalErrors: unknown[];

beforeEach(() => {
  folder = folderWith();
  internalErrors = [];
});

function open(name = 'x.log', maxFileBytes = 100, maxFiles = 3): LogFile {
  return new LogFile({
    file: join(folder, name),
    maxFileBytes,
    maxFiles,
    onFault: (error) => internalErrors.push(error),
  });
}

function lines(name: string): string[] {
  return readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1);
}

describe('a log file', () => {
  it('becomes the first of a few old ones when it is full, and the oldest goes', () => {
    const log = open();
    for (let count = 10; count < 60; count += 1) log.write(`line ${count} ...\n`);
    expect(readdirSync(folder).sort()).toEqual(['x.log', 'x.log.1', 'x.log.2']);
    const all = [...lines('x.log.2'), ...lines('x.log.1'), ...lines('x.log')];
    expect(all.at(-1)).toBe('line 59 ...');
    expect(all).toEqual(Array.from({ length: all.length }, (_, index) => `line ${60 - all.length + index} ...`));
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).size).toBeLessThanOrEqual(100);
  });

  it.runIf(process.platform !== 'win32')(
    'is readable by its owner only, and so are its folder and the old ones',
    () => {
      const log = open('new/deep/x.log');
      for (let count = 0; count < 20; count += 1) log.write(`line ${count} ...\n`);
      const modes = ['new', 'new/deep', 'new/deep/x.log', 'new/deep/x.log.1'].map(
        (name) => statSync(join(folder, name)).mode & 0o777,
      );
      expect(modes).toEqual([0o700, 0o700, 0o600, 0o600].map(shownMode));
    },
  );

  it('goes on with a file that is there, full or not', () => {
    writeFileSync(join(folder, 'x.log'), `${'o'.repeat(95)}\n`);
    open().write('new line\n');
    expect([lines('x.log.1'), lines('x.log')]).toEqual([['o'.repeat(95)], ['new line']]);
  });

  it('takes a line that is longer than a file whole', () => {
    const log = open();
    for (const mark of ['a', 'b']) log.write(`${mark.repeat(300)}\n`);
    expect([lines('x.log.1'), lines('x.log')]).toEqual([['a'.repeat(300)], ['b'.repeat(300)]]);
  });

  it('of several processes is rotated by one of them, and all go on in the new one', () => {
    const [one, two] = [open(), open()];
    for (let count = 0; count < 6; count += 1) for (const log of [one, two]) log.write(`line ${count} ...\n`);
    const all = ['x.log.2', 'x.log.1', 'x.log'].filter((name) => existsSync(join(folder, name))).flatMap(lines);
    expect(all).toHaveLength(12);
    one.write('the last\n');
    two.write('the very last\n');
    expect(lines('x.log').slice(-2)).toEqual(['the last', 'the very last']);
  });

  it('is rotated where a link leads, and the link stays', () => {
    mkdirSync(join(folder, 'real'));
    symlinkSync(join(folder, 'real', 'x.log'), join(folder, 'link.log'));
    const log = open('link.log');
    for (let count = 0; count < 10; count += 1) log.write(`line ${count} ...\n`);
    expect(readdirSync(join(folder, 'real')).sort()).toEqual(['x.log', 'x.log.1']);
    expect(lines('link.log').at(-1)).toBe('line 9 ...');
  });

  it.runIf(process.platform === 'linux')('says once that nothing can be written, and never throws', () => {
    const log = new LogFile({ file: '/dev/full', onFault: (error) => internalErrors.push(error) });
    for (let count = 0; count < 3; count += 1) log.write('lost\n');
    expect(internalErrors).toEqual([expect.objectContaining({ code: 'ENOSPC' })]);
  });

  it.runIf(process.platform !== 'win32')(
    'may be a pipe, which holds nobody: not before it is read, nor when it is full',
    () => {
      const pipe = join(folder, 'pipe');
      execFileSync('mkfifo', [pipe]);
      expect(() => open('pipe')).toThrow('ENXIO');
      const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
      const log = open('pipe');
      log.write('first\n');
      const chunk = Buffer.alloc(64);
      expect(chunk.toString('utf8', 0, readSync(reader, chunk))).toBe('first\n');
      for (let count = 0; count < 100; count += 1) log.write('x'.repeat(2_048));
      expect(internalErrors).toEqual([expect.objectContaining({ code: 'EAGAIN' })]);
      closeSync(reader);
    },
  );

  it('that cannot be renamed is no reason to stop: a line is lost, and the next one is tried', () => {
    const log = open();
    mkdirSync(join(folder, 'x.log.1'));
    mkdirSync(join(folder, 'x.log.2', 'in the way'), { recursive: true });
    for (let count = 0; count < 10; count += 1) log.write(`line ${count} ...\n`);
    expect(internalErrors).toHaveLength(1);
    rmSync(join(folder, 'x.log.2'), { recursive: true });
    log.write('better\n');
    expect(lines('x.log')).toEqual(['better']);
  });
});
