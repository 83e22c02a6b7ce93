import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../src/timing/clock.js';

/** Real time, for tests with real processes. */
export const realClock: Clock = {
  now: () => performance.now(),
  schedule: (delayMs, task) => {
    const timer = setTimeout(task, delayMs);
    return () => clearTimeout(timer);
  },
};

/** The path of a program under `test/fixtures/processes`. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/processes/${name}`, import.meta.url));
}

/** What still lives in the given groups, as lines of `ps`; zombies are dead. Asks `ps`, so as not to trust our own code. */
export function liveMembers(pgids: readonly (number | undefined)[]): string[] {
  const listing = execFileSync('ps', ['-A', '-o', 'pgid=,pid=,stat=,args='], { encoding: 'utf8' });
  return listing.split('\n').filter((line) => {
    const [pgid, , stat] = line.trim().split(/\s+/);
    return pgids.includes(Number(pgid)) && stat?.startsWith('Z') === false;
  });
}

/** The ids of the processes that live and have `mark` in their command line. */
export function processesOf(mark: string): number[] {
  const listing = execFileSync('ps', ['-A', '-o', 'stat=,pid=,args='], { encoding: 'utf8' });
  const lines = listing.split('\n').filter((line) => line.includes(mark) && !line.startsWith('Z'));
  return lines.map((line) => Number(line.trim().split(/\s+/)[1]));
}

/** Ends what a failed test left behind. */
export function killGroups(pgids: readonly (number | undefined)[]): void {
  for (const pgid of pgids) {
    try {
      if (pgid !== undefined) process.kill(-pgid, 'SIGKILL');
    } catch {
      // Gone, as it should be.
    }
  }
}

/** Resolves when `condition` holds; fails with `what` when that takes longer than `withinMs`. */
export async function until(what: string, condition: () => boolean, withinMs = 5_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const asked = performance.now();
    if (condition()) return;
    const now = performance.now();
    if (now > deadline) throw new Error(`Waited ${withinMs} ms in vain: ${what}`);
    // One that asks `ps` would otherwise take a whole processor from what it waits for.
    await new Promise((resolve) => setTimeout(resolve, Math.min(50, Math.max(5, 3 * (now - asked)))));
  }
}

/** The guardians that watch over what a gateway started, as lines of `ps` that begin with the pid. */
export function guardiansOf(gatewayPid: number): string[] {
  const listing = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,stat=,args='], { encoding: 'utf8' });
  return listing.split('\n').filter((line) => {
    return line.includes(`trunkline-guardian ${gatewayPid} `) && !/^\s*\d+ Z/.test(line);
  });
}
