import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { familyVariable } from '../../src/servers/process/environment.js';
import { endFamily } from '../../src/servers/process/family.js';
import { OrphanGuard } from '../../src/servers/process/orphan-guard.js';
import { folderWith } from '../config/files.js';
import { FakeClock } from '../support/fake-clock.js';
import { fixture, killGroups, liveMembers, realClock, until } from '../support/processes.js';
import { observe } from './spawned.js';

const SILENT = { warn: () => {}, debug: () => {} };

/** Starts a helper with an empty environment in a session of its own, as daemons do, and prints its pid. */
const LEADER = `
  const { spawn } = require('node:child_process');
  const options = { env: {}, detached: true, stdio: 'ignore' };
  console.log(spawn(process.execPath, [process.argv[1]], options).pid, '');
  setInterval(() => {}, 1_000);`;

/** A server whose helper hides from a search by the mark, and which the guard has seen two seconds after its start. */
async function startHiding() {
  const runFolder = folderWith();
  const clock = new FakeClock();
  const guard = new OrphanGuard({ clock, logger: SILENT, runFolder });
  const mark = guard.announce();
  const leader = observe({
    command: process.execPath,
    args: ['-e', LEADER, fixture('ignore-sigterm.mjs')],
    cwd: process.cwd(),
    env: familyVariable(mark),
  });
  guard.add(leader.child.pid ?? 0, mark);
  onTestFinished(() => guard.close());
  await leader.says(' ');
  const helper = Number(leader.stdout());
  onTestFinished(() => killGroups([helper]));
  const runs = () => readdirSync(runFolder).filter((name) => name.endsWith('.json'));
  await until('the server is in the run file', () => runs().length === 1);
  clock.advance(2_000);
  const run = () => readFileSync(join(runFolder, runs()[0] ?? ''), 'utf8');
  await until('the helper is in the run file', () => run().includes(`{"pid":${helper},`));
  const endLeader = async () => {
    process.kill(leader.child.pid ?? 0, 'SIGKILL');
    await leader.child.exit;
  };
  return { guard, mark, helper, endLeader, run, isLeft: () => liveMembers([helper]).length > 0 };
}

describe.runIf(process.platform !== 'win32')('a helper that bears no mark, and whose parent has ended', () => {
  it('is ended with its family', async () => {
    const { mark, helper, endLeader, isLeft } = await startHiding();
    await endLeader();
    expect(isLeft()).toBe(true);
    expect(await endFamily(mark, 0, realClock)).toEqual({ signaled: [helper], gone: true });
    expect(isLeft()).toBe(false);
  });

  it('F70: is ended by the guardian when the gateway has ended', async () => {
    const { guard, endLeader, isLeft } = await startHiding();
    await endLeader();
    await guard.close();
    await until('the helper is gone', () => !isLeft());
  });

  it('F70: is ended by the next start when gateway and guardian are killed', async () => {
    const { endLeader, run, isLeft } = await startHiding();
    await endLeader();
    const runFolder = folderWith();
    const gateway = { pid: process.pid, startTime: 'long ago' };
    writeFileSync(join(runFolder, 'left.json'), JSON.stringify({ ...JSON.parse(run()), gateway }), { mode: 0o600 });
    const next = new OrphanGuard({ clock: realClock, logger: SILENT, runFolder });
    await next.sweep();
    expect(isLeft()).toBe(false);
    expect(readdirSync(runFolder)).toEqual([]);
  });

  it('is left alone when its family is released', async () => {
    const { guard, mark, endLeader, isLeft } = await startHiding();
    guard.release(mark);
    await endLeader();
    // It waits for the guardian, which has nothing to end.
    await guard.close();
    expect(isLeft()).toBe(true);
  });
});
