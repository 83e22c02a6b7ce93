import { describe, expect, it } from 'vitest';
import { bubblewrapCommand } from '../../../src/servers/sandbox/bubblewrap.js';
import { type Files, policyOf } from '../../../src/servers/sandbox/policy.js';
import type { SandboxSpec } from '../../../src/spec/server-spec.js';

const NOTHING: SandboxSpec = { server: 'a', read: [], write: [], network: [], unixSockets: false, opensFolder: false };

/** A machine with these files. A text that begins with `->` is a link, `/` at the end of a name makes a folder. */
function filesOf(tree: Readonly<Record<string, string>>): Files {
  const links = Object.entries(tree).filter(([, target]) => target.startsWith('->'));
  const real = (path: string): string | undefined => {
    const [link, target = ''] = links.find(([name]) => path === name || path.startsWith(`${name}/`)) ?? [];
    if (link !== undefined) return real(target.slice(2) + path.slice(link.length));
    return tree[path] !== undefined || isFolder(path) ? path : undefined;
  };
  const isFolder = (path: string) => Object.keys(tree).some((name) => name.startsWith(path === '/' ? '/' : `${path}/`));
  return {
    linkAt: (path) => (tree[path]?.startsWith('->') ? tree[path].slice(2) : undefined),
    kindOf: (path) => {
      const found = real(path);
      if (found === undefined) return undefined;
      return isFolder(found) ? 'folder' : 'file';
    },
    firstLine: (path) => tree[path] ?? '',
  };
}

const HOME = '/home/ann';
const TREE = {
  '/usr/bin/node': '',
  '/usr/bin/python3': '',
  '/usr/bin/uv': '',
  [`${HOME}/.ssh/id`]: '',
  [`${HOME}/.config/trunkline/trunkline.yaml`]: '',
  [`${HOME}/.local/share/trunkline/token`]: '',
  [`${HOME}/.local/share/trunkline/store/files@1-ab/node_modules/files/index.js`]: '',
  [`${HOME}/.nvm/versions/node/v22/bin/node`]: '',
  [`${HOME}/.nvm/versions/node/v22/lib/x`]: '',
  [`${HOME}/.local/bin/tool`]: `->${HOME}/.local/share/uv/tools/tool/bin/tool`,
  [`${HOME}/.local/share/uv/tools/tool/bin/tool`]: `#!${HOME}/.local/share/uv/tools/tool/bin/python`,
  [`${HOME}/.local/share/uv/tools/tool/bin/python`]: `->${HOME}/.local/share/uv/python/cpython/bin/python3`,
  [`${HOME}/.local/share/uv/tools/tool/pyvenv.cfg`]: '',
  [`${HOME}/.local/share/uv/python/cpython/bin/python3`]: '',
  [`${HOME}/.local/share/uv/python/cpython/lib/x`]: '',
  [`${HOME}/work/mono/node_modules/dep/index.js`]: '',
  [`${HOME}/work/mono/packages/mcp/package.json`]: '',
  [`${HOME}/work/mono/packages/mcp/dist/server.js`]: '',
  [`${HOME}/alone.py`]: '',
  [`${HOME}/work/plain/server.py`]: '',
  [`${HOME}/work/plain/helper.py`]: '',
  [`${HOME}/Documents/a.txt`]: '',
  [`${HOME}/.ssh/run.js`]: '',
  [`${HOME}/mine/link`]: `->${HOME}/.ssh`,
  [`${HOME}/mine/tool`]: `#!${HOME}/.ssh/id`,
  [`${HOME}/outer`]: `->${HOME}/mine/link`,
  [`${HOME}/work/trap/node_modules`]: `->${HOME}/.ssh`,
  [`${HOME}/work/trap/home`]: `->${HOME}`,
  [`${HOME}/work/trap/mcp/package.json`]: '',
  [`${HOME}/work/trap/mcp/server.js`]: '',
  [`${HOME}/work/line/tool`]: `#!/usr/bin/env -S -u ${HOME}/.ssh/id node`,
  [`${HOME}/work/masked/tool`]: '#!/usr/bin/env -S -u ./masked/python node',
  [`${HOME}/work/masked/python`]: `->${HOME}/.ssh/id`,
  [`${HOME}/work/plain/tool`]: '#!/bin/sh',
  [`${HOME}/work/plain/more.py`]: `->${HOME}/.ssh/id`,
  [`${HOME}/work/plain/more`]: `->${HOME}/.ssh`,
  '/srv/ca.pem': '',
};
const PLACES = {
  home: HOME,
  ownHome: '/home/ann/.local/share/trunkline/sandboxes/a-0',
  node: '/usr/bin/node',
  certificates: ['/srv/ca.pem'],
  closed: [`${HOME}/.config/trunkline/trunkline.yaml`, `${HOME}/.config/trunkline`, `${HOME}/.local/share/trunkline`],
};

