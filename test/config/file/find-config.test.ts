import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { ConfigError } from '../../../src/config/file/config-error.js';
import {
  ConfigLocation,
  candidateFiles,
  type FindConfigOptions,
  findConfigFile,
} from '../../../src/config/file/find-config.js';
import { IS_WINDOWS } from '../../support/platform.js';
import { folderWith } from '../files.js';

type Options = Partial<Omit<FindConfigOptions, 'platform'>> & { readonly platform?: 'linux' | 'darwin' };

/** A folder with these files, in which the current folder is `project`, and the home folder `home`. */
function rootWith(...files: string[]) {
  const root = folderWith(Object.fromEntries(files.map((file) => [file, ''])));
  const usual = {
    flag: undefined,
    env: {},
    cwd: join(root, 'project'),
    home: join(root, 'home'),
    platform: 'linux',
  } as const;
  return { root, find: (options: Options = {}) => findConfigFile({ ...usual, ...options }) };
}

function found(files: string[], options?: Options): string {
  const { root, find } = rootWith(...files);
  return find(options).slice(root.length + 1);
}

describe.runIf(IS_WINDOWS)('findConfigFile on Windows', () => {
  test('prefers --config, then TRUNKLINE_CONFIG, then the current folder, then APPDATA', () => {
    const files = [
      'project/flag.yaml',
      'project/env.yaml',
      'project/trunkline.yml',
      'roaming/trunkline/trunkline.yaml',
    ];
    const root = folderWith(Object.fromEntries(files.map((file) => [file, ''])));
    const env = { APPDATA: join(root, 'roaming'), TRUNKLINE_CONFIG: 'env.yaml' };
    const options = { flag: undefined, env, cwd: join(root, 'project'), home: root, platform: 'win32' } as const;
    const { TRUNKLINE_CONFIG: _, ...unnamed } = env;
    expect(
      [
        findConfigFile({ ...options, flag: 'flag.yaml' }),
        findConfigFile(options),
        findConfigFile({ ...options, env: unnamed }),
        findConfigFile({ ...options, env: unnamed, cwd: root }),
      ].map((file) => file.slice(root.length + 1).replaceAll('\\', '/')),
    ).toEqual(files);
  });

  test('has a large letter for the drive, so that clients with both spellings share a hub', () => {
    const root = folderWith({ 'trunkline.yaml': '' });
    const small = root.replace(/^[A-Z]/, (drive) => drive.toLowerCase());
    const options = { flag: undefined, env: {}, cwd: small, home: small, platform: 'win32' } as const;
    expect(findConfigFile(options)).toBe(join(root, 'trunkline.yaml'));
    expect(findConfigFile({ ...options, flag: join(small, 'trunkline.yaml') })).toBe(join(root, 'trunkline.yaml'));
  });
});

