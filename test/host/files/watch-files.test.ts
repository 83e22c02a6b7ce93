import { mkdirSync, readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FileWatch, watchFiles } from '../../../src/host/files/watch-files.js';
import type { Clock } from '../../../src/wire/timing/clock.js';
import { folderWith } from '../../config/files.js';
import { FakeClock } from '../../support/fake-clock.js';
import { realClock, until } from '../../support/processes.js';

let folder: string;
let watches: FileWatch[];
beforeEach(() => {
  folder = folderWith();
  watches = [];
});
afterEach(async () => {
  for (const watch of watches) await watch.close();
});

/** Watches a file of the folder; yields what it says each time that a change is told, `undefined` if it is not there. */
async function following(name: string, time: Clock = realClock) {
  const file = join(folder, name);
  /** The delays of the watch, in milliseconds: it plans one whenever something happens. */
  const delays: number[] = [];
  const clock: Clock = {
    now: () => time.now(),
    schedule: (delayMs, task) => {
      delays.push(delayMs);
      return time.schedule(delayMs, task);
    },
  };
  /** Each different from the one before. */
  const seen: (string | undefined)[] = [];
  const errors: unknown[] = [];
  const read = () => {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return undefined;
    }
  };
  const onChange = () => {
    const text = read();
    // To be told once more of the same is no harm.
    if (seen.length === 0 || seen.at(-1) !== text) seen.push(text);
  };
  const watch = watchFiles({ files: [file], clock, onChange, onError: (error) => errors.push(error) });
  watches.push(watch);
  await watch.ready;
  return {
    file,
    seen,
    delays,
    errors,
    untilSeen: (text: string | undefined) => until(`"${text}" is seen`, () => seen.at(-1) === text && seen.length > 0),
  };
}