function policy(
  program: { command: string; args?: string[]; cwd?: string; env?: Record<string, string> },
  settings: Partial<SandboxSpec> = {},
) {
  const env = { PATH: `/usr/bin:${HOME}/.local/bin`, ...program.env };
  return policyOf({ args: [], cwd: HOME, ...program, env }, { ...NOTHING, ...settings }, PLACES, filesOf(TREE));
}

const opened = (...args: Parameters<typeof policy>) =>
  policy(...args).openings.map(({ access, path }) => [access, path]);

describe('the openings of a confined server', () => {
  it('is nothing but the system for a program of the system', () => {
    expect(opened({ command: 'node' })).toEqual([]);
  });

  it('is the packages of its folder in the store, and nothing else of the data folder', () => {
    const program = `${HOME}/.local/share/trunkline/store/files@1-ab/node_modules/files/index.js`;
    expect(opened({ command: 'node', args: [program] })).toEqual([
      ['read', `${HOME}/.local/share/trunkline/store/files@1-ab/node_modules`],
    ]);
  });

  it('is what an interpreter in the home folder is installed with', () => {
    expect(opened({ command: `${HOME}/.nvm/versions/node/v22/bin/node` })).toEqual([
      ['read', `${HOME}/.nvm/versions/node/v22`],
    ]);
  });

  it('follows links and first lines, to the environment of Python and its interpreter', () => {
    const found = policy({ command: 'tool' });
    expect(found.openings.map(({ path }) => path).sort()).toEqual([
      `${HOME}/.local/share/uv/python/cpython`,
      `${HOME}/.local/share/uv/tools/tool`,
    ]);
    // The link itself is in a closed folder.
    expect(found.command).toBe(`${HOME}/.local/share/uv/tools/tool/bin/tool`);
  });

  it('is the project of a script, and the packages of a workspace above it', () => {
    expect(opened({ command: 'node', args: [`${HOME}/work/mono/packages/mcp/dist/server.js`] })).toEqual([
      ['read', `${HOME}/work/mono/node_modules`],
      ['read', `${HOME}/work/mono/packages/mcp`],
    ]);
  });

  it('is the folder of a script without a project, and the script alone if that is the home folder', () => {
    expect(opened({ command: 'python3', args: [`${HOME}/work/plain/server.py`] })).toEqual([
      ['read', `${HOME}/work/plain`],
    ]);
    expect(opened({ command: 'python3', args: ['alone.py'] })).toEqual([['read', `${HOME}/alone.py`]]);
  });

  it('is a project that an option of uv names', () => {
    const args = ['--directory', `${HOME}/work/plain`, 'run', 'server.py'];
    expect(opened({ command: 'uv', args })).toEqual([['read', `${HOME}/work/plain`]]);
  });

  it('is the working folder if the entry has chosen it, but never the home folder or one above', () => {
    const command = 'node';
    expect(opened({ command, cwd: `${HOME}/work` })).toEqual([]);
    expect(opened({ command, cwd: `${HOME}/work` }, { opensFolder: true })).toEqual([['read', `${HOME}/work`]]);
    for (const cwd of [HOME, '/home', '/']) expect(opened({ command, cwd }, { opensFolder: true })).toEqual([]);
  });

  it('is never a folder or file of an argument or a variable by itself; these are named', () => {
    const { openings, proposed } = policy({
      command: 'node',
      args: ['~/Documents', `--config=${HOME}/.ssh/id`, '/usr/share', '/no/such/file'],
      env: { DATA: `${HOME}/work/plain` },
    });
    expect(openings).toEqual([]);
    expect(proposed).toEqual([`${HOME}/Documents`, `${HOME}/.ssh/id`, `${HOME}/work/plain`]);
  });

  it('is what the entry names, without what is open with the same rights above it', () => {
    const settings = { read: [`${HOME}/Documents`, `${HOME}/work/plain`], write: [`${HOME}/work`] };
    expect(opened({ command: 'node' }, settings)).toEqual([
      ['write', `${HOME}/work`],
      ['read', `${HOME}/Documents`],
    ]);
    expect(opened({ command: 'node' }, { read: [`${HOME}/work`], write: [`${HOME}/work/plain`] })).toEqual([
      ['read', `${HOME}/work`],
      ['write', `${HOME}/work/plain`],
    ]);
  });

  it('are the files of certificates that the environment of Trunkline names, and no other value of such a variable', () => {
    const variables = {
      NODE_EXTRA_CA_CERTS: '/srv/ca.pem',
      SSL_CERT_DIR: `${HOME}/.ssh`,
      SSL_CERT_FILE: `${HOME}/.ssh/id`,
    };
    const { openings, proposed } = policy({ command: 'node', env: variables });
    expect(openings.map(({ path }) => path)).toEqual(['/srv/ca.pem']);
    expect(proposed).toEqual([`${HOME}/.ssh`, `${HOME}/.ssh/id`]);
  });

  it.each([
    ['a link in place of the packages of a workspace', 'node', ['trap/mcp/server.js'], 'trap/mcp', 'trap/node_modules'],
    ['a first line that names no interpreter', './line/tool', [], 'line', '.ssh/id'],
    ['a first line with the name of one that is a link', './masked/tool', [], 'masked', 'masked/python'],
    ['a link in place of a project', 'uv', ['--directory', 'trap/home'], undefined, undefined],
    ['a link beside the script', 'python3', ['plain/server.py', 'plain/more.py'], 'plain', 'plain/more.py'],
    ['a link that the program gets', './plain/tool', ['plain/more.py'], 'plain', 'plain/more.py'],
    ['a link to a second project', 'uv', ['--project', 'plain/more', 'run', 'plain/server.py'], 'plain', 'plain/more'],
  ])('does not grow by what the author of the program has made: %s', (_, command, args, project, closed) => {
    const cwd = `${HOME}/work`;
    const { openings, distrusted } = policy({ command, args, cwd });
    expect(openings.map(({ path }) => path)).toEqual(project === undefined ? [] : [`${cwd}/${project}`]);
    expect(distrusted).toEqual(closed === undefined ? [] : [expect.stringContaining(`/${closed}`)]);
  });

  describe('that may write a folder', () => {
    const write = [`${HOME}/mine`];
    const keys = `${HOME}/.ssh`;

    it.each([
      ['its working folder', { command: 'node', cwd: `${HOME}/mine/link` }, { opensFolder: true }],
      ['a folder that `read` names', { command: 'node' }, { read: [`${HOME}/mine/link`] }],
      ['a folder that `write` names, too', { command: 'node' }, { write: [...write, `${HOME}/mine/link`] }],
      ['its program', { command: `${HOME}/mine/link/id` }, {}],
      ['a script of its arguments', { command: 'node', args: [`${HOME}/mine/link/run.js`] }, {}],
      ['the end of a chain of links', { command: 'node' }, { read: [`${HOME}/outer`] }],
    ])('do not follow a link that it has put in place of %s', (_, program, settings) => {
      const { openings, distrusted } = policy(program, { write, ...settings });
      expect(openings.map(({ path }) => path)).toEqual(write);
      expect(distrusted[0]).toMatch(/^\/home\/ann\/mine\/link is a link to \/home\/ann\/\.ssh, which stays closed/);
      expect(openings.some(({ path }) => path.startsWith(keys))).toBe(false);
    });

    it('do not include the interpreter that it has written into its program', () => {
      const { openings, distrusted } = policy({ command: `${HOME}/mine/tool` }, { write });
      expect(openings.map(({ path }) => path)).toEqual(write);
      expect(distrusted).toEqual([expect.stringContaining(`${HOME}/mine/tool names ${keys}/id in its first line`)]);
    });

    it('do not include a project above, although it has removed that of its program', () => {
      const program = { command: 'node', args: [`${HOME}/work/mono/packages/mcp/dist/server.js`] };
      expect(opened(program, { write: [`${HOME}/work/mono/packages/mcp/dist`] })).toEqual([
        ['read', `${HOME}/work/mono/node_modules`],
        ['write', `${HOME}/work/mono/packages/mcp/dist`],
      ]);
    });
  });

  it('does not include the files of Trunkline in a folder that is opened, nor can such a folder be written', () => {
    expect(policy({ command: 'node' }, { read: [HOME] }).closed).toEqual(PLACES.closed);
    expect(policy({ command: 'node' }, { read: [`${HOME}/.config/trunkline`] }).openings).toEqual([]);
    expect(policy({ command: 'node' }, { write: [`${HOME}/.config`] }).fault).toContain('files of Trunkline');
  });

  it('is no name of the network that the entry does not list, also for a program that downloads a package', () => {
    const env = { npm_config_registry: 'https://packages.example/npm/' };
    expect(policy({ command: 'npx', env }).network).toEqual([]);
    expect(policy({ command: 'npx', env }, { network: ['packages.example'] }).network).toEqual([
      { name: 'packages.example', because: '`network` of its entry' },
    ]);
  });
});

