import { posix as posixPath, win32 } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type ChooseNodeOptions,
  childEnvironment,
  chooseNode,
  environmentOf,
  networkVariables,
  npmEnvironment,
  spellingsOf,
} from '../../src/servers/process/environment.js';

const nodeDirectory = '/opt/node/bin';
const posix = { nodeDirectory, platform: 'linux', declared: {}, commandLine: ['node', 'server.js'] };

describe('childEnvironment', () => {
  it('contains what a program needs to run, and nothing else', () => {
    const harmless = { HOME: '/home/me', LANG: 'C.UTF-8', LC_TIME: 'de_DE', TMPDIR: '/tmp', TZ: 'UTC', USER: 'me' };
    const secret = { AWS_SECRET_ACCESS_KEY: 'hunter2', NODE_OPTIONS: '--inspect', LD_PRELOAD: '/evil.so' };
    const environment = childEnvironment({ ...posix, parent: { ...harmless, ...secret, PATH: '/bin' } });
    expect(environment).toEqual({ ...harmless, PATH: '/opt/node/bin:/bin' });
  });

  it('passes the marks of the Trunklines above on, so that these end what its servers leave behind', () => {
    const marks = { TRUNKLINE_FAMILY_a1: '1', TRUNKLINE_FAMILY_b2: '1' };
    const environment = childEnvironment({ ...posix, parent: { ...marks, TRUNKLINE_LOG: 'debug', PATH: '/bin' } });
    expect(environment).toEqual({ ...marks, PATH: '/opt/node/bin:/bin' });
  });

  it('skips functions that a shell exported', () => {
    const environment = childEnvironment({ ...posix, parent: { TERM: '() { :; }; evil', PATH: '/bin' } });
    expect(environment).not.toHaveProperty('TERM');
  });

  it("adds what the entry declares, which takes precedence, with Trunkline's Node first in PATH", () => {
    const declared = { API_KEY: 'k', HOME: '/elsewhere', PATH: '/own' };
    const environment = childEnvironment({ ...posix, parent: { HOME: '/home/me', PATH: '/bin' }, declared });
    expect(environment).toEqual({ API_KEY: 'k', HOME: '/elsewhere', PATH: '/opt/node/bin:/own' });
  });

  it('has a PATH even if Trunkline has none', () => {
    expect(childEnvironment({ ...posix, parent: {} })).toEqual({ PATH: nodeDirectory });
  });

  it('compares names without case on Windows', () => {
    const environment = childEnvironment({
      parent: { Path: 'C:\\Windows', SystemRoot: 'C:\\Windows', PathExt: '.EXE', ComSpec: 'C:\\cmd.exe', HOME: 'x' },
      declared: { path: 'D:\\own' },
      commandLine: ['node'],
      nodeDirectory: 'C:\\node',
      platform: 'win32',
    });
    expect(environment).toEqual({
      ...{ PATH: 'C:\\node;D:\\own', SYSTEMROOT: 'C:\\Windows', PATHEXT: '.EXE', COMSPEC: 'C:\\cmd.exe' },
    });
  });

  it.each([
    ...['NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'REQUESTS_CA_BUNDLE'],
    ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'NODE_USE_ENV_PROXY'],
    ...['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'],
  ])('passes %s on to every server', (name) => {
    expect(childEnvironment({ ...posix, parent: { [name]: 'x' } })).toEqual({ [name]: 'x', PATH: nodeDirectory });
    const onWindows = childEnvironment({ ...posix, parent: { [name]: 'x' }, platform: 'win32' });
    expect(onWindows).toEqual({ [name.toUpperCase()]: 'x', PATH: nodeDirectory });
  });

  it.each([
    ['npx', '-y', 'server'],
    ['/usr/local/bin/npm', 'exec', 'server'],
    ['C:\\Program Files\\nodejs\\npx.cmd', '-y', 'server'],
    ['cmd', '/c', 'npx', '-y', 'server'],
    ['sh', '-c', 'cd x && npx -y server'],
    ['pnpm', 'dlx', 'server'],
    ['yarn', 'dlx', 'server'],
    ['bunx', 'server'],
  ])('passes the settings of npm on to `%s %s %s`, but no credentials', (...commandLine) => {
    const settings = { npm_config_registry: 'r', NPM_CONFIG_CAFILE: 'c', 'npm_config_@acme:registry': 'a' };
    const credentials = {
      'npm_config_//registry.example/:_authToken': 't',
      NPM_CONFIG__AUTHTOKEN: 't',
      npm_config__auth: 'a',
      'npm_config_//registry.example/:_password': 'p',
      npm_config_otp: '123456',
      npm_config_key: 'k',
    };
    const task = { npm_config_package: 'trunkline', npm_config_call: 'trunkline' };
    const parent = { ...settings, ...credentials, ...task };
    expect(childEnvironment({ ...posix, parent, commandLine })).toEqual({
      ...settings,
      npm_config_fetch_retry_mintimeout: '500',
      npm_config_fetch_retry_maxtimeout: '2000',
      PATH: nodeDirectory,
    });
  });

  it('leaves it to the user how long npm waits before it tries again', () => {
    const parent = { NPM_CONFIG_FETCH_RETRY_MINTIMEOUT: '1' };
    const declared = { npm_config_fetch_retry_maxtimeout: '2' };
    const environment = childEnvironment({ ...posix, parent, declared, commandLine: ['npx', 'server'] });
    expect(environment).toEqual({ ...parent, ...declared, PATH: nodeDirectory });
  });

  it.each([
    ['node', 'npm.js'],
    ['uvx', 'server'],
    ['docker', 'run', 'acme/npm-server'],
  ])('passes no setting of npm on to `%s %s`', (...commandLine) => {
    const parent = { npm_config_registry: 'r', NPM_CONFIG_CAFILE: 'c' };
    expect(childEnvironment({ ...posix, parent, commandLine })).toEqual({ PATH: nodeDirectory });
  });

  it('replaces a proxy by the declared one even if that is written in another case', () => {
    const parent = { https_proxy: 'old', HTTPS_PROXY: 'old', no_proxy: 'here' };
    const environment = childEnvironment({ ...posix, parent, declared: { HTTPS_PROXY: 'new' } });
    expect(environment).toEqual({ HTTPS_PROXY: 'new', no_proxy: 'here', PATH: nodeDirectory });
  });
});

