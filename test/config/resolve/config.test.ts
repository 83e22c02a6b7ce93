import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { compareConfigs, type Origin, variantOf } from '../../../src/config/resolve/config.js';
import type { ProgramServer } from '../../support/load-config.js';
import { folderWith } from '../files.js';
import { load, loadServer } from '../loading.js';

const BEFORE = `
servers:
  a: { command: x, args: [one], env: { K: v } }
  b: { command: y }
  c: { command: z }
`;

/** The changes from the first text to the second. */
function changes(before: string, after: string) {
  // In one place, as an edited file is.
  const file = { before: load(before), after: load(after) };
  const cwd = file.before.servers[0]?.spec?.cwd ?? '';
  const servers = file.after.servers.map((server) =>
    server.spec === undefined ? server : { ...server, spec: { ...server.spec, cwd } },
  );
  return compareConfigs(file.before, { ...file.after, servers });
}

const NOTHING = { added: [], removed: [], replaced: [], adjusted: [], isReordered: false, gateway: [] };

describe('the difference between two configurations', () => {
  test('is none when only comments, spaces and the spelling of values differ', () => {
    const after = `# a comment\nservers:\n  a:\n    command: "x"\n    args: ['one']\n    env: { K: v }\n    timeout: 60000ms\n  b: { command: y, concurrency: 64 }\n  c: { command: z, disabled: false }\ngateway: { idleStop: 600s }\n`;
    expect(changes(BEFORE, after)).toStrictEqual({ ...NOTHING, unchanged: ['a', 'b', 'c'] });
  });

  test('is another process for each server that gets a changed variable of `defaults.env`', () => {
    const after = BEFORE.replace('{ command: y }', '{ command: y, env: { V: old } }');
    const all = (value: string) => `defaults: { env: { V: ${value} } }${after}`;
    expect(changes(all('old'), all('new'))).toMatchObject({ replaced: ['a', 'c'], unchanged: ['b'] });
  });

  test('names what was added, removed and changed, each in the order of its file', () => {
    const after = `
servers:
  e: { command: x }
  c: { command: other }
  a: { command: x, args: [one], env: { K: v }, timeout: 5s }
  d: { command: x }
`;
    expect(changes(BEFORE, after)).toStrictEqual({
      added: ['e', 'd'],
      removed: ['b'],
      replaced: ['c'],
      adjusted: ['a'],
      unchanged: [],
      isReordered: true,
      gateway: [],
    });
  });

  test.each([
    ['command', 'a: { command: other, args: [one], env: { K: v } }'],
    ['args', 'a: { command: x, args: [two], env: { K: v } }'],
    ['env', 'a: { command: x, args: [one], env: { K: w } }'],
    ['sharing', 'a: { command: x, args: [one], env: { K: v }, sharing: all }'],
    ['placement', 'a: { command: x, args: [one], env: { K: v }, placement: one }'],
    ['leaveRunning', 'a: { command: x, args: [one], env: { K: v }, leaveRunning: true }'],
    ['sandbox', 'a: { command: x, args: [one], env: { K: v }, sandbox: { network: [a.example] } }'],
    ['maxFrame', 'a: { command: x, args: [one], env: { K: v }, maxFrame: 1MiB }'],
    ['what is missing', `a: { command: x, args: [one], env: { K: "\${UNSET}" } }`],
  ])('asks for another process when %s changes', (_what, entry) => {
    const after = `servers:\n  ${entry}\n  b: { command: y }\n  c: { command: z }\n`;
    expect(changes(BEFORE, after)).toStrictEqual({ ...NOTHING, replaced: ['a'], unchanged: ['b', 'c'] });
  });

  test.each([
    ['tools', 'tools: { deny: [x] }'],
    ['prefix', 'prefix: ""'],
    ['methods', 'methods: ["x/*"]'],
    ['timeout', 'timeout: 1s'],
    ['trusted', 'trusted: true'],
    ['approval', 'approval: required'],
    ['concurrency', 'concurrency: 1'],
    ['stopGrace', 'stopGrace: 1s'],
    ['installTimeout', 'installTimeout: 10s'],
    ['restart', 'restart: { budget: 1 }'],
    ['limits', 'limits: { memory: 1GiB }'],
    ['results', 'results: { max: 8kB }'],
    ['the naming of a variable', `env: { K: "\${UNSET:-v}" }`],
  ])('leaves the process alone when only %s changes', (_what, member) => {
    const entry = BEFORE.replace(member.startsWith('env') ? ', env: { K: v }' : /$^/, '');
    const after = entry.replace('args: [one]', `args: [one], ${member}`);
    expect(changes(BEFORE, after)).toStrictEqual({ ...NOTHING, adjusted: ['a'], unchanged: ['b', 'c'] });
  });

  test('counts the largest change of each server, for clients with other variables too', () => {
    const [before, after] = [load(BEFORE), load(BEFORE)];
    const servers = after.servers.map((server) => ({
      ...server,
      spec: before.servers.find(({ key }) => key === server.key)?.spec,
    }));
    const others = (
      ['a replaced', 'a unchanged', 'c adjusted', 'c replaced', 'b adjusted', 'gone removed'] as const
    ).map((text) => {
      const [key = '', change] = text.split(' ');
      return { key, change: change as 'replaced' };
    });
    expect(compareConfigs(before, { ...after, servers }, others)).toStrictEqual({
      ...NOTHING,
      replaced: ['a', 'c'],
      adjusted: ['b'],
      unchanged: [],
    });
  });

  test('is none when a server that cannot run merely moved to another line', () => {
    const text = `servers:\n  a: { command: "\${UNSET}" }\n`;
    expect(changes(text, `\n\n${text}`)).toStrictEqual({ ...NOTHING, unchanged: ['a'] });
  });

  test('follows `defaults`, and counts a server that is disabled as removed', () => {
    const after = BEFORE.replace('command: y', 'command: y, disabled: true');
    const { adjusted, removed } = changes(BEFORE, `${after}defaults: { timeout: 1s }\n`);
    expect({ adjusted, removed }).toEqual({ adjusted: ['a', 'c'], removed: ['b'] });
  });

  test('names the settings of Trunkline itself', () => {
    const after = `${BEFORE}gateway: { restartTool: true, http: { maxSessions: 5 } }\n`;
    expect(changes(BEFORE, after).gateway).toEqual(['restartTool', 'http']);
  });
});

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

