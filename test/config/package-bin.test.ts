import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageBin } from '../../src/config/package-bin.js';
import { folderWith } from './files.js';

interface Request {
  spec: string;
  bin?: string;
  shown?: string;
  configFolder?: string;
}

/** Resolves with configuration in `app/config` and Trunkline itself in `own/dist`, below `folder`. */
function resolveIn(folder: string, { spec, bin, shown = spec, configFolder = join(folder, 'app/config') }: Request) {
  return packageBin({ spec, shown, bin, configFolder, ownFolder: join(folder, 'own/dist') });
}

function installed(at: string, manifest: object, programs: readonly string[] = ['run.js']): Record<string, string> {
  return {
    [`${at}/package.json`]: JSON.stringify(manifest),
    ...Object.fromEntries(programs.map((program) => [`${at}/${program}`, ''])),
  };
}

const IN_APP = 'app/node_modules/@acme/tool';
const IN_OWN = 'own/node_modules/@acme/tool';

describe('packageBin', () => {
  test('finds the package in a folder above the configuration', () => {
    const folder = folderWith(installed(IN_APP, { version: '1.2.3', bin: './run.js' }));
    expect(resolveIn(folder, { spec: '@acme/tool' })).toBe(join(folder, IN_APP, 'run.js'));
    expect(resolveIn(folder, { spec: '@acme/tool@1.2.3' })).toBe(join(folder, IN_APP, 'run.js'));
  });

  test('looks above Trunkline itself only when the configuration has none', () => {
    const own = installed(IN_OWN, { version: '2.0.0', bin: 'run.js' });
    const app = installed(IN_APP, { version: '1.2.3', bin: 'run.js' });
    expect(resolveIn(folderWith(own), { spec: '@acme/tool' })).toContain(join(IN_OWN, 'run.js'));
    expect(resolveIn(folderWith({ ...own, ...app }), { spec: '@acme/tool' })).toContain(join(IN_APP, 'run.js'));
  });

  test('an exact version is found behind another one', () => {
    const folder = folderWith({
      ...installed(IN_APP, { version: '1.2.3', bin: 'run.js' }),
      ...installed(IN_OWN, { version: '2.0.0', bin: 'run.js' }),
    });
    expect(resolveIn(folder, { spec: '@acme/tool@2.0.0' })).toBe(join(folder, IN_OWN, 'run.js'));
  });

  test('a package that is not installed comes with the command that installs it', () => {
    const folder = folderWith();
    expect(() => resolveIn(folder, { spec: 'tool@1.0.0' })).toThrow(
      expect.objectContaining({
        message: 'the package tool@1.0.0 is not installed',
        hint: `install it: npm install --prefix "${join(folder, 'app/config')}" tool@1.0.0`,
      }),
    );
  });

  test('another version than the one asked for is named along with it', () => {
    const folder = folderWith(installed(IN_APP, { version: '1.2.3', bin: 'run.js' }));
    expect(() => resolveIn(folder, { spec: '@acme/tool@1.2.4' })).toThrow(
      expect.objectContaining({
        message: 'expected the package @acme/tool@1.2.4; version 1.2.3 is installed',
        hint: expect.stringMatching(/npm install --prefix ".*" @acme\/tool@1\.2\.4$/),
      }),
    );
  });

  test('what was half installed does not count', () => {
    const folder = folderWith({ [`${IN_APP}/package.json`]: '{"version":' });
    expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow('is not installed');
  });

  test.each(['./tool', '../tool', '/opt/tool', 'a/b', '@acme', '', '@acme/..', 'node_modules/x', 'http://x'])(
    'refuses "%s", which is not the name of a package',
    (spec) => {
      expect(() => resolveIn(folderWith(), { spec })).toThrow('is not the name of a package');
    },
  );

  test.each(['tool@latest', 'tool@^1.0.0', 'tool@1', 'tool@', '@acme/tool@>=1'])(
    'refuses "%s", which may be any version',
    (spec) => {
      expect(() => resolveIn(folderWith(), { spec })).toThrow('asks for no exact version');
    },
  );

  describe('with several programs', () => {
    const bin = { tool: 'run.js', 'tool-admin': 'admin.js' };

    test('runs the one named like the package', () => {
      const folder = folderWith(installed(IN_APP, { bin }, ['run.js', 'admin.js']));
      expect(resolveIn(folder, { spec: '@acme/tool' })).toBe(join(folder, IN_APP, 'run.js'));
    });

    test('runs the one that `bin` chooses', () => {
      const folder = folderWith(installed(IN_APP, { bin }, ['run.js', 'admin.js']));
      expect(resolveIn(folder, { spec: '@acme/tool', bin: 'tool-admin' })).toBe(join(folder, IN_APP, 'admin.js'));
    });

    test('names the choices when none is obvious', () => {
      const folder = folderWith(installed(IN_APP, { bin: { one: 'run.js', two: 'run.js' } }));
      expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow(
        expect.objectContaining({
          message: 'the package @acme/tool has several programs; expected a choice',
          hint: 'set `bin:` to one of one, two',
        }),
      );
    });

    test('names the choices when `bin` is none of them', () => {
      const folder = folderWith(installed(IN_APP, { bin }));
      expect(() => resolveIn(folder, { spec: '@acme/tool', bin: 'toString' })).toThrow(
        expect.objectContaining({
          message: 'the package @acme/tool has no program toString; expected one that it has',
          hint: 'set `bin:` to one of tool, tool-admin',
        }),
      );
    });
  });

  test('runs the only program, whatever its name', () => {
    const folder = folderWith(installed(IN_APP, { bin: { 'mcp-server-tool': 'run.js' } }));
    expect(resolveIn(folder, { spec: '@acme/tool' })).toBe(join(folder, IN_APP, 'run.js'));
  });

  test('a package without programs is refused', () => {
    const folder = folderWith(installed(IN_APP, { version: '1.0.0' }));
    expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow('has no program to run');
  });

  test('a program that is missing from its package is refused', () => {
    const folder = folderWith(installed(IN_APP, { bin: 'dist/run.js' }));
    expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow(
      'the program tool of the package @acme/tool is missing from its folder',
    );
  });

  test('a program outside its package is refused', () => {
    const folder = folderWith({ ...installed(IN_APP, { bin: '../../../evil.js' }), 'app/evil.js': '' });
    expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow('lies outside its folder');
  });

  test.skipIf(process.platform === 'win32')('a link that leads out of its package is refused', () => {
    const folder = folderWith({ ...installed(IN_APP, { bin: 'link.js' }), 'app/evil.js': '' });
    symlinkSync(join(folder, 'app/evil.js'), join(folder, IN_APP, 'link.js'));
    expect(() => resolveIn(folder, { spec: '@acme/tool' })).toThrow('lies outside its folder');
  });

  test.skipIf(process.platform === 'win32')('a package that is itself a link, as pnpm makes them, is followed', () => {
    const folder = folderWith({ ...installed('store/tool', { bin: 'run.js' }), 'app/node_modules/x': '' });
    symlinkSync(join(folder, 'store/tool'), join(folder, 'app/node_modules/tool'));
    expect(resolveIn(folder, { spec: 'tool' })).toBe(join(folder, 'store/tool/run.js'));
  });

  test('messages show what the file says, not what a variable holds', () => {
    const shown = `\${TOOL}`;
    expect(() => resolveIn(folderWith(), { spec: 'hidden', shown })).toThrow(
      expect.objectContaining({
        message: `the package ${shown} is not installed`,
        hint: expect.not.stringContaining('hidden'),
      }),
    );
  });
});
