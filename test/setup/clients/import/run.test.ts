import { describe, expect, it, test } from 'vitest';
import { programName } from '../../../../src/config/resolve/command-words.js';
import { expand } from '../../../../src/config/resolve/references.js';
import { withoutShell } from '../../../../src/setup/clients/files/own-entry.js';
import { CannotImport, packageOf, translate, variableName } from '../../../../src/setup/clients/import/run.js';

const $ = '$';
const LINUX = { platform: 'linux', home: '/home/ada', project: '/code/app' } as const;

describe('the variables of a client become ours', () => {
  test.each([
    ['none', `${$}{HOME} %X%`, `$${$}{HOME} %X%`],
    ['claude-code', `a${$}{X}-${$}{Y:-z} ${$}{1} ${$}{`, `a${$}{X}-${$}{Y:-z} $${$}{1} $${$}{`],
    ['vscode', `${$}{env:X}/${$}{userHome}${$}{/}a`, `${$}{X}//home/ada/a`],
    ['vscode', `${$}{input:api-key} ${$}{workspaceFolder}`, `${$}{API_KEY} /code/app`],
    ['cursor', `${$}{workspaceFolderBasename}${$}{pathSeparator}`, 'app/'],
    ['gemini', `${$}X ${$}{Y:-z} ${$}5 %Z%`, `${$}{X} ${$}{Y:-z} ${$}5 %Z%`],
  ] as const)('of %s: %s', (notation, text, ours) => {
    expect(translate(text, notation, LINUX)).toBe(ours);
  });

  it('also those of Windows in Gemini CLI', () => {
    expect(translate('%X%', 'gemini', { ...LINUX, platform: 'win32' })).toBe(`${$}{X}`);
  });

  test.each([
    ['claude-code', `${$}{X:-{a}`, `the default of ${$}{X} contains a brace`],
    ['vscode', `${$}{command:pick}`, `it uses ${$}{command:pick}, which only its client can resolve`],
    ['cursor', `${$}{a b}`, 'it uses a variable that only its client can resolve'],
  ] as const)('or are refused: %s %s', (notation, text, message) => {
    expect(() => translate(text, notation, LINUX)).toThrow(new CannotImport(message));
  });

  it('but not the folder of the editor, where none is open', () => {
    const nowhere = { ...LINUX, project: undefined };
    expect(() => translate(`${$}{workspaceFolder}`, 'vscode', nowhere)).toThrow(
      'the folder that is open in the editor',
    );
  });

  it('so that a literal text is what it was', () => {
    for (const text of [`${$}{HOME}`, `$${$}{A}`, '$$', '${', 'plain']) {
      expect(expand(translate(text, 'none', LINUX), {}, () => 'a secret')).toBe(text);
    }
  });
});

test('a name of a variable is made of any text', () => {
  expect(['api-key', '--token', '7 up', 'ä'].map(variableName)).toEqual(['API_KEY', 'TOKEN', 'VALUE_7_UP', 'VALUE_']);
});

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
