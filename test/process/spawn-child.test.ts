import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { isMissing } from '../../src/servers/process/spawn-child.js';
import { exitBy, IS_WINDOWS } from '../support/platform.js';
import { fixture, until } from '../support/processes.js';
import { observe, spawnFixture } from './spawned.js';

const here = { args: [], cwd: process.cwd(), env: {} };

describe('a child that starts', () => {
  it("gets the given environment and directory, and nothing of Trunkline's", async () => {
    const { child, stdout, live } = observe({
      command: process.execPath,
      args: [fixture('print-env.mjs')],
      cwd: tmpdir(),
      env: { ONLY: 'this', PATH: '/bin' },
    });
    await child.exit;
    await until('the whole output', () => stdout().endsWith('\n'));
    const { env, cwd } = JSON.parse(stdout());
    // Windows adds variables of the system.
    expect(IS_WINDOWS ? { ONLY: env.ONLY, PATH: env.PATH } : env).toEqual({ ONLY: 'this', PATH: '/bin' });
    expect([cwd, env.TRUNKLINE_HUB]).toEqual([tmpdir(), undefined]);
    expect(live()).toEqual([]);
  });

  it('finds its command on its own PATH', async () => {
    const { child, events, live } = observe({
      ...{ ...here, command: 'node', args: ['-e', ''] },
      env: { PATH: ['/none', dirname(process.execPath)].join(delimiter) },
    });
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(events.error).toBeUndefined();
    expect(live()).toEqual([]);
  });

  it('leads a group of its own', async () => {
    const { child, says, live } = spawnFixture('end-on-eof.mjs');
    await says('up');
    expect(live()).toHaveLength(1);
    child.stdin.end();
    await child.exit;
    expect(live()).toEqual([]);
  });

  it.each([0, 3])('reports its exit with code %i', async (code) => {
    const { child, events, live } = spawnFixture('exit-at-once.mjs', String(code));
    expect(await child.exit).toEqual({ code, signal: null });
    expect(events).toEqual({ exit: { code, signal: null } });
    expect(live()).toEqual([]);
  });

  it('reports the signal that ended it', async () => {
    const { child, says, live } = spawnFixture('ignore-eof.mjs');
    await says('up');
    process.kill(child.pid ?? 0, 'SIGKILL');
    expect(await child.exit).toEqual(exitBy('SIGKILL'));
    expect(live()).toEqual([]);
  });

  // On Windows, what a program of Node has started ends with it.
  it.skipIf(IS_WINDOWS)('reports its exit while a grandchild still holds its stdout', async () => {
    const { child, says, live } = spawnFixture('grandchild.mjs', fixture('ignore-eof.mjs'));
    await child.exit;
    await says('up');
    expect(child.stdout.closed).toBe(false);
    process.kill(-(child.pid ?? 0), 'SIGKILL');
    await until('the grandchild is gone', () => live().length === 0);
  });

  it('may be written to when it no longer listens', async () => {
    const { child, says, live } = spawnFixture('close-stdin.mjs');
    await says('deaf');
    const error = await new Promise((resolve) => child.stdin.write('anybody?', resolve));
    expect(error).toMatchObject({ code: 'EPIPE' });
    process.kill(child.pid ?? 0, 'SIGKILL');
    await child.exit;
    child.stdin.write('nobody?');
    expect(live()).toEqual([]);
  });
});

describe('a command whose shell on Windows has ended with exit code 1', () => {
  const cwd = folderWithTool();
  const PATHEXT = '.EXE;.cmd';

  it.each([
    ['is there by its path', { command: './bin/tool', env: { PATHEXT } }, false],
    ['is there by its whole name', { command: 'tool.cmd', env: { PATH: join(cwd, 'bin') } }, false],
    ['is there on its own PATH, with an ending', { command: 'tool', env: { PATH: join(cwd, 'bin'), PATHEXT } }, false],
    ['is missing elsewhere', { command: 'tool', env: { PATH: cwd, PATHEXT } }, true],
    ['is missing with another ending', { command: 'tool', env: { PATH: join(cwd, 'bin'), PATHEXT: '.EXE' } }, true],
    ['is never missing as a line of a shell', { command: 'tool | more', isShell: true }, false],
  ])('%s', (_, request, expected) => {
    expect(isMissing({ ...here, cwd, ...request })).toBe(expected);
  });
});

/** A folder with a script of Windows. */
function folderWithTool(): string {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-tool-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin', 'tool.cmd'), '');
  return folder;
}

describe('a child that cannot start', () => {
  it.each([
    ['a command that does not exist', { command: 'no-such-command' }, 'ENOENT', '"no-such-command": the command'],
    // cmd.exe does not say more.
    [
      'a file that may not be executed',
      { command: fixture('print-env.mjs') },
      IS_WINDOWS ? 'ENOENT' : 'EACCES',
      IS_WINDOWS ? 'was not found' : 'may not be executed',
    ],
    [
      'a directory that does not exist',
      { command: process.execPath, cwd: '/no/such' },
      'ENOENT',
      'the folder to run it in does not exist',
    ],
    [
      'a file as directory',
      { command: process.execPath, cwd: process.execPath },
      IS_WINDOWS ? 'ENOENT' : 'ENOTDIR',
      'the folder to run it in',
    ],
    ['a command with a null byte', { command: 'a\0b' }, 'ERR_INVALID_ARG_VALUE', 'null bytes'],
    [
      'a command whose words could be secret',
      { command: '/no/such/secret', label: '$TOOL …' },
      'ENOENT',
      'Cannot start "$TOOL …"',
    ],
  ])('F4: says so: %s', async (_what, request, code, message) => {
    const { child, events } = observe({ ...here, ...request });
    expect(events.error).toBeUndefined();
    expect(await child.exit).toEqual({ code: null, signal: null });
    // On Windows, the shell has a pid that looks for a command.
    if (!IS_WINDOWS) expect(child.pid).toBeUndefined();
    expect(events.exit).toBeUndefined();
    expect(events.error).toMatchObject({ code, isHostFault: false, message: expect.stringContaining(message) });
  });

  it.runIf(IS_WINDOWS)('names the folder as the cause if its path is too long for Windows', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const cwd = join(folder, 'x'.repeat(150), 'y'.repeat(150));
    mkdirSync(cwd, { recursive: true });
    const { child, events } = observe({ ...here, command: process.execPath, cwd });
    await child.exit;
    expect(events.error?.message).toContain(`\`cwd\` has ${cwd.length} characters, and Windows takes 258`);
  });

  it.runIf(process.platform === 'linux')(
    'is not to blame, and does not take us down, when descriptors have run out',
    async () => {
      const { child, events } = withoutDescriptors(() => spawnFixture('exit-at-once.mjs'));
      await child.exit;
      expect(child.pid).toBeUndefined();
      expect(events.error).toMatchObject({ code: 'EMFILE', isHostFault: true });
    },
  );
});

/** Runs `task` while this process can open no file. */
function withoutDescriptors<Result>(task: () => Result): Result {
  const prlimit = (options: string) =>
    execFileSync('sh', ['-c', `prlimit --pid ${process.pid} ${options}`], { encoding: 'utf8' }).trim();
  const before = prlimit('--nofile --output=SOFT --noheadings');
  const taken: number[] = [];
  prlimit('--nofile=512:');
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch {
    return task();
  } finally {
    for (const descriptor of taken) closeSync(descriptor);
    prlimit(`--nofile=${before}:`);
  }
}
