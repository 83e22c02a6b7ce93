import { describe, expect, it } from 'vitest';
import {
  fitsNode,
  type InstalledTree,
  isNewer,
  needsOtherNode,
  nodeRangeIn,
  withInstallScripts,
} from '../../../src/servers/packages/package-needs.js';

function treeOf(tree: InstalledTree['tree'], absent: readonly string[] = []): InstalledTree {
  return { name: '@acme/server', tree, isPresent: (path) => !absent.includes(path) };
}

describe('the range of Node in `engines`', () => {
  it.each([
    [{ node: '>=18' }, '>=18'],
    [{ node: '^20.19.0 || ^22.13.0 || >= 24.0.0' }, '^20.19.0 || ^22.13.0 || >= 24.0.0'],
    [{ node: 'the latest' }, undefined],
    [{ node: 18 }, undefined],
    [{ npm: '>=9' }, undefined],
    [['node >= 0.8'], undefined],
    [undefined, undefined],
  ])('of %j is %s', (engines, range) => {
    expect(nodeRangeIn(engines)).toBe(range);
  });

  it.each([
    ['>=18', '20.20.2', true],
    ['^20.19.0 || >=22.12.0', '20.18.1', false],
    ['^20.19.0 || >=22.12.0', '22.12.0', true],
    ['>=22', '22.0.0-nightly', true],
    ['>=22', '21.9.0', false],
    [undefined, '20.20.2', true],
  ])('of %s and Node %s: fits %s', (range, version, fits) => {
    expect(fitsNode(range, version)).toBe(fits);
  });
});

describe('a version', () => {
  it.each([
    ['2.0.1', '1.0.6', true],
    ['1.0.6', '1.0.6', false],
    ['1.2.2', '1.2.3', false],
    ['1.10.0', '1.9.9', true],
    ['2.0.0', '1.99.99', true],
    ['1.2.4-beta.1', '1.2.3', true],
    ['1.0.0', '1.0.0-beta.1', true],
    ['2026.8.31', 'unversioned', false],
    ['newest', '1.0.0', false],
  ])('%s is newer than %s: %s', (version, than, newer) => {
    expect(isNewer(version, than)).toBe(newer);
  });
});

describe('a tree', () => {
  const tree = {
    'node_modules/a': { version: '1.0.0', engines: { node: '>=22' } },
    'node_modules/a/node_modules/@scope/b': { version: '2.0.0', engines: { node: '>=24' }, hasInstallScript: true },
    'node_modules/@acme/server': { version: '3.0.0', engines: { node: '>=20.20' } },
    'node_modules/absent': { version: '4.0.0', engines: { node: '>=99' }, hasInstallScript: true },
    'node_modules/c/node_modules/@scope/b': { version: '2.1.0', hasInstallScript: true },
    'node_modules/odd': 'what npm never writes',
  };
  const given = treeOf(tree, ['node_modules/absent']);

  it('has packages that need another Node, the package itself first', () => {
    expect(needsOtherNode(given, '22.0.0')).toEqual([{ name: '@scope/b', version: '2.0.0', range: '>=24' }]);
    expect(needsOtherNode(given, '20.19.0')).toEqual([
      { name: '@acme/server', version: '3.0.0', range: '>=20.20' },
      { name: 'a', version: '1.0.0', range: '>=22' },
      { name: '@scope/b', version: '2.0.0', range: '>=24' },
    ]);
  });

  it('has packages with install scripts, each named once, without those that were left out for another machine', () => {
    expect(withInstallScripts(given)).toEqual(['@scope/b']);
  });
});
