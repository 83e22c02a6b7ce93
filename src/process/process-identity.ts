import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { execa } from 'execa';
import { errorCode } from '../errors/error-text.js';

/** What tells a process from another one that gets the same pid later. */
export interface ProcessIdentity {
  /** When it was started, in the system's own words: to be compared, not to be read. */
  readonly startTime: string;
  /** It ended, and whoever started it has not asked yet how. */
  readonly isZombie: boolean;
}

/**
 * The process that has this pid now, if there is one.
 *
 * On Linux the look is taken before this returns. Elsewhere `ps` is asked, which is untested; on Windows nobody is.
 */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  if (process.platform === 'win32') return undefined;
  if (process.platform !== 'linux') return await askPs(pid);
  const fields = statFields(String(pid));
  const [state] = fields;
  // The 22nd field of all, in ticks since the machine was started.
  const startTime = fields[19];
  return startTime === undefined ? undefined : { startTime, isZombie: state === 'Z' || state === 'X' };
}

/** Where pids mean the same as here: this machine since it was started, and on Linux this namespace of pids. */
export function hostIdentity(): string {
  if (process.platform !== 'linux') return hostname();
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    // A sandbox that hides them.
    return hostname();
  }
}

/**
 * What Linux says of a process from its state on: "pid (name) state ppid pgrp …", where the name may hold spaces and
 * parentheses. Empty for one that has ended.
 */
export function statFields(pid: string): readonly string[] {
  const stat = readStat(pid);
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function readStat(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ESRCH') return '';
    throw error;
  }
}

async function askPs(pid: number): Promise<ProcessIdentity | undefined> {
  const args = ['-o', 'stat=,lstart=', '-p', String(pid)];
  const { stdout } = await execa('ps', args, { reject: false, env: { LC_ALL: 'C' }, stderr: 'ignore' });
  const [, state, startTime] = /^\s*(\S+)\s+(\S.*?)\s*$/.exec(stdout) ?? [];
  if (state === undefined || startTime === undefined) return undefined;
  return { startTime, isZombie: state.startsWith('Z') };
}