describe('the arguments of bubblewrap', () => {
  const commandFor = (settings: Partial<SandboxSpec>) =>
    bubblewrapCommand(
      {
        policy: policy({ command: 'node' }, settings),
        ...{ cwd: HOME, filterDescriptor: 3, argumentsDescriptor: 4, words: ['node', 'x.js'] },
      },
      {
        system: { '/usr': true, '/bin': 'usr/bin' },
        isFolder: (path) => !path.endsWith('.yaml'),
        hidden: ['/proc/keys'],
      },
    );
  const confined = (settings: Partial<SandboxSpec>) => commandFor(settings).input.split('\0').slice(0, -1);
  /** Position of a mount at a path, by its last argument. */
  const at = (args: readonly string[], path: string) => args.indexOf(path, args.indexOf('/dev/shm'));

  it('mount the own home folder in place of the real one, and what is opened in it after that', () => {
    const args = confined({ write: [`${HOME}/Documents`] });
    expect(args.slice(at(args, PLACES.ownHome) - 1, at(args, PLACES.ownHome) + 2)).toEqual([
      '--bind',
      PLACES.ownHome,
      HOME,
    ]);
    expect(at(args, `${HOME}/Documents`)).toBeGreaterThan(at(args, HOME));
  });

  it('empty the files of Trunkline in a home folder that is opened, and move the own home folder', () => {
    const args = confined({ read: [HOME] });
    const [config = '', folder = '', data = ''] = PLACES.closed;
    expect(args.slice(at(args, config) - 2, at(args, config) + 1)).toEqual(['--ro-bind', '/dev/null', config]);
    for (const closed of [folder, data]) {
      expect(args[at(args, closed) - 1]).toBe('--tmpfs');
      expect(at(args, closed)).toBeGreaterThan(at(args, HOME));
      expect(args.lastIndexOf(closed)).toBeGreaterThan(at(args, closed));
    }
    expect(args.slice(at(args, PLACES.ownHome) - 1, at(args, PLACES.ownHome) + 2)).toEqual([
      ...['--bind', PLACES.ownHome, PLACES.ownHome],
    ]);
  });

  it('drop all capabilities, and make the root, /proc and /dev read-only last', () => {
    const args = confined({});
    expect(args.join(' ')).toContain('--cap-drop ALL');
    expect(args.join(' ')).toMatch(/--remount-ro \/ --remount-ro \/proc --remount-ro \/dev --chdir /);
    expect(args.join(' ')).toContain('--symlink usr/bin /bin');
  });

  it('hide files of /proc that tell about the machine', () => {
    expect(confined({}).join(' ')).toContain('--proc /proc --ro-bind /dev/null /proc/keys');
  });

  it('are not on the command line, which the server can read as that of its first process', () => {
    expect(commandFor({ read: [`${HOME}/work`] }).args).toEqual(['--args', '4', '--', 'node', 'x.js']);
  });
});
