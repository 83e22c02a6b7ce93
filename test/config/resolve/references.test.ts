import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { secretSourcesOf } from '../../../src/app/active-config.js';
import { checkFile } from '../../../src/config/file/check-file.js';
import { ServerFault } from '../../../src/config/file/config-error.js';
import { variantOf } from '../../../src/config/resolve/config.js';
import { expand as expandWith, mistakeInEnv, type Variables } from '../../../src/config/resolve/references.js';
import { resolveConfig } from '../../../src/config/resolve/resolve-config.js';
import { folderWith } from '../files.js';

const expand = (text: string, variables: Variables) => expandWith(text, variables, (secret) => `<${secret}>`);

const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]*$/);
const textWithoutReference = fc.string().filter((text) => !text.includes('${'));

describe('expand', () => {
  test.each([
    { text: 'plain $HOME {x} $', result: 'plain $HOME {x} $' },
    { text: `\${A}`, result: 'one' },
    { text: `<\${A}\${A}-\${B}>`, result: '<oneone-two>' },
    { text: `\${NO:-other}`, result: 'other' },
    { text: `\${NO:-}`, result: '' },
    { text: `\${NO:-a:-b}`, result: 'a:-b' },
    { text: `\${A:-other}`, result: 'one' },
    { text: `\${EMPTY}`, result: '' },
    { text: `\${EMPTY:-other}`, result: 'other' },
    { text: `\${secret:KEY_1}!`, result: '<KEY_1>!' },
    { text: `\${secret:-}`, result: '' },
    { text: `$\${secret:KEY}`, result: `\${secret:KEY}` },
    { text: `$\${A}`, result: `\${A}` },
    { text: `$\${`, result: `\${` },
  ])('turns $text into $result', ({ text, result }) => {
    expect(expand(text, { A: 'one', B: 'two', EMPTY: '' })).toBe(result);
  });

  test('a variable that is not set and has no default is named, with a way to give it one', () => {
    expect(() => expand(`x \${TOKEN}`, {})).toThrow(
      expect.objectContaining({
        message: 'the environment variable TOKEN is not set',
        hint: expect.stringContaining(`\${TOKEN:-default}`),
      }),
    );
  });

  test.each([
    `\${`,
    `\${}`,
    `\${A`,
    `\${1}`,
    `\${A-b}`,
    `\${A:b}`,
    `\${secret:}`,
    `\${secret:a-b}`,
    `\${A:-\${B}}`,
    `\${ A }`,
  ])('refuses %s, as it starts no variable', (text) => {
    expect(() => expand(text, { A: 'one', B: 'two' })).toThrow(ServerFault);
  });

  test('what every object inherits is not a variable', () => {
    expect(() => expand(`\${constructor}`, {})).toThrow('the environment variable constructor is not set');
    expect(expand(`\${toString:-none}`, {})).toBe('none');
  });

  test('a text without a reference stays as it is', () => {
    fc.assert(fc.property(textWithoutReference, (text) => expand(text, {}) === text));
  });

  test('any text survives once its references are escaped', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('$', '{', '}', '${', 'A', ':-', 'x')), (parts) => {
        const text = parts.join('');
        expect(
          expand(
            text.replaceAll('${', () => '$${'),
            { A: 'one' },
          ),
        ).toBe(text);
      }),
    );
  });

  test('a value is put in as it is, whatever it contains', () => {
    fc.assert(
      fc.property(name, fc.string(), textWithoutReference, (variable, value, after) => {
        expect(expand(`<\${${variable}}${after}`, { [variable]: value })).toBe(`<${value}${after}`);
      }),
    );
  });
});

const TEXT = `defaults: { envFile: shared.env }
servers:
  one: { command: node, args: ["\${ARG}"], env: { A: "\${TOKEN}", B: "\${OTHER}" }, envFile: ./own.env }
  two: { command: node, env: { A: "\${TOKEN}" } }
  three: { command: node }
`;
const ENV = { OTHER: 'other of the environment', TOKEN: 'token of the environment' };

/** Loads the text with these files beside it, readable by their owner alone unless the test says otherwise. */
function load(files: Readonly<Record<string, string>>, { text = TEXT, mode = 0o600 } = {}) {
  const folder = folderWith({ 'trunkline.yaml': text, ...files });
  for (const name of Object.keys(files)) chmodSync(join(folder, name), mode);
  const file = join(folder, 'trunkline.yaml');
  const options = { env: { HOME: folder, ...ENV }, nodePath: '/opt/node', ownFolder: folder };
  const config = resolveConfig(file, checkFile(text, file), options);
  const [one, two, three] = config.servers;
  return { folder, config, one, two, three };
}

