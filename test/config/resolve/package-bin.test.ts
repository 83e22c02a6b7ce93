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
  const request = { shown, ...parsePackage(spec, shown), bin, installScripts: false, env: {}, budgetMs: 1 };
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

describe('findPackage', () => {
  test('finds the package next to the configuration file', () => {
    const folder = folderWith(installed(IN_APP, { version: '1.2.3', bin: './run.js' }));
    expect(programOf(folder, { spec: '@acme/tool' })).toBe(join(folder, IN_APP, 'run.js'));
    expect(programOf(folder, { spec: '@acme/tool@1.2.3' })).toBe(join(folder, IN_APP, 'run.js'));
  });

  test('takes no package from a folder above the configuration, nor from a folder above Trunkline', () => {
    const folder = folderWith({
      ...installed('node_modules/@acme/tool', { version: '1.2.3', bin: 'run.js' }),
      ...installed(IN_OWN, { version: '1.2.3', bin: 'run.js' }),
      'app/x': '',
    });
    expect(programOf(folder, { spec: '@acme/tool' })).toBeUndefined();
    expect(programOf(folder, { spec: '@acme/tool@1.2.3' })).toBeUndefined();
    expect(programOf(folder, { spec: '@acme/tool', configFolder: join(folder, 'own/config') })).toBeUndefined();
  });

  test('takes no package of Trunkline itself, not even when the configuration lies in its folder', () => {
    const folder = folderWith(installed(IN_OWN, { version: '1.2.3', bin: 'run.js' }));
    symlinkSync(join(folder, 'own'), join(folder, 'link'));
    for (const name of ['own', 'link']) {
      expect(programOf(folder, { spec: '@acme/tool', configFolder: join(folder, name) })).toBeUndefined();
    }
  });

  test('a package that is nowhere is to be installed', () => {
    expect(resolveIn(folderWith(), { spec: 'tool@1.0.0' })).toBeUndefined();
  });

  test('another version than the one asked for is not the one', () => {
    const folder = folderWith(installed(IN_APP, { version: '1.2.3', bin: 'run.js' }));
    expect(resolveIn(folder, { spec: '@acme/tool@1.2.4' })).toBeUndefined();
  });

  test('the store comes after what lies next to the configuration file', () => {
    const files = installed('store/x/node_modules/@acme/tool', { version: '2.0.0', bin: 'run.js' });
    const folder = folderWith(files);
    const store = { find: () => ({ folder: join(folder, 'store/x'), version: '2.0.0' }) };
    const request = { spec: '@acme/tool', store };
    expect(resolveIn(folder, request)).toEqual({
      place: 'store',
      version: '2.0.0',
      program: join(folder, 'store/x/node_modules/@acme/tool/run.js'),
    });
    const both = folderWith({ ...files, ...installed(IN_APP, { version: '1.2.3', bin: 'run.js' }) });
    expect(resolveIn(both, request)).toEqual({
      place: 'near',
      version: '1.2.3',
      program: join(both, IN_APP, 'run.js'),
    });
  });

  test('a folder of the store that somebody emptied is to be removed', () => {
    const folder = folderWith();
    const store = { find: () => ({ folder: join(folder, 'store/x'), version: '2.0.0' }) };
    expect(() => resolveIn(folder, { spec: 'tool', store })).toThrow(
      expect.objectContaining({ hint: `remove the folder ${join(folder, 'store/x')}, then run: trunkline install` }),
    );
  });

  test('what was half installed does not count', () => {
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

  test('a range accepts the package in node_modules if its version is in it', () => {
    const folder = folderWith(installed(IN_APP, { version: '1.2.3', bin: 'run.js' }));
    const versionFor = (spec: string) => resolveIn(folder, { spec })?.version;
    expect(versionFor('@acme/tool')).toBe('1.2.3');
    expect(versionFor('@acme/tool@^1.2')).toBe('1.2.3');
    expect(versionFor('@acme/tool@>=1 <1.5 || 9')).toBe('1.2.3');
    expect(versionFor('@acme/tool@2.x')).toBeUndefined();
  });

  test('a tag accepts no package in node_modules, because only the registry knows what the tag stands for', () => {
    const folder = folderWith(installed(IN_APP, { version: '1.2.3', bin: 'run.js' }));
    expect(resolveIn(folder, { spec: '@acme/tool@latest' })).toBeUndefined();
    expect(resolveIn(folder, { spec: '@acme/tool@next' })).toBeUndefined();
  });

  describe('with several programs', () => {
    const bin = { tool: 'run.js', 'tool-admin': 'admin.js' };

    test('runs the one named like the package', () => {
      const folder = folderWith(installed(IN_APP, { bin }, ['run.js', 'admin.js']));
      expect(programOf(folder, { spec: '@acme/tool' })).toBe(join(folder, IN_APP, 'run.js'));
    });

    test('runs the one that `bin` chooses', () => {
      const folder = folderWith(installed(IN_APP, { bin }, ['run.js', 'admin.js']));
      expect(programOf(folder, { spec: '@acme/tool', bin: 'tool-admin' })).toBe(join(folder, IN_APP, 'admin.js'));
    });

    test('names the choices when none is obvious', () => {
      const folder = folderWith(installed(IN_APP, { bin: { one: 'run.js', two: 'run.js' } }));
      expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow(
        expect.objectContaining({
          message: 'the package @acme/tool has several programs, none of which has the name of the package',
          hint: 'set `bin:` to one of one, two',
        }),
      );
    });

    test('names the choices when `bin` is none of them', () => {
      const folder = folderWith(installed(IN_APP, { bin }));
      expect(() => resolveIn(folder, { spec: '@acme/tool', bin: 'toString' })).toThrow(
        expect.objectContaining({
          message: 'the package @acme/tool has no program `toString`',
          hint: 'set `bin:` to one of tool, tool-admin',
        }),
      );
    });
  });

  test('runs the only program, whatever its name', () => {
    const folder = folderWith(installed(IN_APP, { bin: { 'mcp-server-tool': 'run.js' } }));
    expect(programOf(folder, { spec: '@acme/tool' })).toBe(join(folder, IN_APP, 'run.js'));
  });

  test('a package without programs is refused', () => {
    const folder = folderWith(installed(IN_APP, { version: '1.0.0' }));
    expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow('has no program to run');
  });

  test('a program that is missing from its package is refused', () => {
    const folder = folderWith(installed(IN_APP, { bin: 'dist/run.js' }));
    expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow(
      'the file of the program tool is missing from the package @acme/tool',
    );
  });

  test('a program outside its package is refused', () => {
    const folder = folderWith({ ...installed(IN_APP, { bin: '../../../evil.js' }), 'app/evil.js': '' });
    expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow('is outside the folder of the package');
  });

  test.skipIf(process.platform === 'win32')('a link that leads out of its package is refused', () => {
    const folder = folderWith({ ...installed(IN_APP, { bin: 'link.js' }), 'app/evil.js': '' });
    symlinkSync(join(folder, 'app/evil.js'), join(folder, IN_APP, 'link.js'));
    expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow('is outside the folder of the package');
  });

  test.skipIf(process.platform === 'win32')('a package that is itself a link, as pnpm makes them, is followed', () => {
    const folder = folderWith({ ...installed('store/tool', { bin: 'run.js' }), 'app/node_modules/x': '' });
    symlinkSync(join(folder, 'store/tool'), join(folder, 'app/node_modules/tool'));
    expect(programOf(folder, { spec: 'tool' })).toBe(join(folder, 'store/tool/run.js'));
  });

  test('messages show what the file says, not what a variable holds', () => {
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
