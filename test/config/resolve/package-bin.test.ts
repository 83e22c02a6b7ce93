import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findPackage, type InstalledPackages, parsePackage } from '../../../src/config/resolve/package-bin.js';
import { folderWith } from '../files.js';

interface Request {
  spec: string;
  bin?: string;
  shown?: string;
  configFolder?: string;
  store?: InstalledPackages;
}

/** Resolves with the configuration in `app` and Trunkline itself in `own`, below `folder`. */
function resolveIn(folder: string, { spec, bin, shown = spec, configFolder = join(folder, 'app'), store }: Request) {
  const request = {
    shown,
    ...parsePackage(spec, shown),
    bin,
    installScripts: false,
    foreignDependencies: false,
    isConfined: false,
    env: {},
    budgetMs: 1,
  };
  return findPackage({ request, configFolder, ownFolder: join(folder, 'own'), ...(store && { store }) });
}

/** The program alone. */
function programOf(folder: string, request: Request): string | undefined {
  return resolveIn(folder, request)?.program;
}

function installed(at: string, manifest: object, programs: readonly string[] = ['run.js']): Record<string, string> {
  return {
    [`${at}/package.json`]: JSON.stringify(manifest),
    ...Object.fromEntries(programs.map((program) => [`${at}/${program}`, ''])),
  };
}

const IN_APP = 'app/node_modules/@acme/tool';
const IN_OWN = 'own/node_modules/@acme/tool';

const ONE = { version: '1.2.3', bin: './run.js' };
const SEVERAL = { bin: { tool: 'run.js', 'tool-admin': 'admin.js' } };

