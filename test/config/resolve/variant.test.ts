import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Origin, ServerConfig } from '../../../src/config/resolve/config.js';
import { variantOf } from '../../../src/config/resolve/resolve-config.js';
import { folderWith } from '../files.js';
import { load, loadServer } from '../loading.js';

const NAMING = `servers:
  own:
    command: "\${BIN:-node}"
    args: ["$\${NOT}", "--key", "\${KEY}"]
    env: { A: "\${KEY}", B: "x\${OTHER:-y}" }
`;
const FOLDER = 'servers: { own: { command: node, sharing: folder } }\n';

function originOf(environment: Origin['environment'], folder = '/'): Origin {
  return { environment, folder };
}

function serverFor(text: string, origin: Origin): ServerConfig | undefined {
  return load(text, { env: { HOME: '/home/ada', KEY: 'own key' } }).serverFor('own', origin);
}

describe('the variables that a server names', () => {
  test('are those of all its values and of `defaults.env`, also the ones that are not set', () => {
    const text = `defaults: { env: { P: "\${PROXY:-}" } }\n${NAMING}`;
    const { variables, references } = loadServer(text, { env: { KEY: 'k', PROXY: 'p', BIN: '/b', UNNAMED: 'u' } });
    expect(variables).toEqual(['BIN', 'KEY', 'OTHER', 'PROXY']);
    expect(references).toEqual({ KEY: 'k', PROXY: 'p', BIN: '/b' });
  });

  test.each([
    ['package', `servers: { own: { package: "\${PART}" } }`],
    ['cwd', `servers: { own: { command: node, cwd: "\${PART}" } }`],
    ['command', `servers: { own: { command: "\${PART}" } }`],
  ])('include those of `%s`', (_key, text) => {
    expect(loadServer(text).variables).toEqual(['PART']);
  });

  test('are known with their values although the server cannot run', () => {
    const { problem, references } = loadServer(`servers: { own: { command: "\${KEY}", args: ["\${NO}"] } }`, {
      env: { KEY: 'hunter2' },
    });
    expect(problem?.message).toContain('NO is not set');
    expect(references).toEqual({ KEY: 'hunter2' });
  });
});

describe('a server for another origin', () => {
  test('has the values of that origin, and none of the environment of Trunkline', () => {
    const server = serverFor(NAMING, originOf({ KEY: 'k2', OTHER: 'o' }));
    expect(server?.child).toMatchObject({
      command: 'node',
      args: [`\${NOT}`, '--key', 'k2'],
      env: { A: 'k2', B: 'xo' },
    });
    expect(server?.references).toEqual({ KEY: 'k2', OTHER: 'o' });
  });

  test('cannot run if a variable is not set there, although Trunkline has it', () => {
    const server = serverFor(NAMING, originOf({}));
    expect(server?.child).toBeUndefined();
    expect(server?.problem).toMatchObject({
      message: 'servers.own.args[2]: the environment variable KEY is not set',
      line: 4,
    });
  });

  test('does not exist if the file has no such server', () => {
    expect(load(NAMING).serverFor('other', originOf({}))).toBeUndefined();
  });

  test('is the same for origins that differ only in variables that it does not name', () => {
    const server = loadServer(NAMING, { env: { KEY: 'k', HOME: '/home/ada' } });
    expect(variantOf(server, originOf({ KEY: 'k', UNNAMED: 'u' }, '/other'))).toBe(variantOf(server));
  });

  test.each<[string, Origin['environment']]>([
    ['another value', { KEY: 'k2' }],
    ['no value', {}],
    ['a value of a variable with a default', { KEY: 'k', OTHER: '' }],
  ])('is another one with %s', (_, environment) => {
    const server = loadServer(NAMING, { env: { KEY: 'k' } });
    expect(variantOf(server, originOf(environment))).not.toBe(variantOf(server));
  });

  test('does not mistake what every object inherits for a variable', () => {
    const server = loadServer(`servers: { own: { command: "\${constructor:-node}" } }`);
    expect(variantOf(server, originOf({}))).toBe('[[null]]');
  });
});

describe('a server with `sharing: folder`', () => {
  test('runs in the working folder of the client, or of Trunkline without a client that has one', () => {
    const folder = folderWith();
    const server = serverFor(FOLDER, originOf({}, folder));
    expect([server?.child?.cwd, server?.folder]).toEqual([folder, folder]);
    expect(loadServer(FOLDER).child?.cwd).toBe(process.cwd());
  });

  test('runs in its `cwd` if it has one, which is relative to the file', () => {
    const folder = folderWith({ 'trunkline.yaml': '' });
    mkdirSync(join(folder, 'data'));
    const { child } = loadServer(`servers: { own: { command: node, sharing: folder, cwd: ".." } }\n`, {
      origin: originOf({}, folder),
    });
    expect(child?.cwd).not.toBe(folder);
    expect(folder.startsWith(child?.cwd ?? 'nowhere')).toBe(true);
  });

  test('is another one in another folder, with or without `cwd`', () => {
    for (const text of [FOLDER, FOLDER.replace('sharing', 'cwd: "..", sharing')]) {
      const server = loadServer(text, { origin: originOf({}, '/') });
      expect(variantOf(server, originOf({}, '/'))).toBe(variantOf(server));
      expect(variantOf(server, originOf({}, '/tmp'))).not.toBe(variantOf(server));
    }
  });

  test('cannot run for a client whose folder is gone, and says so', () => {
    const problem = serverFor(FOLDER, originOf({}, '/no/such/folder'))?.problem;
    expect(problem?.message).toContain('the working folder of the client does not exist: /no/such/folder');
    expect(problem?.hint).toContain('start the client in a folder that exists');
  });
});
