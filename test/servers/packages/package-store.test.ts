import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { FoundPackage } from '../../../src/config/resolve/config.js';
import type { LockedPackage } from '../../../src/servers/packages/lock-file.js';
import {
  installedPackages,
  installedTree,
  openStore,
  type PackagePaths,
  PackageStore,
  readInstalled,
} from '../../../src/servers/packages/package-store.js';
import type { PackageRequest } from '../../../src/spec/server-spec.js';
import { folderWith } from '../../config/files.js';

const MACHINE = { platform: 'linux', arch: 'x64', abi: '115' };
const tree = {
  'node_modules/@a/tool': { version: '1.0.0', integrity: 'sha512-A' },
  'node_modules/dep': { version: '2.0.0', integrity: 'sha512-B' },
};
const locked: LockedPackage = { version: '1.0.0', integrity: 'sha512-A', tree };
const WANTED = { name: '@a/tool', locked, installScripts: false };

/** As npm leaves it. */
async function stage(store: PackageStore): Promise<string> {
  const staging = await store.newStaging();
  writeFileSync(
    join(staging, 'package-lock.json'),
    JSON.stringify({ packages: { '': { dependencies: {} }, ...tree } }),
  );
  for (const path of Object.keys(tree)) {
    mkdirSync(join(staging, path), { recursive: true });
    writeFileSync(join(staging, path, 'package.json'), '{}');
  }
  return staging;
}

describe('the folder of a package', () => {
  const nameOf = (wanted = WANTED, machine = MACHINE) => basename(new PackageStore('/s', machine).folderOf(wanted));

  it('says which one it is, in one part of a path', () => {
    expect(nameOf()).toMatch(/^@a\+tool@1\.0\.0-[0-9a-f]{16}$/);
  });

  it('is another one for other packages below it, and for other machines', () => {
    const other = { ...tree, 'node_modules/dep': { version: '2.0.1', integrity: 'sha512-C' } };
    const names = [
      nameOf(),
      nameOf({ ...WANTED, locked: { ...locked, tree: other } }),
      nameOf({ ...WANTED, installScripts: true }),
      nameOf({ ...WANTED, installScripts: true }, { ...MACHINE, abi: '127' }),
      nameOf(WANTED, { ...MACHINE, arch: 'arm64' }),
    ];
    expect(new Set(names).size).toBe(names.length);
    expect(nameOf(WANTED, { ...MACHINE, abi: '127' })).toBe(nameOf());
  });

  it('is the same whatever else npm knows of the packages, and in whatever order', () => {
    const known = Object.entries(tree).map(([path, entry]) => [path, { license: 'MIT', ...entry }] as const);
    expect(nameOf({ ...WANTED, locked: { ...locked, tree: Object.fromEntries(known.reverse()) } })).toBe(nameOf());
  });
});

