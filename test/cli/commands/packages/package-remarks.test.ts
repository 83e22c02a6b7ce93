import { describe, expect, it } from 'vitest';
import {
  listRemarks,
  remarksOnNewest,
  remarksOnPackage,
} from '../../../../src/cli/commands/packages/package-remarks.js';
import type { InstalledTree } from '../../../../src/servers/packages/package-needs.js';
import type { PackageRequest } from '../../../../src/spec/server-spec.js';

const NODE = { version: '20.20.2', path: '/usr/bin/node' };
const REQUEST: PackageRequest = {
  shown: 'server',
  name: 'server',
  version: undefined,
  bin: undefined,
  installScripts: false,
  foreignDependencies: false,
  isConfined: false,
  env: {},
  budgetMs: 1_000,
};

function treeOf(tree: InstalledTree['tree']): InstalledTree {
  return { name: 'server', tree, isPresent: () => true };
}

describe('the remarks on an installed package', () => {
  it('name the Node that it needs, the Node that runs, and the cure', () => {
    const tree = treeOf({ 'node_modules/server': { version: '2.0.1', engines: { node: '>=22' } } });
    expect(remarksOnPackage(REQUEST, tree, NODE)).toEqual([
      'server 2.0.1 needs Node >=22; this is 20.20.2 at /usr/bin/node: start Trunkline with a Node that fits, or name an older version in `package`',
    ]);
    expect(remarksOnPackage(REQUEST, tree, { ...NODE, version: '22.0.0' })).toEqual([]);
    expect(remarksOnPackage(REQUEST, undefined, NODE)).toEqual([]);
  });

  it('name five of the dependencies that need another Node, and count the others', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    const entry = { version: '1.0.0', engines: { node: '>=22' } };
    const tree = treeOf(Object.fromEntries(names.map((name) => [`node_modules/${name}`, entry])));
    expect(remarksOnPackage(REQUEST, tree, NODE)[0]).toContain(
      'dependencies of server need another Node: a 1.0.0 (Node >=22), b 1.0.0 (Node >=22), c 1.0.0 (Node >=22), d 1.0.0 (Node >=22), e 1.0.0 (Node >=22) and 2 more; this is 20.20.2',
    );
  });

  it('name install scripts that were not run, and nothing if the entry allows them', () => {
    const tree = treeOf({ 'node_modules/server': { version: '1.0.0', hasInstallScript: true } });
    expect(remarksOnPackage(REQUEST, tree, NODE)).toEqual([
      expect.stringContaining('the install scripts of server were not run'),
    ]);
    expect(remarksOnPackage(REQUEST, tree, NODE)[0]).toContain('set `installScripts: true` in its entry');
    expect(remarksOnPackage({ ...REQUEST, installScripts: true }, tree, NODE)).toEqual([]);
  });

  it('never contain a name that the configuration writes as a variable', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how the file spells a variable.
    const hidden = { ...REQUEST, shown: '${SERVER}' };
    const entry = { version: '1.0.0', engines: { node: '>=22' }, hasInstallScript: true };
    const remarks = [
      ...remarksOnPackage(hidden, treeOf({ 'node_modules/server': entry }), NODE),
      ...remarksOnNewest(hidden, entry, undefined, NODE),
    ];
    expect(remarks).toHaveLength(3);
    for (const remark of remarks)
      expect(remark.replace('the server needs', '')).toMatch(/\$\{SERVER\}(?!.*\bserver\b)/);
  });
});

describe('the remark on the newest version', () => {
  const newest = { version: '2.0.1', engines: { node: '>=22' } };

  it('says that it needs another Node, and what to do then', () => {
    expect(remarksOnNewest(REQUEST, newest, '1.0.6', NODE)).toEqual([
      'server 2.0.1 needs Node >=22; this is 20.20.2 at /usr/bin/node: to use it, start Trunkline with a Node that fits, then run `trunkline update`',
    ]);
    const pinned = { ...REQUEST, shown: 'server@1.0.6', version: '1.0.6' };
    expect(remarksOnNewest(pinned, newest, '1.0.6', NODE)[0]).toMatch(/^server 2\.0\.1 .* then change `package`$/);
  });

  it('is absent if this Node can run it, or if it is not newer', () => {
    expect(remarksOnNewest(REQUEST, newest, '1.0.6', { ...NODE, version: '22.1.0' })).toEqual([]);
    expect(remarksOnNewest(REQUEST, { ...newest, engines: undefined }, '1.0.6', NODE)).toEqual([]);
    expect(remarksOnNewest(REQUEST, newest, '2.0.1', NODE)).toEqual([]);
    expect(remarksOnNewest(REQUEST, newest, '3.0.0-beta.1', NODE)).toEqual([]);
  });
});

describe('the list of remarks', () => {
  it('has servers with the same remarks together, and leaves out servers without remarks', () => {
    const servers = [
      { key: 'a', remarks: ['one', 'two'] },
      { key: 'b', remarks: [] },
      { key: 'c', remarks: ['three'] },
      { key: 'd', remarks: ['one', 'two'] },
    ];
    expect(listRemarks(servers)).toBe('\na, d:\n  one\n  two\n\nc:\n  three\n');
    expect(listRemarks([])).toBe('');
  });
});