describe.skipIf(IS_WINDOWS)('findConfigFile', () => {
  const everywhere = [
    'project/flag.yaml',
    'project/env.yaml',
    'project/trunkline.yaml',
    'project/trunkline.yml',
    'home/.config/trunkline/trunkline.yaml',
  ];
  const ofUser = 'home/.config/trunkline/trunkline.yaml';

  test('needs an absolute path, or the file of the user, where the current folder was removed', () => {
    const { root, find } = rootWith(...everywhere);
    expect(() => find({ cwd: '', flag: 'flag.yaml' })).toThrow(
      '--config names a file by its path in the current folder',
    );
    expect(find({ cwd: '', flag: join(root, 'project/flag.yaml') })).toBe(join(root, 'project/flag.yaml'));
    expect(find({ cwd: '' })).toBe(join(root, ofUser));
  });

  test('prefers --config, then TRUNKLINE_CONFIG, then the current folder, then the folder of the user', () => {
    const env = { TRUNKLINE_CONFIG: 'env.yaml' };
    expect(found(everywhere, { flag: 'flag.yaml', env })).toBe('project/flag.yaml');
    expect(found(everywhere, { env })).toBe('project/env.yaml');
    expect(found(everywhere)).toBe('project/trunkline.yaml');
    expect(found(everywhere.slice(3))).toBe('project/trunkline.yml');
    expect(found(everywhere.slice(4))).toBe(ofUser);
    expect(found(everywhere, { env: { TRUNKLINE_CONFIG: '' } })).toBe('project/trunkline.yaml');
  });

  test('does not search the current folder for a server that a client starts', () => {
    expect(found(everywhere, { searchesFolder: false })).toBe(ofUser);
    expect(found(everywhere, { searchesFolder: false, flag: 'flag.yaml' })).toBe('project/flag.yaml');
    const { root, find } = rootWith('project/trunkline.yaml');
    const here = join(root, 'project/trunkline.yaml');
    expect(() => find({ searchesFolder: false })).toThrow(
      `not ${here}, because a file in the current folder does not count here`,
    );
  });

  test('never replaces a file asked for by name', () => {
    const { root, find } = rootWith(...everywhere);
    expect(() => find({ flag: 'gone.yaml' })).toThrow(
      expect.objectContaining({
        code: 'config-not-found',
        file: join(root, 'project/gone.yaml'),
        message: expect.stringContaining('the file that --config names does not exist'),
      }),
    );
    expect(() => find({ env: { TRUNKLINE_CONFIG: '/gone.yaml' } })).toThrow(
      'the file that TRUNKLINE_CONFIG names does not exist',
    );
  });

  test('calls a folder asked for by name a folder, and suggests the file in it', () => {
    const { root, find } = rootWith('project/conf/trunkline.yml', 'empty/x');
    expect(() => find({ flag: 'conf' })).toThrow(
      expect.objectContaining({
        code: 'config-unreadable',
        file: join(root, 'project/conf'),
        message: expect.stringContaining('--config names a folder; expected a file'),
        hint: 'name the file in it: --config conf/trunkline.yml',
      }),
    );
    expect(() => find({ env: { TRUNKLINE_CONFIG: './conf/' } })).toThrow(
      expect.objectContaining({ hint: 'name the file in it: TRUNKLINE_CONFIG=conf/trunkline.yml' }),
    );
    expect(() => find({ flag: '../empty' })).toThrow(
      expect.objectContaining({ hint: 'create a file in it, such as trunkline.yaml, and name that file' }),
    );
  });

  test.each(['', `$\{user_config.config}`])(
    'takes %j, of a Desktop extension without a file, for no --config',
    (flag) => {
      expect(found([ofUser], { flag })).toBe(ofUser);
      expect(() => found([], { flag })).toThrow('no configuration file found');
    },
  );

  test('prefers XDG_CONFIG_HOME to ~/.config, unless it is relative', () => {
    const { root, find } = rootWith('xdg/trunkline/trunkline.yaml', ofUser);
    expect(find({ env: { XDG_CONFIG_HOME: join(root, 'xdg') } })).toBe(join(root, 'xdg/trunkline/trunkline.yaml'));
    expect(find({ env: { XDG_CONFIG_HOME: 'xdg' } })).toBe(join(root, ofUser));
  });

  test('looks into the Application Support folder on macOS', () => {
    const file = 'home/Library/Application Support/trunkline/trunkline.yaml';
    expect(found([file], { platform: 'darwin' })).toBe(file);
    expect(() => found([file])).toThrow('no configuration file found');
  });

  test('looks into APPDATA on Windows', () => {
    const windows = { platform: 'win32', cwd: 'C:\\project', home: 'C:\\Users\\ada' } as const;
    expect(candidateFiles({ ...windows, env: {} })).toContain(
      'C:\\Users\\ada\\AppData\\Roaming\\trunkline\\trunkline.yaml',
    );
    expect(candidateFiles({ ...windows, env: { APPDATA: 'D:\\a' } })).toEqual([
      'C:\\project\\trunkline.yaml',
      'C:\\project\\trunkline.yml',
      'D:\\a\\trunkline\\trunkline.yaml',
      'D:\\a\\trunkline\\trunkline.yml',
    ]);
  });

  test('lists where it looked and what to do next, if there is no file', () => {
    const { root, find } = rootWith();
    const message = [
      'no configuration file found; looked for',
      `  ${root}/project/trunkline.yaml`,
      `  ${root}/project/trunkline.yml`,
      `  ${root}/home/.config/trunkline/trunkline.yaml`,
      `  ${root}/home/.config/trunkline/trunkline.yml`,
      '  create one: `trunkline init` in a terminal takes over the servers of your MCP clients; or name a file with --config FILE or TRUNKLINE_CONFIG',
    ].join('\n');
    expect(() => find()).toThrow(expect.objectContaining({ code: 'config-not-found', file: undefined, message }));
  });

  test.each([
    ['/usr/local/bin/trunkline', '`trunkline init`'],
    ['/home/ada/my clone/dist/cli.js', '`node "/home/ada/my clone/dist/cli.js" init`'],
  ])('advises a command that runs this program: %s', (program, command) => {
    const { find } = rootWith();
    expect(() => find({ program })).toThrow(command);
    expect(() => find({ program, flag: '/nowhere.yaml' })).toThrow(command);
  });

  test('takes no folder for a file', () => {
    const { root, find } = rootWith('project/trunkline.yml');
    mkdirSync(join(root, 'project/trunkline.yaml'));
    expect(find()).toBe(join(root, 'project/trunkline.yml'));
  });
});

describe('the file of one run', () => {
  it('is searched until there is one, and stays, even if the file is gone later', () => {
    const config = join(folderWith(), 'trunkline.yaml');
    const place = new ConfigLocation({ config });
    expect(() => place.file).toThrow(ConfigError);
    writeFileSync(config, 'servers: {}');
    expect(place.file).toBe(config);
    rmSync(config);
    expect(place.file).toBe(config);
  });
});