function serverFor(text: string, origin: Origin): ProgramServer | undefined {
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
    expect(server?.spec).toMatchObject({
      command: 'node',
      args: [`\${NOT}`, '--key', 'k2'],
      env: { A: 'k2', B: 'xo' },
    });
    expect(server?.references).toEqual({ KEY: 'k2', OTHER: 'o' });
  });

  test('cannot run if a variable is not set there, although Trunkline has it', () => {
    const server = serverFor(NAMING, originOf({}));
    expect(server?.spec).toBeUndefined();
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
    expect([server?.spec?.cwd, server?.folder]).toEqual([folder, folder]);
    expect(loadServer(FOLDER).spec?.cwd).toBe(process.cwd());
  });

  test('runs in its `cwd` if it has one, which is relative to the file', () => {
    const folder = folderWith({ 'trunkline.yaml': '' });
    mkdirSync(join(folder, 'data'));
    const { spec } = loadServer(`servers: { own: { command: node, sharing: folder, cwd: ".." } }\n`, {
      origin: originOf({}, folder),
    });
    expect(spec?.cwd).not.toBe(folder);
    expect(folder.startsWith(spec?.cwd ?? 'nowhere')).toBe(true);
  });

  test('is another one in another folder, with or without `cwd`', () => {
    for (const text of [FOLDER, FOLDER.replace('sharing', 'cwd: "..", sharing')]) {
      const server = loadServer(text, { origin: originOf({}, '/') });
      expect(variantOf(server, originOf({}, '/'))).toBe(variantOf(server));
      expect(variantOf(server, originOf({}, '/tmp'))).not.toBe(variantOf(server));
    }
  });

  test('F89: cannot run for a client whose folder is gone, and says so', () => {
    const problem = serverFor(FOLDER, originOf({}, '/no/such/folder'))?.problem;
    expect(problem?.message).toContain('the working folder of the client does not exist: /no/such/folder');
    expect(problem?.hint).toContain('start the client in a folder that exists');
  });
});
