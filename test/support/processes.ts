// Processes of this machine as the operating system reports them, fixture programs, and `until`, which waits for a
// condition. Tests use these instead of the code under test to find out which processes run.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { LISTING, parseListing } from '../../src/host/process/windows.js';

/** Real time, for tests with real processes. */
export { systemClock as realClock } from '../../src/host/observe/system-clock.js';

/** The path of a program under `test/fixtures/processes`. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/processes/${name}`, import.meta.url));
}

/** A running process; zombies are not listed. */
export interface ProcessEntry {
  readonly pid: number;
  /** The process that has started it. */
  readonly parent: number;
  /** Process group. */
  readonly pgid: number;
  /** The command line, with spaces between the arguments. */
  readonly args: string;
}

/** All running processes. Linux reports them in `/proc`, which costs a third of starting `ps`. */
function runningProcesses(): ProcessEntry[] {
  if (process.platform === 'linux') return readdirSync('/proc').flatMap(readProcess);
  if (process.platform === 'win32') {
    // Windows has no groups: each process counts as one.
    return parseListing(windowsListing()).map(({ pid, ppid, words }) => ({
      pid,
      parent: ppid,
      pgid: pid,
      args: words.join(' '),
    }));
  }
  const listing = execFileSync('ps', ['-A', '-ww', '-o', 'stat=,pid=,ppid=,pgid=,args='], { encoding: 'utf8' });
  const rows = [...listing.matchAll(/^\s*([^\sZ]\S*)\s+(\d+)\s+(\d+)\s+(\d+)\s+(.*)$/gm)];
  // Trunkline asks `ps` as well, in its own process group.
  const others = rows.filter(([, , , , , args = '']) => !/(?:^|\/)ps -/.test(args));
  return others.map(([, , pid, parent, pgid, args = '']) => {
    return { pid: Number(pid), parent: Number(parent), pgid: Number(pgid), args };
  });
}

function windowsListing(attempts = 3): string {
  try {
    return execFileSync(LISTING.command, LISTING.args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch (error) {
    // A busy Wine cannot start a program now and then.
    if (attempts === 1) throw error;
    return windowsListing(attempts - 1);
  }
}

/** One entry of `/proc`: empty when the entry is not a process, or when the process has ended meanwhile. */
function readProcess(name: string): ProcessEntry[] {
  const pid = Number(name);
  if (Number.isNaN(pid)) return [];
  try {
    const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
    // The name of the program stands in parentheses, and may hold parentheses itself.
    const [state, parent, pgid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return [];
    const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trimEnd();
    return [{ pid, parent: Number(parent), pgid: Number(pgid), args }];
  } catch {
    return [];
  }
}

/** The variables with which a process was started, as `NAME=value`. */
export function variablesOf(pid: number): string[] {
  if (process.platform === 'linux') return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  return ps('command', pid, '-E').split(' ');
}

/** Whether a process has a session of its own. */
export function leadsSession(pid: number): boolean {
  if (process.platform !== 'linux') return ps('stat', pid).includes('s');
  // The fields after the name: state, ppid, pgrp and session.
  return Number(/.*\) \S+ \d+ \d+ (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]) === pid;
}

/** A column of `ps` about a process. */
export function ps(column: string, pid: number, ...args: readonly string[]): string {
  return execFileSync('ps', [...args, '-ww', '-o', `${column}=`, '-p', String(pid)], { encoding: 'utf8' });
}

/** Whether a process runs. */
export function isRunning(pid: number): boolean {
  return runningProcesses().some((each) => each.pid === pid);
}

/** The processes of these groups that still run. */
export function liveMembers(pgids: readonly (number | undefined)[]): ProcessEntry[] {
  return runningProcesses().filter(({ pgid }) => pgids.includes(pgid));
}

/** The running processes that have `mark` in their command line. */
export function processesWith(mark: string): ProcessEntry[] {
  return runningProcesses().filter(({ args }) => args.includes(mark));
}

/**
 * The same without processes that one of them has just forked: until such a process runs a program of its own, it has the
 * command line of its parent.
 */
export function programsWith(mark: string): ProcessEntry[] {
  const all = processesWith(mark);
  return all.filter(({ parent }) => all.every(({ pid }) => pid !== parent));
}

/** The ids of the running processes that have `mark` in their command line. */
export function processesOf(mark: string): number[] {
  return processesWith(mark).map(({ pid }) => pid);
}

/** Ends the processes that a failed test left behind: those with `mark` in their command line. */
export function killAll(mark: string): void {
  for (const pid of processesOf(mark)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended since it was listed.
    }
  }
}

/**
 * Waits until the processes of a run have ended, whose folder is in the command line of each, and removes the folder. Fails
 * if a process is left, and kills it.
 */
export async function endRun(folder: string): Promise<void> {
  try {
    await until('every process of the run is gone', () => processesWith(folder).length === 0);
  } finally {
    killAll(folder);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Ends the process groups that a failed test left behind. */
export function killGroups(pgids: readonly (number | undefined)[]): void {
  for (const pgid of pgids) {
    try {
      if (pgid !== undefined) process.kill(process.platform === 'win32' ? pgid : -pgid, 'SIGKILL');
    } catch {
      // It is gone, as it should be.
    }
  }
}

/** Longest wait of a test, in milliseconds. It only bounds how long a failing test waits, as `vitest.config.ts` says of others. */
export const PATIENCE_MS = 60_000;

/** Resolves when `condition` holds; fails with `what` when that takes longer than `withinMs`. */
export async function until(what: string, condition: () => boolean, withinMs = PATIENCE_MS): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const asked = performance.now();
    if (condition()) return;
    const now = performance.now();
    if (now > deadline) throw new Error(`Waited ${withinMs} ms in vain: ${what}`);
    // A condition that lists processes takes milliseconds. The pause is ten times as long, so that checking leaves the
    // processor to the process that the test waits for.
    await new Promise((resolve) => setTimeout(resolve, Math.min(50, Math.max(5, 10 * (now - asked)))));
  }
}

/**
 * Moves a clock of the test until `condition` holds, for a gateway that waits by turns for the clock and for real processes. Nothing
 * that a process does in time can be late: the clock stands as soon as the condition holds.
 */
export async function passUntil(
  clock: { advance(ms: number): void },
  what: string,
  condition: () => boolean,
  stepMs = 100,
) {
  await until(what, () => {
    if (!condition()) clock.advance(stepMs);
    return condition();
  });
}

/** The guardian processes of a gateway. */
export function guardiansOf(gatewayPid: number): ProcessEntry[] {
  return processesWith(`trunkline-guardian ${gatewayPid} `);
}
