import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { identify } from '../../src/host/process/processes.js';
import { Guardian, type GuardianProgram, guardianProgram } from '../../src/servers/process/guardian.js';
import { builtModule } from '../support/built-module.js';
import { exitBy, IS_WINDOWS, SHOWS_VARIABLES } from '../support/platform.js';
import { fixture, guardiansOf, killGroups, leadsSession, liveMembers, realClock, until } from '../support/processes.js';
import { type Observed, spawnFixture } from './spawned.js';

/** Other runs of this file on the machine have other marks. */
const MARK = randomBytes(16).toString('hex');

const opened: Guardian[] = [];
const started: ChildProcess[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((guardian) => guardian.close()));
  killGroups(started.splice(0).map(({ pid }) => pid));
});

function open(program?: GuardianProgram): { guardian: Guardian; troubles: string[] } {
  const troubles: string[] = [];
  const onTrouble = (trouble: string) => troubles.push(trouble);
  const guardian = new Guardian({ clock: realClock, onTrouble, ...(program === undefined ? {} : { program }) });
  opened.push(guardian);
  return { guardian, troubles };
}

/** The guardian process alone, whose pipe the test holds. */
function startGuardian({ command, args } = guardianProgram(process.platform), PATH = process.env.PATH): ChildProcess {
  const guardian = spawn(command, args, { env: { PATH }, stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  started.push(guardian);
  return guardian;
}

/** The guardian process on a system where one program is another one. */
function startGuardianWith(name: string, text: string, program?: GuardianProgram): ChildProcess {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-programs-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, name), text, { mode: 0o755 });
  return startGuardian(program, `${folder}:${process.env.PATH}`);
}

/** A process of a family, in a session of its own. */
function spawnMarked(program: string, mark: string): ChildProcessWithoutNullStreams {
  const env = { ...process.env, [`TRUNKLINE_FAMILY_${mark}`]: '1' };
  const marked = spawn(process.execPath, [fixture(program)], { env, detached: true });
  started.push(marked);
  return marked;
}

async function stubborn(): Promise<Observed> {
  const observed = spawnFixture('ignore-sigterm.mjs');
  await observed.says('up');
  return observed;
}

async function processOf(guardian: Guardian): Promise<number> {
  await until('the guardian process runs', () => guardian.pid !== undefined && isAlive(guardian.pid));
  return guardian.pid ?? 0;
}

function isAlive(pid: number): boolean {
  return liveMembers([pid]).length > 0;
}

