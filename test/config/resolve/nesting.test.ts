import { mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ServerConfig } from '../../../src/config/resolve/config.js';
import { loadConfig } from '../../support/load-config.js';
import { folderWith } from '../files.js';

const INSTALLED = {
  'lib/trunkline/package.json': '{ "name": "trunkline" }',
  'lib/trunkline/dist/cli.js': '',
  'lib/other/package.json': '{ "name": "other" }',
  'lib/other/dist/cli.js': '',
  'other.yaml': 'servers: { x: { command: x } }',
  'home/.config/trunkline/trunkline.yaml': '',
};

/** Loads `conf/trunkline.yaml` with this entry, near an installed Trunkline with a link to it in `bin`. */
function entryOf(entry: object, { env = {}, files = {} }: { env?: Record<string, string>; files?: object } = {}) {
  const text = JSON.stringify({ servers: { self: entry, fine: { command: 'x' } } });
  const folder = folderWith({ ...INSTALLED, 'conf/trunkline.yaml': text, ...files });
  mkdirSync(join(folder, 'bin'));
  symlinkSync(join(folder, 'lib/trunkline/dist/cli.js'), join(folder, 'bin/tl'));
  symlinkSync(join(folder, 'conf'), join(folder, 'link'));
  const variables = { HOME: join(folder, 'home'), PATH: [join(folder, 'none'), join(folder, 'bin')].join(delimiter) };
  const options = { env: { ...variables, ...env }, nodePath: '/opt/node' };
  const [self, fine] = loadConfig(join(folder, 'conf/trunkline.yaml'), options).servers;
  expect(fine?.child).toBeDefined();
  return { folder, self: self as ServerConfig };
}

describe('a server that is Trunkline itself with the same configuration', () => {
  test.each([
    { args: ['replay', 'r.jsonl', '--as-server', 'files'] },
    { args: ['replay', '--as-server=files', 'r.jsonl'] },
  ])('is allowed if it replays a recording, which needs no configuration: $args', ({ args }) => {
    expect(entryOf({ command: 'trunkline', args }).self.problem).toBeUndefined();
  });

  test.each([
    ['by its name', { command: 'trunkline' }],
    ['by its name and the file', { command: 'trunkline', args: ['serve', '--config', 'trunkline.yaml'] }],
    ['by a link in PATH', { command: 'tl', args: ['-c', './trunkline.yaml'] }],
    ['by a path', { command: '../bin/tl', args: ['--config=../conf/trunkline.yaml'] }],
    ['through a link to the folder of the file', { command: 'trunkline', args: ['-c../link/trunkline.yaml'] }],
    ['as a script of Node', { command: 'node', args: ['--no-warnings', '../lib/trunkline/dist/cli.js'] }],
    ['as a script after an import', { command: '/usr/bin/node', args: ['--import', './x.mjs', '../bin/tl'] }],
    ['with npx', { command: 'npx', args: ['-y', 'trunkline'] }],
    ['with npx and a version', { command: 'npx', args: ['--yes', 'trunkline@latest', '--http', '7411'] }],
    ['with npm exec', { command: 'npm', args: ['exec', '-y', '-p', 'trunkline', 'trunkline'] }],
    ['with a package manager', { command: 'pnpm', args: ['dlx', 'trunkline'] }],
    ['as a package', { package: 'trunkline' }],
    [
      'by a variable of the entry',
      { command: 'trunkline', cwd: '..', env: { TRUNKLINE_CONFIG: 'conf/trunkline.yaml' } },
    ],
  ])('is refused: %s', (_, entry) => {
    const { self } = entryOf(entry);
    expect(self.child).toBeUndefined();
    expect(self.problem).toMatchObject({
      message: expect.stringContaining(
        'servers.self: this server is Trunkline itself with the same configuration file',
      ),
      hint: 'remove this server, or give it another configuration file with `--config`',
      line: 1,
    });
  });

  test('is refused when a file between them leads back to the first', () => {
    const { folder, self } = entryOf({ command: 'trunkline', args: ['-c', '../other.yaml'] });
    expect(self.child?.env.TRUNKLINE_PARENTS).toBe(join(folder, 'conf/trunkline.yaml'));
    const back = entryOf(
      { command: 'trunkline', args: ['-c', join(folder, 'other.yaml')] },
      {
        env: { TRUNKLINE_PARENTS: ['/first.yaml', join(folder, 'other.yaml')].join(delimiter) },
      },
    );
    expect(back.self.problem?.message).toContain('with a configuration file that has started this one');
  });
});

describe('a server that may run', () => {
  test.each([
    ['Trunkline with another file', { command: 'trunkline', args: ['--config', '../other.yaml'] }],
    ['Trunkline that finds another file', { command: 'npx', args: ['trunkline'], cwd: '..' }],
    ['Trunkline without any file', { command: 'trunkline', cwd: '..', env: { HOME: '/nobody' } }],
  ])('is %s, which learns the files above it', (_, entry) => {
    const { folder, self } = entryOf(entry);
    expect(self.problem).toBeUndefined();
    expect(self.child?.env).toMatchObject({ TRUNKLINE_PARENTS: join(folder, 'conf/trunkline.yaml') });
  });

  test.each([
    ['another program with the same file name', { command: 'node', args: ['../lib/other/dist/cli.js'] }],
    ['a program that gets Trunkline as an argument', { command: 'node', args: ['x.mjs', '../bin/tl'] }],
    ['another package', { command: 'npx', args: ['-y', 'trunkline-tools'] }],
    ['a program that is nowhere', { command: 'no-such-program' }],
  ])('is %s, and gets no more variables', (_, entry) => {
    const { self } = entryOf(entry);
    expect(self.child?.env).toEqual({});
  });
});
