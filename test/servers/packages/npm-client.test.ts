import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  explainNpmFailure,
  findNpm,
  type NpmRun,
  newestOf,
  readPublished,
  runNpm,
} from '../../../src/servers/packages/npm-client.js';
import { folderWith } from '../../config/files.js';
import { IS_WINDOWS } from '../../support/platform.js';
import { liveMembers, realClock, until } from '../../support/processes.js';

let folder: string;
beforeEach(() => {
  folder = folderWith();
});

function file(name: string, text = ''): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

describe('npm', () => {
  it.each([
    ['beside Node, as its archives have it', 'lib/node_modules/npm/bin/npm-cli.js'],
    ['beside Node, as on Windows', 'bin/node_modules/npm/bin/npm-cli.js'],
    ['in the folder of a package manager', 'libexec/lib/node_modules/npm/bin/npm-cli.js'],
  ])('is found %s', (_, place) => {
    const cli = file(place);
    expect(findNpm(join(folder, 'bin', 'node'))).toBe(cli);
  });

  it('is found in PATH through its link, but not where a script of another kind has its name', () => {
    const cli = file('apps/npm/bin/npm-cli.js');
    file('shims/npm', '#!/bin/sh');
    mkdirSync(join(folder, 'links'));
    symlinkSync(cli, join(folder, 'links', 'npm'));
    const path = ['', join(folder, 'none'), join(folder, 'shims'), join(folder, 'links')].join(delimiter);
    expect(findNpm(join(folder, 'bin', 'node'), path)).toBe(cli);
    expect(findNpm(join(folder, 'bin', 'node'), join(folder, 'shims'))).toBeUndefined();
  });

  function run(program: string, options: Partial<NpmRun> = {}) {
    const pgids: number[] = [];
    const result = runNpm({
      npm: file('npm-cli.js', program),
      nodePath: process.execPath,
      args: ['view', 'x'],
      cwd: folder,
      env: { NAME: 'value', EMPTY: '', ABSENT: undefined },
      clock: realClock,
      signal: new AbortController().signal,
      onBegun: (pgid) => pgids.push(pgid),
      onGone: (pgid) => pgids.push(-pgid),
      ...options,
    });
    return { result, pgids };
  }

  it('is run with the variables it is given, and its outputs are told apart', async () => {
    const { result, pgids } = run(`
      console.log(JSON.stringify([process.argv.slice(2), process.env.NAME, process.env.HOME]));
      console.error('npm error code E404\\n\\nnpm error 404');
      process.exitCode = 3;`);
    expect(await result).toEqual({
      code: 3,
      stdout: '[["view","x"],"value",null]\n',
      lines: ['npm error code E404', 'npm error 404'],
    });
    const [begun = 0] = pgids;
    expect(pgids).toEqual([begun, -begun]);
  });

  it('is ended with all it has started, even if that heeds no signal', async () => {
    const abort = new AbortController();
    const { result, pgids } = run(
      `process.on('SIGTERM', () => {});
       const deaf = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); fs.writeFileSync('up', '')";
       import('node:child_process').then(({ spawn }) => spawn(process.execPath, ['-e', deaf], { stdio: 'inherit' }));`,
      { signal: abort.signal },
    );
    await until('both run', () => existsSync(join(folder, 'up')));
    // Windows has no group that would tell of the second one.
    expect(liveMembers(pgids)).toHaveLength(IS_WINDOWS ? 1 : 2);
    abort.abort();
    // The last step on Windows ends it, after it may have ended with its stdin.
    expect((await result).code).toBeOneOf([null, ...(IS_WINDOWS ? [0, 1] : [])]);
    expect(liveMembers(pgids.slice(0, 1))).toEqual([]);
  });

  it('that cannot be started says so', async () => {
    const { result } = run('', { nodePath: join(folder, 'no-node') });
    expect(await result).toMatchObject({
      code: null,
      lines: expect.arrayContaining([expect.stringContaining('ENOENT')]),
    });
  });
});

describe('the versions of a package', () => {
  const view = (members: object) =>
    JSON.stringify({ 'dist-tags': { latest: '2.0.0' }, versions: ['1.0.0', '2.0.0'], ...members });

  it.each([
    ['with the engines of the newest', view({ engines: { node: '>=22' } }), { node: '>=22' }],
    ['without engines', view({}), undefined],
    ['in a list, as some versions of npm write it', `[${view({})}]`, undefined],
  ])('are read %s', (_, answer, engines) => {
    const published = readPublished(answer, 'tool');
    expect(published.versions).toEqual(['1.0.0', '2.0.0']);
    expect(newestOf(published)).toEqual({ version: '2.0.0', engines });
  });

  it('are read from an answer that has one version, and no tag', () => {
    const published = readPublished('{"versions":"1.0.0"}', 'tool');
    expect(published.versions).toEqual(['1.0.0']);
    expect(newestOf(published)).toBeUndefined();
  });

  it.each(['', '[]', '"1.0.0"'])('are missing in the answer %j', (answer) => {
    expect(() => readPublished(answer, 'tool')).toThrow('npm reported no versions of tool');
  });
});