describe('findPackage', () => {
  test.each<[string, Request, object, string]>([
    ['without a version', { spec: '@acme/tool' }, ONE, 'run.js'],
    ['in its version', { spec: '@acme/tool@1.2.3' }, ONE, 'run.js'],
    ['in a range', { spec: '@acme/tool@^1.2' }, ONE, 'run.js'],
    ['in one of several ranges', { spec: '@acme/tool@>=1 <1.5 || 9' }, ONE, 'run.js'],
    ['with its only program, whatever its name', { spec: '@acme/tool' }, { bin: { 'mcp-tool': 'run.js' } }, 'run.js'],
    ['with the program named like the package', { spec: '@acme/tool' }, SEVERAL, 'run.js'],
    ['with the program that `bin` chooses', { spec: '@acme/tool', bin: 'tool-admin' }, SEVERAL, 'admin.js'],
  ])('finds the package next to the configuration file %s', (_, request, manifest, program) => {
    const folder = folderWith(installed(IN_APP, manifest, ['run.js', 'admin.js']));
    expect(programOf(folder, request)).toBe(join(folder, IN_APP, program));
  });

  test.each([
    ['another version', '@acme/tool@1.2.4'],
    ['another range', '@acme/tool@2.x'],
    ['a tag, because only the registry knows what it stands for', '@acme/tool@latest'],
    ['another package', 'tool@1.0.0'],
  ])('leaves %s to be installed', (_, spec) => {
    expect(resolveIn(folderWith(installed(IN_APP, ONE)), { spec })).toBeUndefined();
  });

  test('takes no package from a folder above the configuration, nor one of Trunkline itself', () => {
    const folder = folderWith({
      ...installed('node_modules/@acme/tool', ONE),
      ...installed(IN_OWN, ONE),
      'app/x': '',
    });
    symlinkSync(join(folder, 'own'), join(folder, 'link'));
    for (const name of ['app', 'own/config', 'own', 'link']) {
      expect(programOf(folder, { spec: '@acme/tool', configFolder: join(folder, name) })).toBeUndefined();
    }
    expect(programOf(folder, { spec: '@acme/tool@1.2.3' })).toBeUndefined();
  });

  test('looks into the store after the folder of the configuration file', () => {
    const files = installed('store/x/node_modules/@acme/tool', { version: '2.0.0', bin: 'run.js' });
    const folder = folderWith(files);
    const store = { find: () => ({ folder: join(folder, 'store/x'), version: '2.0.0' }) };
    const request = { spec: '@acme/tool', store };
    const program = join(folder, 'store/x/node_modules/@acme/tool/run.js');
    expect(resolveIn(folder, request)).toEqual({ location: 'store', version: '2.0.0', program });
    const both = folderWith({ ...files, ...installed(IN_APP, ONE) });
    expect(resolveIn(both, request)).toMatchObject({ location: 'near', version: '1.2.3' });
  });

  test('says to move a folder of the store away that somebody emptied', () => {
    const folder = folderWith();
    const store = { find: () => ({ folder: join(folder, 'store/x'), version: '2.0.0' }) };
    expect(() => resolveIn(folder, { spec: 'tool', store })).toThrow(
      expect.objectContaining({
        hint: expect.stringMatching(/^move the folder .*store.x away, because .*, then run: trunkline install$/),
      }),
    );
  });

  test('does not count a package that is installed by half', () => {
    const folder = folderWith({ [`${IN_APP}/package.json`]: '{"version":' });
    expect(resolveIn(folder, { spec: '@acme/tool' })).toBeUndefined();
  });

  test.each(['./tool', '../tool', '/opt/tool', 'a/b', '@acme', '', '@acme/..', 'node_modules/x', 'http://x'])(
    'refuses "%s", which is not the name of a package',
    (spec) => {
      expect(() => resolveIn(folderWith(), { spec })).toThrow('is not the name of an npm package');
    },
  );

  test.each(['tool@', 'tool@ ', 'tool@file:../x', 'tool@npm:other@1', '@acme/tool@git+ssh://x/y', 'tool@../x'])(
    'refuses "%s", which names no version of the package',
    (spec) => {
      expect(() => resolveIn(folderWith(), { spec })).toThrow('does not name a version');
    },
  );

  test.each<[string, Partial<Request>, object, string, string?]>([
    ['no program', {}, { version: '1.0.0' }, 'has no program to run'],
    ['no file of its program', {}, { bin: 'dist/run.js' }, 'the file of the program tool is missing from the package'],
    ['a program outside of it', {}, { bin: '../../../evil.js' }, 'is outside the folder of the package'],
    ['a link that leads out of it', {}, { bin: 'link.js' }, 'is outside the folder of the package'],
    [
      'several programs, none of them obvious',
      {},
      { bin: { one: 'run.js', two: 'run.js' } },
      'the package @acme/tool has several programs, none of which has the name of the package',
      'set `bin:` to one of one, two',
    ],
    [
      'no program of the name in `bin`',
      { bin: 'toString' },
      SEVERAL,
      'the package @acme/tool has no program `toString`',
      'set `bin:` to one of tool, tool-admin',
    ],
  ])('refuses a package with %s', (_, request, manifest, message, hint) => {
    const folder = folderWith({ ...installed(IN_APP, manifest), 'app/evil.js': '' });
    symlinkSync(join(folder, 'app/evil.js'), join(folder, IN_APP, 'link.js'));
    const find = () => resolveIn(folder, { spec: '@acme/tool', ...request });
    expect(find).toThrow(message);
    if (hint !== undefined) expect(find).toThrow(expect.objectContaining({ hint }));
  });

  test.skipIf(process.platform === 'win32')('follows a package that is itself a link, as pnpm makes them', () => {
    const folder = folderWith({ ...installed('store/tool', { bin: 'run.js' }), 'app/node_modules/x': '' });
    symlinkSync(join(folder, 'store/tool'), join(folder, 'app/node_modules/tool'));
    expect(programOf(folder, { spec: 'tool' })).toBe(join(folder, 'store/tool/run.js'));
  });

  test('shows in messages what the file says, not what a variable holds', () => {
    const shown = `\${TOOL}`;
    const folder = folderWith(installed('app/node_modules/hidden', { version: '1.2.3' }));
    expect(() => resolveIn(folder, { spec: 'hidden', shown })).toThrow(
      expect.objectContaining({
        message: `the package ${shown} has no program to run; expected a \`bin\` in its package.json`,
        hint: expect.not.stringContaining('hidden'),
      }),
    );
  });
});
