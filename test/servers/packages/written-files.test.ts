import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { carryOver, refreshCopies, writtenIn } from '../../../src/servers/packages/written-files.js';
import { folderWith } from '../../config/files.js';

let folder: string;
beforeEach(() => {
  folder = folderWith();
});
/** Writes a file that was changed at this second. */
function write(path: string, text: string, second: number): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  utimesSync(file, second, second);
}

/** A version of a package, which was installed at this second. */
function install(version: string, second: number): string {
  for (const path of ['.package-lock.json', 'tool/package.json', 'tool/index.js', 'tool/seed.json'])
    write(`${version}/node_modules/${path}`, `${path} of ${version}`, second);
  return join(folder, version);
}

const STATE = join('node_modules/tool/state.json');
const SEED = join('node_modules/tool/seed.json');
const read = (version: string, path: string) => readFileSync(join(folder, version, path), 'utf8');

describe('the files that a server writes beside its program', () => {
  it('are those that are later than the installation, without caches', () => {
    const one = install('one', 1_000);
    write(`one/${STATE}`, 'state', 2_000);
    write('one/node_modules/.hidden/login', 'login', 2_000);
    write('one/node_modules/tool/.cache/model', 'model', 2_000);
    expect(writtenIn(one).sort()).toEqual([join('node_modules/.hidden/login'), STATE]);
    expect(writtenIn(join(folder, 'none'))).toEqual([]);
  });

  it('go to a new version and to the one after it, also if they are older than its installation', () => {
    const [one, two, three] = [install('one', 1_000), install('two', 3_000), install('three', 4_000)];
    write(`one/${STATE}`, 'state', 2_000);
    expect(carryOver(one, two)).toEqual({ carried: [STATE], left: [], kept: [] });
    expect(statSync(join(two, STATE)).mtimeMs).toBe(2_000_000);
    expect(carryOver(two, three)).toEqual({ carried: [STATE], left: [], kept: [] });
    expect(read('three', STATE)).toBe('state');
    expect(read('one', STATE)).toBe('state');
  });

  it('replace data of the new package, and neither its program nor what a server has written there', () => {
    const [one, two] = [install('one', 1_000), install('two', 1_500)];
    for (const path of [STATE, SEED, 'node_modules/tool/index.js']) write(`one/${path}`, 'changed', 2_000);
    write(`two/${STATE}`, 'of another', 3_000);
    const { carried, left } = carryOver(one, two);
    expect([carried, left.toSorted()]).toEqual([[SEED], [join('node_modules/tool/index.js'), STATE]]);
    expect([read('two', STATE), read('two', SEED)]).toEqual(['of another', 'changed']);
  });

  it('replace older data of the server if the newer one is wanted, which stays beside it, and no program or link', () => {
    const [one, two] = [install('one', 1_000), install('two', 1_500)];
    const [linked, program, older] = ['linked', 'index.js', 'older'].map((name) => `node_modules/tool/${name}`);
    for (const path of [STATE, linked, program]) write(`one/${path}`, 'newer', 4_000);
    for (const path of [STATE, program]) write(`two/${path}`, 'of two', 3_000);
    write(`one/${older}`, 'older', 2_000);
    write(`two/${older}`, 'of two', 3_000);
    write('home/id', 'secret', 3_000);
    symlinkSync(join(folder, 'home/id'), join(two, linked ?? ''));
    const kept = `${STATE}.19700101T005000000Z.bak`;
    const { left, ...rest } = carryOver(one, two, { newerWins: true });
    expect({ ...rest, left: left.toSorted() }).toEqual({
      carried: [STATE],
      kept: [kept],
      left: [program, linked, older],
    });
    expect([read('two', STATE), read('two', kept), read('two', older ?? '')]).toEqual(['newer', 'of two', 'of two']);
    expect(writtenIn(two).filter((path) => read('two', path) === 'secret')).toEqual([]);
  });

  it('follow what the earlier version writes until it ends, unless the new version has changed them', () => {
    const [one, two] = [install('one', 1_000), install('two', 3_000)];
    write(`one/${STATE}`, 'first', 2_000);
    carryOver(one, two);
    write(`one/${STATE}`, 'second', 4_000);
    refreshCopies(two);
    expect(read('two', STATE)).toBe('second');
    write(`two/${STATE}`, 'of two', 5_000);
    write(`one/${STATE}`, 'third', 6_000);
    refreshCopies(two);
    expect(read('two', STATE)).toBe('of two');
  });

  it.each([
    ['a path outside of the packages', 'home', 'id'],
    ['a path that leads out of them', 'one', 'node_modules/../../home/id'],
    ['a link in the earlier version', 'one', 'node_modules/tool/away/id'],
    ['a link in place of the packages', 'trap', 'node_modules/id'],
  ])('never bring a server files from elsewhere, by %s in a list that it has written', (_, from, path) => {
    const [one, two] = [install('one', 1_000), install('two', 1_500)];
    write('home/id', 'secret', 2_000);
    symlinkSync(join(folder, 'home'), join(one, 'node_modules/tool/away'));
    mkdirSync(join(folder, 'trap'));
    symlinkSync(join(folder, 'home'), join(folder, 'trap/node_modules'));
    write('two/carried-over.json', JSON.stringify({ from: join(folder, from), files: { [path]: 0 } }), 2_000);
    refreshCopies(two);
    expect(writtenIn(two).map((found) => read('two', found))).not.toContain('secret');
    expect([join(two, 'id'), join(two, 'node_modules/tool/away/id')].filter((file) => existsSync(file))).toEqual([]);
  });

  it('are never written through a link that leads out of the new version', () => {
    const [one, two] = [install('one', 1_000), install('two', 1_500)];
    write('home/id', 'secret', 1_000);
    for (const path of ['id', 'new/id']) write(`one/node_modules/tool/data/${path}`, 'other', 2_000);
    symlinkSync(join(folder, 'home'), join(two, 'node_modules/tool/data'));
    const left = ['node_modules/tool/data/id', 'node_modules/tool/data/new/id'];
    expect(carryOver(one, two)).toEqual({ carried: [], left, kept: [] });
    expect(readFileSync(join(folder, 'home/id'), 'utf8')).toBe('secret');
    expect(existsSync(join(folder, 'home/new'))).toBe(false);
  });

  it('go back to the version from which they came', () => {
    const [one, two] = [install('one', 1_000), install('two', 3_000)];
    write(`one/${STATE}`, 'first', 2_000);
    carryOver(one, two);
    write(`two/${STATE}`, 'of two', 5_000);
    expect(carryOver(two, one).carried).toEqual([STATE]);
    expect(read('one', STATE)).toBe('of two');
  });
});