function explain(output: string) {
  return explainNpmFailure(1, output.split('\n'));
}

describe('a failure of npm', () => {
  it.each([
    [
      "npm error code E404\nnpm error 404 Not Found - GET https://r.example/@a%2fb - Not found\nnpm error 404\nnpm error 404  The requested resource '@a/b@*' could not be found or you do not have permission to access it.",
      'E404: the registry has no package `@a/b`, or hides it from you',
      'correct the name; if the package is private',
    ],
    [
      "npm ERR! code E404\nnpm ERR! 404\nnpm ERR! 404  'nothing@*' is not in this registry.",
      'E404: the registry has no package `nothing`, or hides it from you',
      'correct the name',
    ],
    [
      'npm error code ETARGET\nnpm error notarget No matching version found for tool@99.1.0.\nnpm error notarget In most cases',
      'ETARGET: the registry has no version `tool@99.1.0`',
      'correct the version',
    ],
    [
      'npm error code EALLOWGIT\nnpm error Fetching packages of type "git" have been disabled',
      'EALLOWGIT: the package needs another one from elsewhere than from the registry',
      'set `foreignDependencies: true` in the entry',
    ],
    [
      'npm error code ENOTDIR\nnpm error syscall spawn\nnpm error errno -20\nnpm error spawn ENOTDIR',
      'ENOTDIR: the package needs another one from elsewhere than from the registry',
      'set `foreignDependencies: true` in the entry',
    ],
  ])(
    'names a package or version that the registry does not have, or that comes from elsewhere: %j',
    (output, message, hint) => {
      expect(explain(output)).toEqual({ message, hint: expect.stringContaining(hint) });
    },
  );

  it.each([
    ['E401', 'the registry refused access', 'npm login'],
    ['E403', 'the registry refused access', 'npm login'],
    ['ENEEDAUTH', 'the registry refused access', 'npm login'],
    ['ENOTFOUND', 'the registry cannot be reached', 'check the network connection'],
    ['ECONNREFUSED', 'the registry cannot be reached', 'check the network connection'],
    ['ERR_SOCKET_TIMEOUT', 'the registry cannot be reached', 'check the network connection'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'npm does not trust the certificate of the registry', 'NODE_EXTRA_CA_CERTS'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'npm does not trust the certificate of the registry', 'NODE_EXTRA_CA_CERTS'],
    ['E503', 'the registry has a problem', 'try again later'],
  ])('with the code %s means that %s, and has its own cure', (code, meaning, cure) => {
    const { message, hint } = explain(
      `npm error code ${code}\nnpm error errno ${code}\nnpm error something went wrong`,
    );
    expect(message).toBe(`${code}: ${meaning}`);
    expect(hint).toContain(cure);
  });

  it.each([
    ['ENOSPC', 'write', '', 'a file cannot be used: the disk is full (ENOSPC)', 'make room'],
    ['EACCES', 'mkdir', '/c/_cacache', '/c/_cacache cannot be used: this user may not do that (EACCES)', 'permissions'],
    ['EROFS', 'open', '/c/x', '/c/x cannot be used: its file system is read-only (EROFS)', 'writable'],
    ['EACCES', 'spawn sh', 'sh', "EACCES: words, spawn sh 'sh'", undefined],
  ])('with the code %s at %s of %j is told in the words for files, once', (code, syscall, path, message, hint) => {
    const where = path === '' ? '' : `npm error path ${path}\n`;
    const output = `npm error code ${code}\nnpm error syscall ${syscall}\n${where}npm error errno -1\nnpm error Error: ${code}: words, ${syscall} '${path}'`;
    const failure = explain(output);
    expect(failure.message).toBe(message);
    if (hint !== undefined) expect(failure.hint).toContain(hint);
  });

  it('of another kind is told in the first words of npm, cut to one short line', () => {
    expect(explain('npm error code EOTHER\nnpm error path /x\nnpm error It broke.\nnpm error More.')).toEqual({
      message: 'EOTHER: It broke.',
    });
    expect(explain(`npm error ${'x'.repeat(1_000)}`).message).toHaveLength(300);
    expect(explainNpmFailure(null, [])).toEqual({ message: 'npm ended with code null' });
  });
});
