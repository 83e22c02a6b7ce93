import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/observe/system-clock.js';
import { endGroup } from '../../src/process/end-group.js';
import type { SpawnedChild, SpawnRequest } from '../../src/process/spawn-child.js';
import { SpawnHelper } from '../../src/process/spawn-helper.js';
import type { ChildExit } from '../../src/supervision/launcher.js';
import { FakeClock } from '../support/fake-clock.js';
import { fixture, killGroups, liveMembers, until } from '../support/processes.js';

const QUICK = { termAfterMs: 0, killAfterMs: 0 };
let helper: SpawnHelper;
const spawned: (number | undefined)[] = [];
let temporary: string;
beforeEach(() => {
  // Helpers of other tests have folders in the usual place.
  temporary = mkdtempSync(join(tmpdir(), 'trunkline-helper-'));
  vi.stubEnv('TMPDIR', temporary);
  helper = new SpawnHelper(systemClock);
});
afterEach(() => {
  helper.close();
  killGroups(spawned.splice(0));
  vi.unstubAllEnvs();
  rmSync(temporary, { recursive: true, force: true });
});

async function start(request: Partial<SpawnRequest> & { readonly program?: string }) {
  const exits: ChildExit[] = [];
  const { program, args = [], ...others } = request;
  const command = program === undefined ? { args } : { command: process.execPath, args: [fixture(program), ...args] };
  const child = await helper.spawn({ command: 'true', cwd: process.cwd(), env: {}, ...command, ...others }, (exit) =>
    exits.push(exit),
  );
  if (child === undefined) throw new Error('It was not started');
  spawned.push(child.pid);
  const text = collect(child.stdout);
  return { child, exits, text, errors: collect(child.stderr) };
}

function collect(stream: SpawnedChild['stdout']): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString();
}

function folders(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('trunkline-spawn-'));
}

/** The files in the folder of the helper. */
function names(): string[] {
  return folders().flatMap((folder) => readdirSync(join(tmpdir(), folder)));
}

describe.runIf(process.platform === 'linux')('a process that the helper starts', () => {
  it('gets the given environment, folder and arguments, whatever characters they have', async () => {
    const script = 'console.log(JSON.stringify({ env: process.env, cwd: process.cwd(), args: process.argv.slice(1) }))';
    const env = { ONLY: `it's "$HOME" \`x\` \\ \n two\nlines\t`, EMPTY: '', PATH: '/bin' };
    const args = ['', "a'b", '$(exit 3)', '*', 'ü 猫', '--', '-x', 'a\nb', '\\n'];
    const command = { command: process.execPath, args: ['-e', script, '--', ...args] };
    const { child, text } = await start({ ...command, cwd: tmpdir(), env });
    await child.exit;
    await until('the whole output', () => text().endsWith('\n'));
    const { env: seen, cwd, args: given } = JSON.parse(text());
    // A shell may set these for itself.
    for (const name of ['PWD', 'OLDPWD', 'SHLVL', '_']) delete seen[name];
    expect([seen, cwd]).toEqual([env, tmpdir()]);
    expect(given).toEqual(args);
  });

  it('enters its control group before it runs', async () => {
    const folder = join(temporary, "it's a group");
    mkdirSync(folder);
    const procs = join(folder, 'cgroup.procs');
    writeFileSync(procs, '');
    const script = `process.stdout.write(require('node:fs').readFileSync(${JSON.stringify(procs)}))`;
    const { child, text } = await start({ command: process.execPath, args: ['-e', script], controlGroup: folder });
    await child.exit;
    // The kernel takes 0 for the process that writes.
    await until('its output', () => text() === '0\n');
  });

  it('starts all the same, and without a word, if its control group is gone', async () => {
    const { child, text, errors } = await start({ program: 'end-on-eof.mjs', controlGroup: join(temporary, 'gone') });
    await until('it is up', () => text().includes('up'));
    child.stdin.end();
    await child.exit;
    expect(errors()).toBe('');
  });

  it('leads a session of its own', async () => {
    const { child, text } = await start({ program: 'end-on-eof.mjs' });
    await until('it is up', () => text().includes('up'));
    expect(liveMembers([child.pid])).toHaveLength(1);
    child.stdin.end();
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(liveMembers([child.pid])).toEqual([]);
  });

  it('reads its stdin and writes its stdout, large and small', async () => {
    const { child, text } = await start({ command: '/bin/cat' });
    const block = `${'x'.repeat(1_000_000)}\n`;
    child.stdin.write('small\n');
    child.stdin.end(block);
    await child.exit;
    await until('all of it', () => text().length === block.length + 6);
    expect(text()).toBe(`small\n${block}`);
  });

  it('writes to stderr apart from stdout', async () => {
    const { child, text, errors } = await start({ command: '/bin/sh', args: ['-c', 'echo out; echo err >&2'] });
    await child.exit;
    await until('both', () => text() === 'out\n' && errors() === 'err\n');
  });

  it.each([
    ['its code', 'exit 3', { code: 3, signal: null }],
    ['the signal that ended it', 'kill -s KILL $$', { code: null, signal: 'SIGKILL' }],
    ['the code of a missing command', 'exec /no/such/command', { code: 127, signal: null }],
  ])('reports %s, once', async (_, script, exit) => {
    const { child, exits } = await start({ command: '/bin/sh', args: ['-c', script] });
    expect(await child.exit).toEqual(exit);
    expect(exits).toEqual([exit]);
  });

  it('makes writing fail when it has closed its stdin', async () => {
    const { child, text } = await start({ command: '/bin/sh', args: ['-c', 'exec <&-; echo closed; sleep 60'] });
    await until('it is closed', () => text() === 'closed\n');
    const failed = new Promise<NodeJS.ErrnoException>((resolve) => child.stdin.once('error', resolve));
    child.stdin.write('x\n');
    expect((await failed).code).toBe('EPIPE');
    expect((await endGroup(child, QUICK, systemClock)).gone).toBe(true);
  });

  it('is ended like any other', async () => {
    const { child, text } = await start({ program: 'ignore-sigterm.mjs' });
    await until('it is up', () => text().includes('up'));
    expect(await endGroup(child, QUICK, systemClock)).toEqual({ gone: true });
    expect(await child.exit).toEqual({ code: null, signal: 'SIGKILL' });
    expect(liveMembers([child.pid])).toEqual([]);
  });

  it('may be one of many at once', async () => {
    const many = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        start({ command: '/bin/sh', args: ['-c', `echo ${index}; exit ${index}`] }),
      ),
    );
    expect(await Promise.all(many.map(({ child }) => child.exit))).toEqual(
      many.map((_, code) => ({ code, signal: null })),
    );
    await until('all have spoken', () => many.every(({ text }, index) => text() === `${index}\n`));
  });

  it('finds its pipes made together with those of the next ones, and no more of them with each start', async () => {
    const counts: number[] = [];
    for (let count = 0; count < 40; count += 1) {
      const { child } = await start({});
      counts.push(names().length);
      await child.exit;
    }
    const batch = counts[0] ?? 0;
    expect(batch).toBeGreaterThan(3);
    expect(new Set(counts)).toEqual(new Set([batch]));
  });

  it('leaves no pipe and no folder behind', async () => {
    const before = folders();
    const { child } = await start({ command: '/bin/cat' });
    helper.close();
    child.stdin.end();
    await until('the folder is gone', () => folders().every((name) => before.includes(name)));
  });
});

