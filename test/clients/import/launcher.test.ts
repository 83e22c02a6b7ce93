import { expect, test } from 'vitest';
import { packageOf, programName, withoutShell } from '../../../src/clients/import/launcher.js';

const words = (line: string) => {
  const [command = '', ...args] = line.split(' ');
  return packageOf(command, args, {});
};

test.each([
  ['npx -y @a/b', { package: '@a/b' }, []],
  ['npx @a/b@1.2.3 --x y', { package: '@a/b', version: '1.2.3' }, ['--x', 'y']],
  ['npx --yes b@latest', { package: 'b' }, []],
  ['npx -y b@^1.2', { package: 'b' }, []],
  ['npx -y b@next', { package: 'b', version: 'next' }, []],
  ['C:\\nodejs\\npx.cmd -y b', { package: 'b' }, []],
])('%s runs as a package', (line, program, args) => {
  expect(words(line)).toEqual({ program, args });
});

test.each([
  'npx -p a b',
  'npx --package=a b',
  'npx -y ./local',
  'npx -y github:a/b',
  'npx',
  'uvx a',
  'node a',
  'bunx a',
])('%s stays a command', (line) => {
  expect(words(line)).toBeUndefined();
});

test('a package of another registry stays a command', () => {
  expect(packageOf('npx', ['-y', 'a'], { npm_config_registry: 'x' })).toBeUndefined();
});

test('the shell of Windows goes', () => {
  expect(withoutShell('C:\\Windows\\cmd.exe', ['/C', 'npx', '-y', 'a'])).toEqual({ command: 'npx', args: ['-y', 'a'] });
  expect(withoutShell('cmd', ['/k', 'x'])).toEqual({ command: 'cmd', args: ['/k', 'x'] });
  expect(programName('/opt/Foo.EXE')).toBe('foo');
});
