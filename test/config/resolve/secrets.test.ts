import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { secretSourcesOf } from '../../../src/app/active-config.js';
import { checkFile } from '../../../src/config/file/check-file.js';
import { changeOf } from '../../../src/config/resolve/config.js';
import type { Secret } from '../../../src/config/resolve/references.js';
import { readSecretFile, readSecrets, writeSecretFile } from '../../../src/config/resolve/secrets.js';
import { secretValuesIn as secretTexts } from '../../../src/host/observe/redact.js';
import { folderWith } from '../files.js';
import { load, loadServer, problemsOf } from '../loading.js';

let folder: string;
beforeEach(() => {
  folder = folderWith();
});

async function read(names: readonly string[]) {
  const places = { configFile: join(folder, 'trunkline.yaml'), secretFile: join(folder, 'secrets'), env: {} };
  return Object.fromEntries(await readSecrets(names, { secretCommands: {} }, places));
}

describe('a stored secret', () => {
  const file = () => join(folder, 'secrets');

  test('is read from the file, which only its user can read', async () => {
    const secrets = new Map(Object.entries({ B: 'two\nlines', A: 'one' }));
    await writeSecretFile(file(), { secrets, inKeychain: new Set() });
    expect(await read(['A', 'B'])).toEqual({ A: { value: 'one' }, B: { value: 'two\nlines' } });
    chmodSync(file(), 0o644);
    const exposed = {
      fault: `the file ${file()} with the secrets cannot be used: other users can read or change it`,
      hint: 'correct or remove the file',
    };
    // On Windows, the permissions of the folder decide.
    expect(await read(['A'])).toEqual({ A: process.platform === 'win32' ? { value: 'one' } : exposed });
  });

  test('that does not exist is named, with ways to have it', async () => {
    expect(await read(['A'])).toEqual({
      A: {
        fault: 'there is no secret A',
        hint: 'store it with `trunkline secret set A`, or add a command for it below `secretCommand:`',
      },
    });
    writeFileSync(file(), 'x', { mode: 0o600 });
    expect(await readSecretFile(file())).toEqual({ fault: 'it is damaged' });
  });
});

describe('the words of a command', () => {
  test.each([
    ['op read op://a/b', ['op', 'read', 'op://a/b']],
    [`  pass  show "my key" 'x y' a"b c"d `, ['pass', 'show', 'my key', 'x y', 'ab cd']],
    [`vault '"' ""`, ['vault', '"', '']],
    [
      ['pass', 'show', 'key'],
      ['pass', 'show', 'key'],
    ],
    ['a "b', undefined],
    [`don't`, undefined],
    ['', undefined],
  ])('%j', (command, words) => {
    const text = JSON.stringify({ servers: { a: { command: 'x' } }, secretCommand: { A: command } });
    if (words === undefined) expect(() => checkFile(text, 'f')).toThrow('a command with all quotes closed');
    else expect(checkFile(text, 'f').secretCommands).toEqual({ A: words });
  });
});

const TEXT = `
secretCommand: { TOKEN: op read "op://dev/api token", KEY: [pass, show, key] }
servers:
  a:
    command: node
    args: ["--key=\${secret:KEY}"]
    env: { API: "Bearer \${secret:TOKEN}" }
    tools: { params: { t: { set: { k: "\${secret:KEY}", o: "\${OWNER}" } } } }
`;
const SECRETS = new Map<string, Secret>([
  ['TOKEN', { value: 'tok3n-value' }],
  ['KEY', { value: 'key-value' }],
]);

describe('a configuration with secrets', () => {
  test('has their values in place, and knows them as secrets, whatever they look like', () => {
    const server = loadServer(TEXT, { secrets: SECRETS, env: { OWNER: 'somebody' } });
    expect(server.spec).toMatchObject({ args: ['--key=key-value'], env: { API: 'Bearer tok3n-value' } });
    expect(server.shapes?.params?.t?.set).toEqual({ k: 'key-value', o: 'somebody' });
    expect(server.variables).toEqual(['OWNER']);
    const known = secretSourcesOf(server).flatMap(secretTexts);
    expect(known).toEqual(expect.arrayContaining(['tok3n-value', 'key-value', 'somebody']));
  });

  test('has a problem at the value for which there is none, and only that server has it', () => {
    const failed = new Map(SECRETS).set('TOKEN', { fault: 'it failed', hint: 'do this' });
    const text = `${TEXT}  b: { command: node }\n`;
    const [a, b] = load(text, { secrets: failed, env: { OWNER: 'x' } }).servers;
    expect(a?.problem).toMatchObject({ message: 'servers.a.env.API: it failed', hint: 'do this', line: 7 });
    expect(b?.problem).toBeUndefined();
  });

  test('has a problem at a value whose secret has a NUL character, and the message has no part of it', () => {
    const secrets = new Map(SECRETS).set('TOKEN', { value: 'tok3n\0' });
    expect(loadServer(TEXT, { secrets, env: { OWNER: 'x' } }).problem).toMatchObject({
      message:
        'servers.a.env.API: the value of a variable or secret has a NUL character, which no program can be started with',
      line: 7,
    });
  });

  test('has another process when a secret has another value', () => {
    const env = { OWNER: 'x' };
    const before = loadServer(TEXT, { secrets: SECRETS, env });
    const other = new Map(SECRETS).set('KEY', { value: 'other-value' });
    expect(changeOf(before, loadServer(TEXT, { secrets: other, env }))).toBe('replaced');
  });

  test.each([
    ['A: 7', 'secretCommand.A: found a number; expected a command with all quotes closed, or a list of its words'],
    [`A: 'say "x'`, 'secretCommand.A: found a string; expected a command with all quotes closed'],
    ['a-b: x', 'this is not a valid name of a secret'],
  ])('is refused with a mistake, whose message has no part of the command: %s', (entry, expected) => {
    const [problem] = problemsOf(`servers: { a: { command: x } }\nsecretCommand: { ${entry} }\n`);
    expect(problem).toContain(expected);
    expect(problem).not.toContain('say');
  });
});