describe.runIf(process.platform === 'linux')('a helper that is disturbed', () => {
  const TRUE = { command: 'true', args: [], cwd: '/', env: {} };
  it('leaves a process to the caller when its folder was tidied up', async () => {
    await (await start({})).child.exit;
    for (const name of folders()) rmSync(join(tmpdir(), name), { recursive: true });
    expect(await helper.spawn(TRUE, () => {})).toBeUndefined();
  });

  it('leaves a process to the caller when it was killed', async () => {
    await (await start({})).child.exit;
    const [own] = folders();
    const pids = execFileSync('pgrep', ['-f', `trunkline-spawn .*${own}`], { encoding: 'utf8' });
    for (const pid of pids.trim().split('\n')) process.kill(Number(pid), 'SIGKILL');
    await expect.poll(() => helper.spawn(TRUE, () => {}).then((child) => child === undefined)).toBe(true);
  });

  it('lets no process run that comes up after it was given up, because the caller has started another one', async () => {
    const clock = new FakeClock();
    const slow = new SpawnHelper(clock);
    const first = slow.spawn({ ...TRUE, command: 'sleep', args: ['61.25'], env: { PATH: '/bin:/usr/bin' } }, () => {});
    clock.advance(5_000);
    expect(await first).toBeUndefined();
    const second = await slow.spawn({ ...TRUE, env: { PATH: '/bin:/usr/bin' } }, () => {});
    expect(second).toBeDefined();
    const isRunning = () => spawnSync('pgrep', ['-fx', 'sleep 61.25']).status === 0;
    await until('the first one is gone', () => !isRunning());
    // At its end, the helper kills the pids in these files, which other processes may have by then. The gateway removes
    // the file when it hears of the process.
    await until('no file names its pid', () => !names().some((name) => name.endsWith('.pid')));
    slow.close();
  });
});

describe('a process that the helper cannot start', () => {
  it.each([
    ['a variable that no shell knows', { env: { 'npm_config_//x:_auth': 'y' } }],
    ['a variable that is a constant of some shells', { env: { UID: '0' } }],
    ['a null byte', { args: ['a\0b'] }],
  ])('is left to the caller: %s', async (_, request) => {
    expect(await helper.spawn({ command: 'true', args: [], cwd: '/', env: {}, ...request }, () => {})).toBeUndefined();
  });

  it('is left to the caller when the helper is closed', async () => {
    helper.close();
    expect(await helper.spawn({ command: 'true', args: [], cwd: '/', env: {} }, () => {})).toBeUndefined();
  });
});
