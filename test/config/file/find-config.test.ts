import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type FindConfigOptions, findConfigFile } from '../../../src/config/file/find-config.js';
import { folderWith } from '../files.js';

function find(files: string[], options: Partial<FindConfigOptions> = {}): string {
  return findConfigFile({
    flag: undefined,
    env: {},
    cwd: '/project',
    home: '/home/ada',
    platform: 'linux',
    isFile: (path) => files.includes(path),
    ...options,
  });
}

const WINDOWS = { platform: 'win32', cwd: 'C:\\project', home: 'C:\\Users\\ada' } as const;

describe('findConfigFile', () => {
  const everywhere = [
    '/project/flag.yaml',
    '/project/env.yaml',
    '/project/trunkline.yaml',
    '/project/trunkline.yml',
    '/home/ada/.config/trunkline/trunkline.yaml',
  ];

  test('prefers --config, then TRUNKLINE_CONFIG, then the current folder, then the folder of the user', () => {
    const env = { TRUNKLINE_CONFIG: 'env.yaml' };
    expect(find(everywhere, { flag: 'flag.yaml', env })).toBe('/project/flag.yaml');
    expect(find(everywhere, { env })).toBe('/project/env.yaml');
    expect(find(everywhere)).toBe('/project/trunkline.yaml');
    expect(find(everywhere.slice(3))).toBe('/project/trunkline.yml');
    expect(find(everywhere.slice(4))).toBe('/home/ada/.config/trunkline/trunkline.yaml');
  });

  test('an empty TRUNKLINE_CONFIG counts as none', () => {
    expect(find(everywhere, { env: { TRUNKLINE_CONFIG: '' } })).toBe('/project/trunkline.yaml');
  });

  test('a file asked for by name is never replaced by another one', () => {
    expect(() => find(everywhere, { flag: 'gone.yaml' })).toThrow(
      expect.objectContaining({
        code: 'config-not-found',
        file: '/project/gone.yaml',
        message: expect.stringContaining('the file that --config names does not exist'),
      }),
    );
    expect(() => find(everywhere, { env: { TRUNKLINE_CONFIG: '/gone.yaml' } })).toThrow(
      'the file that TRUNKLINE_CONFIG names does not exist',
    );
  });

  test('a folder asked for by name is called a folder, and the file in it is suggested', () => {
    const files = ['/project/conf/trunkline.yml'];
    const isFolder = (path: string) => path === '/project/conf' || path === '/empty';
    expect(() => find(files, { flag: 'conf', isFolder })).toThrow(
      expect.objectContaining({
        code: 'config-unreadable',
        file: '/project/conf',
        message: expect.stringContaining('--config names a folder; expected a file'),
        hint: 'name the file in it: --config conf/trunkline.yml',
      }),
    );
    expect(() => find(files, { env: { TRUNKLINE_CONFIG: './conf/' }, isFolder })).toThrow(
      expect.objectContaining({ hint: 'name the file in it: TRUNKLINE_CONFIG=conf/trunkline.yml' }),
    );
    expect(() => find([], { flag: '/empty', isFolder })).toThrow(
      expect.objectContaining({ hint: 'create a file in it, such as trunkline.yaml, and name that file' }),
    );
  });

  test.each(['', `$\{user_config.config}`])(
    '--config %j, as of a Desktop extension without a file, names none',
    (flag) => {
      const file = '/home/ada/.config/trunkline/trunkline.yaml';
      expect(find([file], { flag })).toBe(file);
      expect(() => find([], { flag })).toThrow('no configuration file found');
    },
  );

  test('XDG_CONFIG_HOME replaces ~/.config, unless it is relative', () => {
    const files = ['/xdg/trunkline/trunkline.yaml', '/home/ada/.config/trunkline/trunkline.yml'];
    expect(find(files, { env: { XDG_CONFIG_HOME: '/xdg' } })).toBe(files[0]);
    expect(find(files, { env: { XDG_CONFIG_HOME: 'xdg' } })).toBe(files[1]);
  });

  test('on macOS the Application Support folder is looked in as well', () => {
    const file = '/home/ada/Library/Application Support/trunkline/trunkline.yaml';
    expect(find([file], { platform: 'darwin' })).toBe(file);
    expect(() => find([file])).toThrow('no configuration file found');
  });

  test('on Windows the folder of the user is in APPDATA', () => {
    const roaming = 'C:\\Users\\ada\\AppData\\Roaming\\trunkline\\trunkline.yaml';
    expect(find([roaming], WINDOWS)).toBe(roaming);
    expect(find(['D:\\a\\trunkline\\trunkline.yml'], { ...WINDOWS, env: { APPDATA: 'D:\\a' } })).toBe(
      'D:\\a\\trunkline\\trunkline.yml',
    );
    expect(find(['C:\\project\\x.yaml'], { ...WINDOWS, flag: 'x.yaml' })).toBe('C:\\project\\x.yaml');
  });

  test('when there is none, the error lists where it looked and what to do next', () => {
    expect(() => find([])).toThrow(
      expect.objectContaining({
        code: 'config-not-found',
        file: undefined,
        message: [
          'no configuration file found; looked for',
          '  /project/trunkline.yaml',
          '  /project/trunkline.yml',
          '  /home/ada/.config/trunkline/trunkline.yaml',
          '  /home/ada/.config/trunkline/trunkline.yml',
          '  create one: `trunkline init` in a terminal takes over the servers of your MCP clients; or name a file with --config FILE or TRUNKLINE_CONFIG',
        ].join('\n'),
      }),
    );
  });

  test.each([
    ['/usr/local/bin/trunkline', '`trunkline init`'],
    ['/home/ada/my clone/dist/cli.js', '`node "/home/ada/my clone/dist/cli.js" init`'],
  ])('the advice names a command that runs this program: %s', (program, command) => {
    expect(() => find([], { program })).toThrow(command);
    expect(() => find([], { program, flag: '/nowhere.yaml' })).toThrow(command);
  });

  test.skipIf(process.platform === 'win32')('finds files on the disk, and takes no folder for one', () => {
    const folder = folderWith({ 'trunkline.yml': '' });
    mkdirSync(join(folder, 'trunkline.yaml'));
    const options = { flag: undefined, env: {}, cwd: folder, home: folder, platform: 'linux' } as const;
    expect(findConfigFile(options)).toBe(join(folder, 'trunkline.yml'));
  });
});