/** As careful editors and tools write. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.tmp`, text);
  renameSync(`${file}.tmp`, file);
}

describe('a watched file', () => {
  it('is noticed although its folder appears before the watcher is ready', async () => {
    const file = join(folder, 'sub', 'c.yaml');
    let changes = 0;
    const watch = watchFiles({ files: [file], clock: realClock, onChange: () => (changes += 1), onError: () => {} });
    watches.push(watch);
    mkdirSync(dirname(file));
    await watch.ready;
    await until('the new folder is watched, and the absence of the file is reported', () => changes > 0);
    const before = changes;
    writeFileSync(file, 'one');
    await until('the file is noticed', () => changes > before);
  });

  it.each([
    ['letters of another case', 'Config.YAML', 'config.yaml'],
    ['letters of another composition', 'tr\u00fcnk.yaml', 'tru\u0308nk.yaml'],
  ])('is noticed although its name on disk has %s', async (_, configured, onDisk) => {
    let changes = 0;
    const files = [join(folder, configured)];
    const watch = watchFiles({ files, clock: realClock, onChange: () => (changes += 1), onError: () => {} });
    watches.push(watch);
    await watch.ready;
    writeFileSync(join(folder, onDisk), 'one');
    await until('the change is noticed', () => changes > 0);
  });

  it('that is written in place is told of', async () => {
    writeFileSync(join(folder, 'c.yaml'), 'one');
    const { file, seen, untilSeen } = await following('c.yaml');
    writeFileSync(file, 'two');
    await untilSeen('two');
    expect(seen).toEqual(['two']);
  });

  it('that another one is put in the place of is told of, every time', async () => {
    writeFileSync(join(folder, 'c.yaml'), 'one');
    const { file, seen, untilSeen } = await following('c.yaml');
    for (const text of ['two', 'three', 'four']) {
      replace(file, text);
      await untilSeen(text);
    }
    expect(seen).toEqual(['two', 'three', 'four']);
  });

  it('that is moved away and written anew, as some editors do, is told of once', async () => {
    writeFileSync(join(folder, 'c.yaml'), 'one');
    const { file, seen, delays, untilSeen } = await following('c.yaml');
    renameSync(file, `${file}~`);
    const [settled = 0] = await until('it moves', () => delays.length > 0).then(() => delays);
    await until('it is missed', () => delays.some((delay) => delay > settled));
    writeFileSync(file, 'two');
    await untilSeen('two');
    expect(seen).toEqual(['two']);
  });

  it('that is gone for good is told of, and again when it is back', async () => {
    writeFileSync(join(folder, 'c.yaml'), 'one');
    const { file, seen, untilSeen } = await following('c.yaml');
    unlinkSync(file);
    await until('it is told of', () => seen.length > 0);
    expect(seen).toEqual([undefined]);
    writeFileSync(file, 'two');
    await untilSeen('two');
  });

  it('that changes many times in a moment is told of once', async () => {
    writeFileSync(join(folder, 'c.yaml'), 'one');
    const { file, seen, untilSeen } = await following('c.yaml');
    for (let time = 0; time < 30; time += 1) {
      (time % 2 === 0 ? writeFileSync : replace)(file, `${time}`);
    }
    await untilSeen('29');
    expect(seen).toEqual(['29']);
  });

  it('that is written all the time is told of all the same', async () => {
    writeFileSync(join(folder, 'c.yaml'), 'one');
    // So that no write comes late, however busy the machine is.
    const clock = new FakeClock();
    const { file, seen, delays } = await following('c.yaml', clock);
    for (let count = 1; clock.now() < 3_000 && seen.length === 0; count += 1) {
      const before = delays.length;
      writeFileSync(file, `${count}`);
      await until('the write is noticed', () => delays.length > before);
      clock.advance(40);
    }
    expect(seen).toHaveLength(1);
    expect(clock.now()).toBe(1_000);
  });

  it('that is not there yet is told of when it comes, even when its folder is missing', async () => {
    const { file, seen, untilSeen } = await following('a/b/c.yaml');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, 'one');
    await untilSeen('one');
    replace(file, 'two');
    await untilSeen('two');
    expect(seen).toEqual(['one', 'two']);
  });

  it('behind a symbolic link is told of when the file is written, replaced, or the link leads elsewhere', async () => {
    mkdirSync(join(folder, 'dotfiles'));
    mkdirSync(join(folder, 'other'));
    writeFileSync(join(folder, 'dotfiles', 'real.yaml'), 'one');
    writeFileSync(join(folder, 'other', 'real.yaml'), 'elsewhere');
    symlinkSync(join('dotfiles', 'real.yaml'), join(folder, 'c.yaml'));
    const { file, untilSeen } = await following('c.yaml');
    writeFileSync(join(folder, 'dotfiles', 'real.yaml'), 'two');
    await untilSeen('two');
    replace(join(folder, 'dotfiles', 'real.yaml'), 'three');
    await untilSeen('three');
    symlinkSync(join('other', 'real.yaml'), `${file}.tmp`);
    renameSync(`${file}.tmp`, file);
    await untilSeen('elsewhere');
    writeFileSync(join(folder, 'other', 'real.yaml'), 'and on');
    await untilSeen('and on');
  });

  it('in a folder that a link leads to is told of when the link is exchanged, as in mounted configurations', async () => {
    for (const version of ['v1', 'v2', 'v3']) {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, 'c.yaml'), version);
    }
    symlinkSync('v1', join(folder, '..data'));
    symlinkSync(join('..data', 'c.yaml'), join(folder, 'c.yaml'));
    const { untilSeen } = await following('c.yaml');
    for (const version of ['v2', 'v3']) {
      symlinkSync(version, join(folder, '..tmp'));
      renameSync(join(folder, '..tmp'), join(folder, '..data'));
      await untilSeen(version);
    }
  });

  it('is not told of when others beside it change', async () => {
    writeFileSync(join(folder, 'c.yaml'), 'one');
    const { file, seen, delays, errors, untilSeen } = await following('c.yaml');
    // The listener is told about them.
    const names = ['c.yaml~', '.c.yaml.swp', 'log.txt'];
    const others = await Promise.all(names.map((name) => following(name)));
    for (const other of others) writeFileSync(other.file, 'x');
    for (const other of others) await other.untilSeen('x');
    expect({ seen, delays }).toEqual({ seen: [], delays: [] });
    writeFileSync(file, 'two');
    await untilSeen('two');
    expect(errors).toEqual([]);
  });

  it('is not told of any more after the end', async () => {
    writeFileSync(join(folder, 'c.yaml'), 'one');
    const { file, seen, delays } = await following('c.yaml');
    const another = await following('c.yaml');
    writeFileSync(file, 'two');
    await until('it is about to be told', () => delays.length > 0);
    await watches[0]?.close();
    const before = delays.length;
    writeFileSync(file, 'three');
    await another.untilSeen('three');
    expect(seen).toEqual([]);
    expect(delays).toHaveLength(before);
  });
});