describe('npmEnvironment', () => {
  it('is the environment of Trunkline with what the configuration declares for npm', () => {
    const parent = { HOME: '/home/me', NPM_TOKEN: 't', npm_config_registry: 'old' };
    expect(npmEnvironment(parent, { NPM_CONFIG_REGISTRY: 'new', NODE_EXTRA_CA_CERTS: '/ca.pem' })).toEqual({
      HOME: '/home/me',
      NPM_TOKEN: 't',
      NPM_CONFIG_REGISTRY: 'new',
      NODE_EXTRA_CA_CERTS: '/ca.pem',
    });
  });
});

describe('networkVariables', () => {
  it('are those that can hold the credentials of a proxy or a registry', () => {
    const wanted = { https_proxy: 'http://me:pw@proxy', npm_config__authToken: 't', NPM_CONFIG_REGISTRY: 'r' };
    expect(networkVariables({ ...wanted, HOME: '/home/me', XDG_SESSION_TYPE: 'wayland', NO_PROXY: undefined })).toEqual(
      wanted,
    );
  });
});

const HELPER = '/Applications/Claude.app/Contents/Frameworks/Claude Helper (Plugin).app/Contents/MacOS/Claude Helper';
const HOME = '/Users/ada';

/** In Electron on macOS, with these files. */
function choose(files: readonly string[], options: Partial<ChooseNodeOptions> = {}) {
  const { dirname } = options.platform === 'win32' ? win32 : posixPath;
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

describe('the names of a variable', () => {
  it('differ in case on Windows only', () => {
    const names = ['GITHUB_TOKEN', 'Github_Token', 'GITHUB_TOKENS'];
    expect(spellingsOf('Github_Token', names, 'win32')).toEqual(['GITHUB_TOKEN', 'Github_Token']);
    expect(spellingsOf('Github_Token', names, 'linux')).toEqual(['Github_Token']);
  });
});