describe('the store', () => {
  it('has a package once it is published, in the folder that was said', async () => {
    const store = new PackageStore(folderWith(), MACHINE);
    const staging = await stage(store);
    expect(store.has(WANTED)).toBe(false);
    const folder = await store.publish(staging, WANTED);
    expect(folder).toBe(store.folderOf(WANTED));
    expect(store.has(WANTED)).toBe(true);
    expect(existsSync(staging)).toBe(false);
  });

  it('keeps what was there when the same is published again', async () => {
    const store = new PackageStore(folderWith(), MACHINE);
    const first = await store.publish(await stage(store), WANTED);
    writeFileSync(join(first, 'mark'), '');
    expect(await store.publish(await stage(store), WANTED)).toBe(first);
    expect(existsSync(join(first, 'mark'))).toBe(true);
  });

  it.each([
    ['its own package.json', 'node_modules/@a/tool/package.json', false],
    ['the package.json of a dependency', 'node_modules/dep/package.json', true],
  ])('replaces a folder in which %s is torn', async (_, file, isStarted) => {
    const store = new PackageStore(folderWith(), MACHINE);
    const folder = await store.publish(await stage(store), WANTED);
    expect(store.isDamaged(WANTED)).toBe(false);
    for (const torn of ['', '{"version":', '\0\0']) {
      writeFileSync(join(folder, file), torn);
      // To find each damage would take too long when a server is to be started.
      expect([store.has(WANTED), store.isDamaged(WANTED)]).toEqual([isStarted, true]);
      expect(await store.publish(await stage(store), WANTED)).toBe(folder);
      expect([store.has(WANTED), store.isDamaged(WANTED)]).toEqual([true, false]);
    }
  });

  it('does not miss an optional package of other machines', async () => {
    const store = new PackageStore(folderWith(), MACHINE);
    const folder = await store.publish(await stage(store), WANTED);
    rmSync(join(folder, 'node_modules/dep'), { recursive: true });
    expect([store.has(WANTED), store.isDamaged(WANTED)]).toEqual([true, false]);
  });

  it('does not hide why something could not be published', async () => {
    const store = new PackageStore(folderWith(), MACHINE);
    await expect(store.publish('/nowhere/at/all', WANTED)).rejects.toThrow('ENOENT');
  });

  it('finds a version that was installed for somebody else, and as it is wanted', async () => {
    const store = new PackageStore(folderWith(), MACHINE);
    expect(store.findVersion('@a/tool', '1.0.0', false)).toBeUndefined();
    await store.publish(await stage(store), WANTED);
    expect(store.findVersion('@a/tool', '1.0.0', false)).toEqual(locked);
    expect(store.findVersion('@a/tool', '1.0.0', true)).toBeUndefined();
    expect(store.findVersion('@a/tool', '1.0.1', false)).toBeUndefined();
    expect(store.findVersion('tool', '1.0.0', false)).toBeUndefined();
  });

  it('does not take the word of a folder whose content is not what its name says', async () => {
    const folder = folderWith();
    const store = new PackageStore(folder, MACHINE);
    const forged = join(folder, '@a+tool@1.0.0-0123456789abcdef');
    mkdirSync(forged);
    writeFileSync(join(forged, 'package-lock.json'), JSON.stringify({ packages: tree }));
    expect(store.findVersion('@a/tool', '1.0.0', false)).toBeUndefined();
  });

  it.each([
    ...['1.0.0/../../../b@1.0.0', 'x/../b@1.0.0', '..', ''].map((version) => ({ version, integrity: 'sha512-A' })),
    ...['', 'x', '../sha512-A'].map((integrity) => ({ version: '1.0.0', integrity })),
  ])('takes no version and no integrity that an install script has written: %j', (entry) => {
    const folder = folderWith({ 'package-lock.json': JSON.stringify({ packages: { 'node_modules/a': entry } }) });
    expect(readInstalled(folder, 'a')).toBeUndefined();
  });

  it('copies nothing to a package because of a list that an install script has written', async () => {
    const storeFolder = folderWith({
      'other/node_modules/key': 'secret',
      'trunkline.lock': JSON.stringify({ lockVersion: 1, packages: { '@a/tool': locked } }),
    });
    const paths = { storeFolder, configFile: join(storeFolder, 'trunkline.yaml'), locksFolder: storeFolder };
    const store = openStore(paths);
    const staging = await stage(store);
    const list = { from: join(storeFolder, 'other'), files: { 'node_modules/key': 0 } };
    writeFileSync(join(staging, 'carried-over.json'), JSON.stringify(list));
    const folder = await store.publish(staging, WANTED);
    installedPackages(paths).find({ ...REQUEST, name: '@a/tool' });
    expect(existsSync(join(folder, 'node_modules/key'))).toBe(false);
  });

  it('is rid of what was never published', async () => {
    const folder = folderWith();
    const store = new PackageStore(folder, MACHINE);
    const published = await store.publish(await stage(store), WANTED);
    await Promise.all([stage(store), stage(store)]);
    await store.sweep();
    expect(readdirSync(join(folder, '.staging'))).toEqual([]);
    expect(existsSync(published)).toBe(true);
  });
});

const REQUEST: PackageRequest = {
  ...{ shown: '@acme/server', name: '@acme/server', version: undefined, bin: undefined },
  ...{ installScripts: false, foreignDependencies: false, isConfined: false, env: {}, budgetMs: 1_000 },
};
const TREE = {
  'node_modules/@acme/server': { version: '1.0.0' },
  'node_modules/other': { version: '2.0.0', hasInstallScript: true },
};
const LOCKED = { version: '1.0.0', integrity: 'sha512-AAAA', tree: TREE };
const LOCK = JSON.stringify({ lockVersion: 1, packages: { '@acme/server': LOCKED } });

function placesWith(files: Readonly<Record<string, string>>) {
  const folder = folderWith(files);
  const [configFile, storeFolder, locksFolder] = ['trunkline.yaml', 'store', 'locks'].map((name) => join(folder, name));
  return { folder, places: { configFile, storeFolder, locksFolder } as PackagePaths };
}

describe('the tree of an installed package', () => {
  it('in node_modules is the package alone, wherever its program is inside it', () => {
    const manifest = { name: '@acme/server', version: '1.2.3', engines: { node: '>=22' }, scripts: { install: 'x' } };
    const { folder, places } = placesWith({
      'node_modules/@acme/server/package.json': JSON.stringify(manifest),
      'node_modules/@acme/server/dist/package.json': '{"type":"module"}',
    });
    const program = join(folder, 'node_modules/@acme/server/dist/cli.js');
    const found: FoundPackage = { location: 'near', version: '1.2.3', program };
    expect(installedTree(REQUEST, found, places)?.tree).toEqual({
      'node_modules/@acme/server': { version: '1.2.3', engines: { node: '>=22' } },
    });
    expect(installedTree({ ...REQUEST, name: 'gone' }, found, places)).toBeUndefined();
  });

  it('in the store is what the lock file says, with what npm put there', () => {
    const { places } = placesWith({ 'trunkline.lock': LOCK });
    expect(installedTree(REQUEST, undefined, places)).toBeUndefined();
    const installed = join(openStore(places).folderOf({ ...REQUEST, locked: LOCKED }), 'node_modules/@acme/server');
    mkdirSync(installed, { recursive: true });
    writeFileSync(join(installed, 'package.json'), '{}');
    const tree = installedTree(REQUEST, undefined, places);
    expect(tree?.tree).toEqual(TREE);
    expect(Object.keys(TREE).map((path) => tree?.isPresent(path))).toEqual([true, false]);
  });

  it('is unknown while the lock file cannot be read', () => {
    const { places } = placesWith({ 'trunkline.lock': '{' });
    expect(installedTree(REQUEST, undefined, places)).toBeUndefined();
  });
});