describe('an environment file', () => {
  it('may begin with a byte order mark', () => {
    expect(load({ 'shared.env': '\ufeffTOKEN=of all\r\nOTHER=b\r\n' }).two?.child?.env).toEqual({ A: 'of all' });
  });

  it('gives values to the references of its servers, before the environment', () => {
    const { config, one, two } = load({
      'own.env': 'TOKEN="of one"\nexport ARG=x # why\n',
      'shared.env': 'TOKEN=of all\n',
    });
    expect(one?.child).toMatchObject({ args: ['x'], env: { A: 'of one', B: 'other of the environment' } });
    expect(two?.child?.env).toEqual({ A: 'of all' });
    expect(Object.keys(one?.child?.env ?? {})).toEqual(['A', 'B']);
    expect(config.warnings).toEqual([]);
  });

  it('may be named from the home folder, and through a configuration in JSON', () => {
    const text = JSON.stringify({
      servers: { one: { command: 'node', envFile: '~/own.env', env: { A: '$' + '{X}' } } },
    });
    expect(load({ 'own.env': "X='1 2'" }, { text }).one?.child?.env).toEqual({ A: '1 2' });
  });

  it('makes a server the same for all clients, whatever their values are', () => {
    const { one, two } = load({ 'own.env': 'TOKEN=a\nARG=b\n', 'shared.env': 'TOKEN=d\n' });
    expect(one?.variables).toEqual(['OTHER']);
    const client = { environment: { TOKEN: 'of the client' }, folder: '/' };
    expect(two && variantOf(two, client)).toEqual(two && variantOf(two));
  });

  it('has secrets that are removed from logs, also in arguments', () => {
    const text = 'servers: { one: { command: node, args: ["$' + '{API_KEY}"], envFile: own.env } }';
    const { one } = load({ 'own.env': 'API_KEY=canary value' }, { text });
    expect(one && secretSourcesOf(one)).toContainEqual({ env: { API_KEY: 'canary value' }, args: [] });
  });

  it.each([
    ['is missing', {}, 'the environment file ./own.env does not exist', 0o600],
    [
      'is writable for others',
      { 'own.env': 'A=1' },
      'the environment file ./own.env cannot be used: other users can change it',
      0o620,
    ],
    [
      'has a mistake',
      { 'own.env': 'A=1\n\nnonsense canary\n' },
      'the environment file ./own.env has a mistake in line 3: expected NAME=VALUE',
      0o600,
    ],
  ])('F113: that %s stops only the servers that need it', (_, files, message, mode) => {
    const text = TEXT.replace('envFile: shared.env', '');
    const { one, two, three } = load(files, { text, mode });
    expect(one?.problem).toMatchObject({ message: `servers.one.envFile: ${message}`, line: 3, column: 91 });
    expect(one?.child).toBeUndefined();
    expect(two?.child?.env).toEqual({ A: 'token of the environment' });
    expect(three?.child).toBeDefined();
  });

  it('of `defaults` is reported there, and only for servers with references', () => {
    const { two, three } = load({ 'own.env': 'TOKEN=a\nARG=b\n' });
    expect(two?.problem?.message).toBe('defaults.envFile: the environment file shared.env does not exist');
    expect(three?.problem).toBeUndefined();
  });

  it('that others can read works, with a warning', () => {
    const { config, folder, two } = load({ 'own.env': 'TOKEN=a\nARG=b\n', 'shared.env': 'TOKEN=d\n' }, { mode: 0o644 });
    expect(two?.child?.env).toEqual({ A: 'd' });
    const file = join(folder, 'shared.env');
    expect(config.warnings).toContain(
      `${file}: other users can read this environment file; make it yours alone: chmod 600 ${file}`,
    );
  });
});

describe('the lines of an environment file', () => {
  test.each([
    ['', undefined],
    ['# a comment\n\n  A = 1 \nexport B=2\r\nC=\n', undefined],
    ['A="1\n2\n"\nB=3', undefined],
    ['A', 1],
    ['A=1\n=2', 2],
    ['A=1\n2B=2', 2],
    ['A=1\nA-B=2', 2],
    [`A='1\n2\nB`, 1],
    ['A="1\n2"\nB', 3],
  ])('%j has its first mistake in line %s', (text, line) => {
    expect(mistakeInEnv(text)?.line).toBe(line);
  });

  it('are the variables that Node finds, when there is no mistake', () => {
    const value = fc.constantFrom('', 'x', '"a b"', "'x=y'", '`c`', 'a # b', '"two\nlines"', "it's");
    const line = fc.oneof(
      fc.tuple(fc.constantFrom('A', 'B_2', 'export C', ' D '), value).map(([name, each]) => `${name}=${each}`),
      fc.constantFrom('', '# comment', 'broken', '"', '=x'),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 6 }), (lines) => {
        fc.pre(mistakeInEnv(lines.join('\n')) === undefined);
        const names = lines.flatMap((each) => /^\s*(?:export )?(\w+)\s*=/.exec(each)?.[1] ?? []);
        expect(Object.keys(parseEnv(lines.join('\n'))).sort()).toEqual([...new Set(names)].sort());
      }),
    );
  });
});
