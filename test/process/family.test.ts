import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { identify } from '../../src/host/process/processes.js';
import { familyVariable } from '../../src/servers/process/environment.js';
import { endFamily, findFamily } from '../../src/servers/process/family.js';
import { FakeClock } from '../support/fake-clock.js';
import { SHOWS_VARIABLES } from '../support/platform.js';
import { fixture, realClock, until } from '../support/processes.js';

const KILL_AFTER_MS = 20_000;

const newMark = () => randomBytes(16).toString('hex');

/** A running program in a session of its own. */
async function start(program: string, env: Readonly<Record<string, string>>): Promise<ChildProcessWithoutNullStreams> {
  const child = spawn(process.execPath, [fixture(program)], { env, detached: true });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

async function pidsOf(mark: string): Promise<number[]> {
  return (await findFamily(mark)).map(({ pid }) => pid);
}

describe.runIf(SHOWS_VARIABLES)('findFamily', () => {
  it('finds the processes with the mark, and when each of them was started', async () => {
    const mark = newMark();
    const [one, other] = [
      await start('ignore-eof.mjs', familyVariable(mark)),
      await start('ignore-eof.mjs', { A: 'b', ...familyVariable(mark), ...familyVariable(newMark()) }),
    ];
    const members = await findFamily(mark);
    expect(members.map(({ pid }) => pid).sort()).toEqual([one.pid, other.pid].sort());
    for (const { pid, startTime } of members) expect((await identify(pid))?.startTime).toBe(startTime);
  });

  it.each([
    ['with another mark', () => familyVariable(newMark())],
    ['with the mark in a value', (name: string) => ({ A: `${name}=1`, B: name })],
    ['with the mark as the end of a name', (name: string) => ({ [`X${name}`]: '1' })],
    ['with the mark as the beginning of a name', (name: string) => ({ [`${name}0`]: '1' })],
  ])('does not find a process %s', async (_which, environment) => {
    const mark = newMark();
    const [name = ''] = Object.keys(familyVariable(mark));
    await start('ignore-eof.mjs', environment(name));
    expect(await findFamily(mark)).toEqual([]);
  });

  it('finds the mark anywhere in a large environment', async () => {
    const mark = newMark();
    const chunk = 64 * 1024;
    // The variable lies across the end of what is read at once, or begins right there.
    for (const before of [chunk - 51, chunk - 25, chunk - 2, chunk - 1, chunk]) {
      // A name, "=" and the null byte at the end take four bytes.
      const child = await start('ignore-eof.mjs', { AA: 'x'.repeat(before - 4), ...familyVariable(mark) });
      expect(await pidsOf(mark), String(before)).toEqual([child.pid]);
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  });

  it('serves several marks at once, each with its own processes', async () => {
    const marks = [newMark(), newMark(), newMark()];
    const children = await Promise.all(marks.slice(1).map((mark) => start('ignore-eof.mjs', familyVariable(mark))));
    const found = await Promise.all([...marks, ...marks].map(pidsOf));
    const expected = [[], ...children.map(({ pid }) => [pid])];
    expect(found).toEqual([...expected, ...expected]);
  });

  it('does not find processes that have ended', async () => {
    const mark = newMark();
    const child = await start('ignore-eof.mjs', familyVariable(mark));
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await findFamily(mark)).toEqual([]);
  });
});

describe.runIf(SHOWS_VARIABLES)('endFamily', () => {
  it('is over after one search, without waiting, when there is no process', async () => {
    const clock = new FakeClock();
    expect(await endFamily(newMark(), KILL_AFTER_MS, clock)).toEqual({ signaled: [], gone: true });
    expect(clock.pending).toBe(0);
  });

  it('sends SIGTERM once, and SIGKILL when it is time', async () => {
    const mark = newMark();
    const [polite, rude] = [
      await start('ignore-eof.mjs', familyVariable(mark)),
      await start('ignore-sigterm.mjs', familyVariable(mark)),
    ];
    let said = '';
    rude.stdout.on('data', (text) => {
      said += text;
    });
    const clock = new FakeClock();
    const ending = endFamily(mark, KILL_AFTER_MS, clock);
    const [, signal] = await once(polite, 'exit');
    await until('both have got SIGTERM', () => said !== '' && clock.pending === 1);
    for (let polls = 0; polls < 5; polls += 1) {
      clock.advance(100);
      await until('it has searched again', () => clock.pending === 1);
    }
    expect(rude.signalCode).toBeNull();
    clock.advance(KILL_AFTER_MS);
    await once(rude, 'close');
    await until('it searches again', () => clock.pending === 1);
    clock.advance(100);
    const { signaled, gone } = await ending;
    expect([signal, rude.signalCode, said]).toEqual(['SIGTERM', 'SIGKILL', 'SIGTERM ignored\n']);
    expect(signaled.toSorted()).toEqual([polite.pid, rude.pid].toSorted());
    expect(gone).toBe(true);
  });

  it('is hastened by a second call with a shorter time', async () => {
    const mark = newMark();
    const rude = await start('ignore-sigterm.mjs', familyVariable(mark));
    const clock = new FakeClock();
    const ending = endFamily(mark, KILL_AFTER_MS, clock);
    await until('it waits for the process', () => clock.pending === 1);
    expect(endFamily(mark, 0, clock)).toBe(ending);
    await once(rude, 'exit');
    expect(rude.signalCode).toBe('SIGKILL');
    await until('it searches again', () => clock.pending === 1);
    clock.advance(100);
    expect(await ending).toMatchObject({ gone: true });
  });

  it('gives up two seconds after the first SIGKILL, and names the processes', async () => {
    const mark = newMark();
    const stuck = await start('ignore-eof.mjs', familyVariable(mark));
    // As with a process that is stuck in the kernel, signals have no effect.
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    onTestFinished(() => kill.mockRestore());
    const clock = new FakeClock();
    const ending = endFamily(mark, 0, clock);
    await until('it waits', () => clock.pending === 1);
    clock.advance(1_999);
    await until('it waits again', () => clock.pending === 1);
    clock.advance(10);
    expect(await ending).toEqual({ signaled: [stuck.pid], gone: false });
    expect(kill.mock.calls).toEqual([
      [stuck.pid, 'SIGKILL'],
      [stuck.pid, 'SIGKILL'],
    ]);
  });

  it('ends processes that start others when they end', async () => {
    const mark = newMark();
    // Each SIGTERM starts a successor in a session of its own.
    const heir = `
      const { spawn } = require('node:child_process');
      process.once('SIGTERM', () => {
        spawn(process.execPath, ['-e', process.env.HEIR], { detached: true, stdio: 'ignore' });
        process.exit();
      });
      setInterval(() => {}, 1_000);
      console.log('up');`;
    const env = { HEIR: heir, ...familyVariable(mark) };
    const first = spawn(process.execPath, ['-e', heir], { env, detached: true });
    await once(first.stdout, 'data');
    expect(await endFamily(mark, 500, realClock)).toMatchObject({ gone: true });
    expect(await findFamily(mark)).toEqual([]);
  });
});
