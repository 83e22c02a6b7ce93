import { appendFileSync, mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type FileIdentity, isSameFile, logLines, shiftFiles } from '../../../src/host/files/log-lines.js';
import { folderWith } from '../../config/files.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = folderWith();
  file = join(folder, 'hub.log');
});

async function all(): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of logLines({ file, maxFiles: 5, isFollowed: false })) lines.push(line);
  return lines;
}

/** Empty if the descriptor was closed meanwhile. */
function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    return [];
  }
}

describe('the rotation of a log', () => {
  it('renames no file to the name of one that cannot be renamed', () => {
    writeFileSync(file, 'newest');
    writeFileSync(`${file}.1`, 'older');
    mkdirSync(join(`${file}.2`, 'in the way'), { recursive: true });
    expect(() => shiftFiles(file, 3)).toThrow();
    expect([file, `${file}.1`].map((each) => readFileSync(each, 'utf8'))).toEqual(['newest', 'older']);
  });

  it('tells files apart whose numbers are larger than JavaScript counts, as on Windows', () => {
    const [one, other] = [2n ** 60n, 2n ** 60n + 1n].map((ino) => ({ ino, dev: 1n })) as [FileIdentity, FileIdentity];
    expect([isSameFile(one, one), isSameFile(one, other)]).toEqual([true, false]);
  });
});

describe('the lines of a log', () => {
  it('come from all of its files, the oldest first, and none from a log that does not exist', async () => {
    expect(await all()).toEqual([]);
    writeFileSync(`${file}.2`, 'one\ntwo\n');
    writeFileSync(`${file}.1`, 'three\n');
    writeFileSync(file, `four\n${'long'.repeat(50_000)}\n`);
    writeFileSync(`${file}.5`, 'not one of the five files\n');
    expect(await all()).toEqual(['one', 'two', 'three', 'four', 'long'.repeat(50_000)]);
  });

  it('go on when the file is rotated, even several times between two looks, or begins to exist', async () => {
    const lines = logLines({ file, maxFiles: 5, isFollowed: true });
    const first = lines.next();
    writeFileSync(file, 'one\nhal');
    expect((await first).value).toBe('one');
    const second = lines.next();
    appendFileSync(file, 'f\n');
    expect((await second).value).toBe('half');
    const third = lines.next();
    appendFileSync(file, 'last of the first file\n');
    renameSync(file, `${file}.2`);
    writeFileSync(`${file}.1`, 'second file\n');
    writeFileSync(file, 'third file\n');
    expect((await third).value).toBe('last of the first file');
    expect((await lines.next()).value).toBe('second file');
    expect((await lines.next()).value).toBe('third file');
    await lines.return(undefined);
  });

  it.runIf(process.platform === 'linux')('keep no file open when nobody wants more of them', async () => {
    const openFiles = () => readdirSync('/proc/self/fd').flatMap((fd) => linkOf(`/proc/self/fd/${fd}`));
    writeFileSync(`${file}.1`, 'one\ntwo\n');
    writeFileSync(file, 'three\n');
    const lines = logLines({ file, maxFiles: 5, isFollowed: true });
    expect((await lines.next()).value).toBe('one');
    expect(openFiles()).toContain(file);
    await lines.return(undefined);
    expect(openFiles().filter((path) => path.startsWith(folder))).toEqual([]);
  });
});
