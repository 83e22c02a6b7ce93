import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStore } from '../../src/packages/installed-packages.js';
import { installedTree } from '../../src/packages/installed-tree.js';
import type { PackageRequest } from '../../src/supervision/child-spec.js';

const REQUEST: PackageRequest = {
  shown: '@acme/server',
  name: '@acme/server',
  version: undefined,
  bin: undefined,
  installScripts: false,
  env: {},
  budgetMs: 1_000,
};
const TREE = {
  'node_modules/@acme/server': { version: '1.0.0' },
  'node_modules/other': { version: '2.0.0', hasInstallScript: true },
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-tree-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

function places() {
  return {
    configFile: join(folder, 'trunkline.yaml'),
    storeFolder: join(folder, 'store'),
    locksFolder: join(folder, 'locks'),
  };
}

function lock(text: string = JSON.stringify({ lockVersion: 1, packages: { '@acme/server': LOCKED } })): void {
  file('trunkline.lock', text);
}

const LOCKED = { version: '1.0.0', integrity: 'sha512-AAAA', tree: TREE };

describe('the tree of an installed package', () => {
  it('in node_modules is the package alone, wherever its program is inside it', () => {
    const manifest = { name: '@acme/server', version: '1.2.3', engines: { node: '>=22' }, scripts: { install: 'x' } };
    file('node_modules/@acme/server/package.json', JSON.stringify(manifest));
    file('node_modules/@acme/server/dist/package.json', '{"type":"module"}');
    const program = file('node_modules/@acme/server/dist/cli.js', '');
    const tree = installedTree(REQUEST, { place: 'near', version: '1.2.3', program }, places());
    expect(tree?.tree).toEqual({
      'node_modules/@acme/server': { version: '1.2.3', engines: { node: '>=22' } },
    });
    expect(
      installedTree({ ...REQUEST, name: 'gone' }, { place: 'near', version: '1', program }, places()),
    ).toBeUndefined();
  });

  it('in the store is what the lock file says, with what npm put there', () => {
    lock();
    expect(installedTree(REQUEST, undefined, places())).toBeUndefined();
    const absent = { 'node_modules/other': false, 'node_modules/@acme/server': true };
    const name = nameInStore();
    file(`store/${name}/node_modules/@acme/server/package.json`, '{}');
    const tree = installedTree(REQUEST, undefined, places());
    expect(tree?.tree).toEqual(TREE);
    expect(Object.fromEntries(Object.keys(absent).map((path) => [path, tree?.isPresent(path)]))).toEqual(absent);
  });

  it('is unknown while the lock file cannot be read', () => {
    lock('{');
    expect(installedTree(REQUEST, undefined, places())).toBeUndefined();
  });
});

function nameInStore(): string {
  return basename(openStore(places()).folderOf({ ...REQUEST, locked: LOCKED }));
}
