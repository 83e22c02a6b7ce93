import { posix, win32 } from 'node:path';
import { describe, expect, it } from 'vitest';
import { environmentOf } from '../../src/process/environment.js';
import { type ChooseNodeOptions, chooseNode } from '../../src/process/server-node.js';

const HELPER = '/Applications/Claude.app/Contents/Frameworks/Claude Helper (Plugin).app/Contents/MacOS/Claude Helper';
const HOME = '/Users/ada';

/** In Electron on macOS, with these files. */
function choose(files: readonly string[], options: Partial<ChooseNodeOptions> = {}) {
  const { dirname } = options.platform === 'win32' ? win32 : posix;
  const parents = (file: string): string[] => (dirname(file) === file ? [file] : [file, ...parents(dirname(file))]);
  const all = new Set(files.flatMap(parents));
  return chooseNode({
    versions: { node: '22.20.0', electron: '39.1.0' },
    execPath: HELPER,
    env: { PATH: '/usr/bin:/bin:.:relative' },
    home: HOME,
    platform: 'darwin',
    isFile: (path) => files.includes(path),
    entriesOf: (folder) =>
      [...all].filter((path) => dirname(path) === folder).map((path) => path.slice(folder.length + 1)),
    ...options,
  });
}

describe('the Node that runs packages', () => {
  it('is the one that runs Trunkline, also if another one is in PATH', () => {
    const versions = { node: '22.20.0' };
    const found = choose(['/usr/bin/node'], { versions, execPath: '/opt/node/bin/node' });
    expect(found).toEqual({ path: '/opt/node/bin/node', variables: {} });
  });

  it('F133: is the first in PATH if Electron runs Trunkline', () => {
    const env = { PATH: '/opt/tools:/bin:/usr/bin' };
    expect(choose(['/usr/bin/node', '/bin/node'], { env })).toEqual({ path: '/bin/node', variables: {} });
  });

  it.each([
    ['/opt/homebrew/bin/node'],
    ['/usr/local/bin/node'],
    [`${HOME}/.volta/bin/node`],
    [`${HOME}/.nvm/versions/node/v22.9.0/bin/node`],
    [`${HOME}/Library/Application Support/fnm/node-versions/v24.1.0/installation/bin/node`],
    [`${HOME}/.local/share/mise/installs/node/24.1.0/bin/node`],
  ])('is found outside of PATH at %s', (file) => {
    expect(choose([file]).path).toBe(file);
  });

  it('is the newest one of a manager of versions, whatever else is in its folder', () => {
    const folder = `${HOME}/.nvm/versions/node`;
    const files = ['v9.11.2', 'v22.3.0', 'v22.20.0', 'v20.19.5', 'zebra'].map((name) => `${folder}/${name}/bin/node`);
    expect(choose(files).path).toBe(`${folder}/v22.20.0/bin/node`);
  });

  it.each([
    ['C:\\Tools\\node.exe'],
    ['C:\\Program Files\\nodejs\\node.exe'],
    ['C:\\Users\\ada\\AppData\\Local\\Volta\\bin\\node.exe'],
    ['C:\\Users\\ada\\AppData\\Roaming\\nvm\\v22.20.0\\node.exe'],
  ])('is found on Windows at %s', (file) => {
    const env = { Path: 'C:\\Windows;C:\\Tools', APPDATA: 'C:\\Users\\ada\\AppData\\Roaming' };
    expect(choose([file], { platform: 'win32', home: 'C:\\Users\\ada', env }).path).toBe(file);
  });

  it('F133: is Electron itself, told to be a Node, if the user has none', () => {
    expect(choose([])).toEqual({ path: HELPER, variables: { ELECTRON_RUN_AS_NODE: '1' } });
  });
});

describe('the environment of a server, if Electron has to be its Node', () => {
  const node = choose([]);
  const spec = { args: ['server.js'], env: { KEY: 'value' } };

  it('tells Electron so', () => {
    const environment = environmentOf({ ...spec, command: HELPER }, { PATH: '/bin' }, node);
    expect(environment).toMatchObject({ KEY: 'value', ELECTRON_RUN_AS_NODE: '1' });
  });

  it('tells nothing to other programs, which may be desktop programs themselves', () => {
    const parent = { PATH: '/bin', ELECTRON_RUN_AS_NODE: '1' };
    expect(environmentOf({ ...spec, command: 'other' }, parent, node)).not.toHaveProperty('ELECTRON_RUN_AS_NODE');
  });
});
