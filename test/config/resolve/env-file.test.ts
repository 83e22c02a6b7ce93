import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { secretSourcesOf } from '../../../src/app/active-config.js';
import { checkFile } from '../../../src/config/file/check-file.js';
import { variantOf } from '../../../src/config/resolve/config.js';
import { mistakeInEnv } from '../../../src/config/resolve/env-file.js';
import { resolveConfig } from '../../../src/config/resolve/resolve-config.js';
import { withPrograms } from '../../support/load-config.js';
import { HAS_MODES } from '../../support/platform.js';
import { folderWith } from '../files.js';

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
  const config = withPrograms(resolveConfig(file, checkFile(text, file), options));
  const [one, two, three] = config.servers;
  return { folder, config, one, two, three };
}

describe('an environment file', () => {
  it('may begin with a byte order mark', () => {
    expect(load({ 'shared.env': '\ufeffTOKEN=of all\r\nOTHER=b\r\n' }).two?.spec?.env).toEqual({ A: 'of all' });
  });

  it('gives values to the references of its servers, before the environment', () => {
    const { config, one, two } = load({
      'own.env': 'TOKEN="of one"\nexport ARG=x # why\n',
      'shared.env': 'TOKEN=of all\n',
    });
    expect(one?.spec).toMatchObject({ args: ['x'], env: { A: 'of one', B: 'other of the environment' } });
    expect(two?.spec?.env).toEqual({ A: 'of all' });
    expect(Object.keys(one?.spec?.env ?? {})).toEqual(['A', 'B']);
    expect(config.warnings).toEqual([]);
  });

  it('may be named from the home folder, and through a configuration in JSON', () => {
    const text = JSON.stringify({
      servers: { one: { command: 'node', envFile: '~/own.env', env: { A: '$' + '{X}' } } },
    });
    expect(load({ 'own.env': "X='1 2'" }, { text }).one?.spec?.env).toEqual({ A: '1 2' });
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

  const writable = [
    'is writable for others',
    { 'own.env': 'A=1' },
    'the environment file ./own.env cannot be used: other users can change it',
    0o620,
  ] as const;
  it.each([
    ['is missing', {}, 'the environment file ./own.env does not exist', 0o600] as const,
    ...(HAS_MODES ? [writable] : []),
    [
      'has a mistake',
      { 'own.env': 'A=1\n\nnonsense canary\n' },
      'the environment file ./own.env has a mistake in line 3: expected NAME=VALUE',
      0o600,
    ] as const,
  ])('F113: that %s stops only the servers that need it', (_, files, message, mode) => {
    const text = TEXT.replace('envFile: shared.env', '');
    const { one, two, three } = load(files, { text, mode });
    expect(one?.problem).toMatchObject({ message: `servers.one.envFile: ${message}`, line: 3, column: 91 });
    expect(one?.spec).toBeUndefined();
    expect(two?.spec?.env).toEqual({ A: 'token of the environment' });
    expect(three?.spec).toBeDefined();
  });

  it('of `defaults` is reported there, and only for servers with references', () => {
    const { two, three } = load({ 'own.env': 'TOKEN=a\nARG=b\n' });
    expect(two?.problem?.message).toBe('defaults.envFile: the environment file shared.env does not exist');
    expect(three?.problem).toBeUndefined();
  });

  it('that others can read works, with a warning', () => {
    const { config, folder, two } = load({ 'own.env': 'TOKEN=a\nARG=b\n', 'shared.env': 'TOKEN=d\n' }, { mode: 0o644 });
    expect(two?.spec?.env).toEqual({ A: 'd' });
    const file = join(folder, 'shared.env');
    const warning = `${file}: other users can read this environment file; make it yours alone: chmod 600 ${file}`;
    // On Windows, the permissions of the folder decide.
    expect(config.warnings.includes(warning)).toBe(HAS_MODES);
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
