import { mkdirSync, readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { watchFiles } from '../../../src/host/files/watch-files.js';
import { folderWith } from '../../config/files.js';
import { FakeClock } from '../../support/fake-clock.js';
import { until } from '../../support/processes.js';

let folder: string;
beforeEach(() => {
  folder = folderWith({ 'c.yaml': 'one' });
});

/** Watches a file of the folder. `seen` has its text at each report, `undefined` if it is missing. */
function watching(name = 'c.yaml') {
  const file = join(folder, name);
  const clock = new FakeClock();
  const seen: (string | undefined)[] = [];
  const onChange = () => {
    try {
      seen.push(readFileSync(file, 'utf8'));
    } catch {
      seen.push(undefined);
    }
  };
  const stop = watchFiles({ files: [file], clock, onChange });
  onTestFinished(stop);
  const look = async (times = 1) => {
    for (let time = 0; time < times; time += 1) {
      clock.advance(500);
      await until('the files were looked at', () => clock.pending === 1);
    }
  };
  return { file, seen, look, stop, clock };
}

/** Replaces a file as careful editors and tools do. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.tmp`, text);
  renameSync(`${file}.tmp`, file);
}

describe('a watched file', () => {
  it('is reported once when it is written in place or replaced, and not when others beside it change', async () => {
    const { file, seen, look } = watching();
    writeFileSync(file, 'two');
    await look(2);
    replace(file, 'three');
    await look(2);
    writeFileSync(join(folder, 'c.yaml~'), 'x');
    await look(3);
    expect(seen).toEqual(['two', 'three']);
  });

  it('that is moved away and written anew, as some editors do, is reported once', async () => {
    const { file, seen, look } = watching();
    renameSync(file, `${file}~`);
    await look();
    writeFileSync(file, 'two');
    await look(3);
    expect(seen).toEqual(['two']);
  });

  it('that is gone for good is reported, and again when it is back', async () => {
    const { file, seen, look } = watching();
    unlinkSync(file);
    await look(3);
    expect(seen).toEqual([undefined]);
    writeFileSync(file, 'two');
    await look(2);
    expect(seen).toEqual([undefined, 'two']);
  });

  it('that is written all the time is reported all the same, after a second', async () => {
    const { file, seen, look } = watching();
    for (const text of ['2', '3', '4']) {
      writeFileSync(file, text.repeat(Number(text)));
      await look();
    }
    expect(seen).toEqual(['4444']);
  });

  it('is reported when it appears, also with its folder', async () => {
    const { file, seen, look } = watching('a/b/c.yaml');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, 'one');
    await look(2);
    expect(seen).toEqual(['one']);
  });

  it('behind a symbolic link is reported when it is written, or when the link leads elsewhere', async () => {
    mkdirSync(join(folder, 'dotfiles'));
    writeFileSync(join(folder, 'dotfiles', 'real.yaml'), 'real');
    writeFileSync(join(folder, 'other.yaml'), 'elsewhere');
    symlinkSync(join('dotfiles', 'real.yaml'), join(folder, 'link.yaml'));
    const { file, seen, look } = watching('link.yaml');
    replace(join(folder, 'dotfiles', 'real.yaml'), 'two');
    await look(2);
    symlinkSync('other.yaml', `${file}.tmp`);
    renameSync(`${file}.tmp`, file);
    await look(2);
    expect(seen).toEqual(['two', 'elsewhere']);
  });

  it('in a folder that a link leads to is reported when the link is exchanged, as in mounted configurations', async () => {
    for (const version of ['v1', 'v2']) {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, 'd.yaml'), version);
    }
    symlinkSync('v1', join(folder, '..data'));
    symlinkSync(join('..data', 'd.yaml'), join(folder, 'd.yaml'));
    const { seen, look } = watching('d.yaml');
    symlinkSync('v2', join(folder, '..tmp'));
    renameSync(join(folder, '..tmp'), join(folder, '..data'));
    await look(2);
    expect(seen).toEqual(['v2']);
  });

  it('is not reported any more after the end', async () => {
    const { file, seen, look, stop, clock } = watching();
    writeFileSync(file, 'two');
    await look();
    stop();
    clock.advance(10_000);
    expect(clock.pending).toBe(0);
    expect(seen).toEqual([]);
  });
});