describe('the guardian process', () => {
  it.skipIf(IS_WINDOWS)('ends what is registered when its pipe closes, by SIGTERM first, and then itself', async () => {
    const [polite, rude] = [spawnFixture('ignore-eof.mjs'), await stubborn()];
    await polite.says('up');
    const guardian = startGuardian();
    guardian.stdin?.end(`+${polite.child.pid}\n+${rude.child.pid}\n`);
    const endedAt = performance.now();
    expect(await polite.child.exit).toEqual({ code: null, signal: 'SIGTERM' });
    expect(rude.live()).toHaveLength(1);
    await rude.child.exit;
    expect(rude.events.exit?.signal).toBe('SIGKILL');
    // A process has two seconds after SIGTERM, by a real clock that the shell reads.
    expect(performance.now() - endedAt).toBeGreaterThan(1_900);
    expect(rude.stdout()).toBe('up\nSIGTERM ignored\n');
    await until('the guardian process is gone', () => guardian.exitCode === 0);
  });

  it('ends what it was given at its start, though its pipe closes before anything came by it', async () => {
    const [one, other] = [spawnFixture('ignore-eof.mjs'), spawnFixture('ignore-eof.mjs')];
    await Promise.all([one.says('up'), other.says('up')]);
    const { command, args } = guardianProgram(process.platform);
    const given = [`+${one.child.pid}`, `+${other.child.pid}`];
    startGuardian({ command, args: [...args, ...given] }).stdin?.end(`-${other.child.pid}\n`);
    expect(await one.child.exit).toEqual(exitBy('SIGTERM'));
    expect(other.live()).toHaveLength(1);
  });

  it.runIf(SHOWS_VARIABLES)(
    'ends the processes with a registered mark, by SIGTERM first, and no other process',
    async () => {
      const [known, gone] = [`a${MARK.slice(1)}`, `b${MARK.slice(1)}`];
      const [polite, rude] = [spawnMarked('ignore-eof.mjs', known), spawnMarked('ignore-sigterm.mjs', known)];
      const stranger = spawnMarked('ignore-sigterm.mjs', gone);
      await Promise.all([polite, rude, stranger].map(({ stdout }) => once(stdout, 'data')));
      const said = once(rude.stdout, 'data');
      const guardian = startGuardian();
      guardian.stdin?.end(`+f${gone}\n+f${known}\n+999999\n-999999\n-f${gone}\n`);
      const exits = await Promise.all([once(polite, 'exit'), once(rude, 'exit'), once(guardian, 'exit')]);
      expect(exits.map(([, signal]) => signal)).toEqual(['SIGTERM', 'SIGKILL', null]);
      expect(String((await said)[0])).toBe('SIGTERM ignored\n');
      expect(isAlive(stranger.pid ?? 0)).toBe(true);
    },
  );

  it.runIf(SHOWS_VARIABLES)('sends a process one SIGTERM only, also through its group', async () => {
    const group = spawnMarked('ignore-sigterm.mjs', MARK);
    let said = '';
    group.stdout.on('data', (text) => {
      said += text;
    });
    await until('it runs', () => said === 'up\n');
    startGuardian().stdin?.end(`+${group.pid}\n+f${MARK}\n`);
    await once(group, 'close');
    expect(said).toBe('up\nSIGTERM ignored\n');
  });

  it.runIf(process.platform === 'linux')(
    'searches again, since a process may get its mark after a search',
    async () => {
      const marked = spawnMarked('ignore-eof.mjs', MARK);
      await once(marked.stdout, 'data');
      // Nothing is found by the first search of the environments.
      const grep = '#!/bin/sh\nfor last; do :; done\ncase $last in /proc/*) mkdir "$0.searched" && exit 1 ;; esac\n';
      const guardian = startGuardianWith('grep', `${grep}exec /bin/grep "$@"\n`);
      guardian.stdin?.end(`+f${MARK}\n`);
      expect((await once(marked, 'exit'))[1]).toBe('SIGTERM');
      await once(guardian, 'exit');
    },
  );

  it.runIf(process.platform === 'linux')('reads every environment where grep stops at a null byte', async () => {
    const marked = spawnMarked('ignore-eof.mjs', MARK);
    await once(marked.stdout, 'data');
    // Like the grep of BusyBox in Alpine: the rest of a line after a null byte does not exist.
    const grep = '#!/bin/sh\nfor last; do :; done\ncase $last in /proc/*) exit 1 ;; esac\n';
    const guardian = startGuardianWith('grep', `${grep}sed 's/\\x00.*//' | /bin/grep "$@"\n`);
    guardian.stdin?.end(`+f${MARK}\n`);
    expect((await once(marked, 'exit'))[1]).toBe('SIGTERM');
    await once(guardian, 'exit');
  });

  it.runIf(SHOWS_VARIABLES)('ends a registered process without a mark, unless it is a later one', async () => {
    const start = async () => {
      const child = spawn(process.execPath, [fixture('ignore-eof.mjs')], { env: {}, detached: true });
      started.push(child);
      await once(child.stdout, 'data');
      return { child, pid: child.pid ?? 0, startTime: (await identify(child.pid ?? 0))?.startTime };
    };
    const [hidden, later, gone] = [await start(), await start(), await start()];
    const guardian = startGuardian();
    const removed = `p${gone.pid}/${gone.startTime}`;
    guardian.stdin?.end(`+p${hidden.pid}/${hidden.startTime}\n+${removed}\n+p${later.pid}/1\n-${removed}\n`);
    expect((await once(hidden.child, 'exit'))[1]).toBe('SIGTERM');
    await once(guardian, 'exit');
    expect([later, gone].map(({ pid }) => isAlive(pid))).toEqual([true, true]);
  });

  it.runIf(SHOWS_VARIABLES).each(['+f', '+f;kill', `+f${MARK}`, '+f.*'])(
    'ends when no process has the mark (%s)',
    async (line) => {
      const guardian = startGuardian();
      guardian.stdin?.end(`${line}\n`);
      expect((await once(guardian, 'exit'))[0]).toBe(0);
    },
  );

  it('does not touch groups that were removed, wherever they stand in the list', async () => {
    const children = await Promise.all([stubborn(), stubborn(), stubborn()]);
    const [first, middle, last] = children.map(({ child }) => child.pid);
    const guardian = startGuardian();
    guardian.stdin?.write(`+${first}\n+${middle}\n+${last}\n`);
    guardian.stdin?.end(`-${middle}\n-${first}\n-4\n-${last}\n`);
    await once(guardian, 'exit');
    expect(children.map(({ live }) => live().length)).toEqual([1, 1, 1]);
    expect(children.map(({ stdout }) => stdout())).toEqual(['up\n', 'up\n', 'up\n']);
  });

  it('ignores a line that is cut off or names no group', async () => {
    const child = await stubborn();
    const guardian = startGuardian();
    guardian.stdin?.end(
      `+0\n+1\n+\n+0${child.child.pid}\n${child.child.pid}\n+x\n+-1\n+${child.child.pid} 1\n+${child.child.pid}`,
    );
    const [code] = await once(guardian, 'exit');
    expect(code).toBe(0);
    expect(child.stdout()).toBe('up\n');
    expect(child.live()).toHaveLength(1);
  });

  it.runIf(process.platform === 'linux')('goes on after the signals of a terminal and of a manager', async () => {
    const child = await stubborn();
    const guardian = startGuardian();
    guardian.stdin?.write(`+${child.child.pid}\n`);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) {
      await until(`it ignores ${signal}`, () => ignores(guardian.pid ?? 0, constants.signals[signal]));
      process.kill(-(guardian.pid ?? 0), signal);
    }
    guardian.stdin?.end();
    await until('the child is gone', () => child.live().length === 0);
    await until('the guardian process is gone', () => guardian.exitCode === 0);
  });

  it.skipIf(IS_WINDOWS)(
    'ends on Windows what a leader has left that has ended, by its parent and its start time',
    async () => {
      const [left, later, foreign] = [
        spawnFixture('ignore-eof.mjs'),
        spawnFixture('ignore-eof.mjs'),
        spawnFixture('ignore-eof.mjs'),
      ];
      await Promise.all([left, later, foreign].map(({ says }) => says('up')));
      const [begun, leader] = [Date.now(), 4_000_001];
      // As PowerShell lists them: the leader has ended, and has started two processes. An earlier one with its pid has started the third.
      const rows = [
        [left.child.pid, leader, begun + 1],
        [later.child.pid, left.child.pid, begun + 2],
        [foreign.child.pid, leader, begun - 60_000],
      ];
      const script = `for (const row of ${JSON.stringify(rows)}) try { process.kill(row[0], 0); console.log(...row, 'x'); } catch {}`;
      const guardian = startGuardianWith(
        'powershell.exe',
        `#!${process.execPath}\n${script}\n`,
        guardianProgram('win32'),
      );
      guardian.stdin?.end(`+${leader}@${begun}\n`);
      expect((await Promise.all([left.child.exit, later.child.exit])).map(({ signal }) => signal)).toEqual([
        'SIGKILL',
        'SIGKILL',
      ]);
      await until('the guardian process is gone', () => guardian.exitCode === 0);
      expect(foreign.live()).toHaveLength(1);
    },
  );

  it.skipIf(IS_WINDOWS)('is a Node that calls taskkill on Windows where the processes cannot be listed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-taskkill-'));
    try {
      const log = join(folder, 'log');
      writeFileSync(join(folder, 'taskkill'), `#!/bin/sh\necho "$@" >> ${log}\n`, { mode: 0o755 });
      const { command, args } = guardianProgram('win32');
      const env = { PATH: `${folder}:/usr/bin:/bin` };
      const guardian = spawn(command, [...args, '+103', `+f${MARK}`], {
        env,
        stdio: ['pipe', 'ignore', 'inherit'],
        detached: true,
      });
      started.push(guardian);
      guardian.stdin?.end('+101\n+102\n-101\n+x\n+104');
      expect(await once(guardian, 'exit')).toEqual([0, null]);
      expect(readFileSync(log, 'utf8').trimEnd().split('\n').sort()).toEqual(['/PID 102 /T /F', '/PID 103 /T /F']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("the guardian's owner", () => {
  it('starts its process with the first group, in a session of its own, and lets it go at the end', async () => {
    const child = await stubborn();
    const { guardian } = open();
    expect(guardian.pid).toBeUndefined();
    guardian.add(child.child.pid ?? 0);
    const pid = await processOf(guardian);
    if (!IS_WINDOWS) expect(leadsSession(pid)).toBe(true);
    guardian.remove(child.child.pid ?? 0);
    await guardian.close();
    await until('the guardian process is gone', () => !isAlive(pid));
    expect(child.stdout()).toBe('up\n');
  });

  it('replaces a process that was killed, passes every group to the new one, and reports it once', async () => {
    const children = await Promise.all([stubborn(), stubborn()]);
    const { guardian, troubles } = open();
    for (const { child } of children) guardian.add(child.pid ?? 0);
    for (let kills = 0; kills < 3; kills += 1) {
      const pid = await processOf(guardian);
      process.kill(pid, 'SIGKILL');
      await until('another one runs', () => guardian.pid !== undefined && guardian.pid !== pid);
    }
    expect(troubles).toEqual([IS_WINDOWS ? 'exit code 1' : 'SIGKILL']);
    await guardian.close();
    await until('the children are gone', () => children.every(({ live }) => live().length === 0));
  });

  it('tells its process additions and removals in their order', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'guardian-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const told = join(folder, 'told');
    const { guardian } = open({
      command: process.execPath,
      args: ['-e', 'process.stdin.pipe(fs.createWriteStream(process.argv[1]))', told],
    });
    guardian.addFamily(MARK);
    guardian.add(999_999_998);
    guardian.remove(999_999_998);
    guardian.removeFamily(MARK);
    guardian.add(999_999_998);
    guardian.remove(999_999_998);
    await guardian.close();
    const lines = `+999999998\n-999999998\n-f${MARK}\n+999999998\n-999999998\n`;
    await until('all is told', () => existsSync(told) && readFileSync(told, 'utf8').endsWith(lines));
  });

  it('starts no new process when no group is registered', async () => {
    const { guardian, troubles } = open();
    guardian.add(999_999_999);
    const pid = await processOf(guardian);
    guardian.remove(999_999_999);
    process.kill(pid, 'SIGKILL');
    await until('it is noticed', () => troubles.length > 0);
    // Longer than the pause before a new start.
    await new Promise((resolve) => realClock.schedule(200, () => resolve(undefined)));
    expect(guardian.pid).toBeUndefined();
  });

  it('reports once that there is no shell, and goes on without a process', async () => {
    const { guardian, troubles } = open({ command: '/no/such/shell', args: [] });
    guardian.add(999_999_999);
    await until('an attempt was made', () => troubles.length > 0);
    guardian.add(999_999_998);
    guardian.remove(999_999_998);
    await new Promise((resolve) => realClock.schedule(250, () => resolve(undefined)));
    expect(troubles).toEqual(['spawn /no/such/shell ENOENT']);
    expect(guardian.pid).toBeUndefined();
  });

  it('keeps no process alive that has no more work', async () => {
    const built = await builtModule('servers/process/guardian.ts');
    const program = `
      import { Guardian } from ${JSON.stringify(built)};
      const clock = { now: () => 0, schedule: (ms, task) => setTimeout(task, ms) };
      new Guardian({ clock, onTrouble: () => {} }).add(999999999);
    `;
    const running = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' });
    expect(await once(running, 'exit')).toEqual([0, null]);
    await until('its process is gone', () => guardiansOf(running.pid ?? 0).length === 0);
  });
});

/** Whether a process ignores a signal, as Linux tells it. */
function ignores(pid: number, signal: number): boolean {
  const [, mask = '0'] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return ((BigInt(`0x${mask}`) >> BigInt(signal - 1)) & 1n) === 1n;
}
