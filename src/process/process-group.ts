import { readdirSync } from 'node:fs';
import { execa } from 'execa';
import { errorCode } from '../errors/error-text.js';
import { statFields } from './process-identity.js';

export type GroupSignal = 'SIGTERM' | 'SIGKILL';

/**
 * Sends a signal to every process of a group; does nothing when the group has ended.
 *
 * Windows has neither process groups nor signals for console programs: both signals end the process tree of the leader.
 * That path is untested.
 */
export function signalGroup(pgid: number, signal: GroupSignal): void {
  if (process.platform === 'win32') {
    void execa('taskkill', ['/PID', String(pgid), '/T', '/F'], { reject: false, stdio: 'ignore' });
    return;
  }
  try {
    process.kill(-pgid, signal);
  } catch {
    // ESRCH: the group has ended. EPERM: it belongs to another user. `isGroupAlive` tells them apart.
  }
}

/**
 * Whether a group has processes that still run. Zombies do not count: in a container whose first process does not reap
 * orphans they stay forever.
 *
 * On Windows only the leader is checked. That path is untested.
 */
export function isGroupAlive(pgid: number): boolean {
  try {
    process.kill(process.platform === 'win32' ? pgid : -pgid, 0);
  } catch (error) {
    // EPERM: there is a process, and it belongs to another user.
    return errorCode(error) === 'EPERM';
  }
  return process.platform !== 'linux' || hasLivingMember(pgid);
}

function hasLivingMember(pgid: number): boolean {
  try {
    // Starts with the highest pid, since a running group was most likely started recently.
    return readdirSync('/proc').findLast((entry) => /^\d+$/.test(entry) && isLivingMember(entry, pgid)) !== undefined;
  } catch {
    // /proc cannot be read (no free descriptors, not mounted): trust the kernel's answer to the signal.
    return true;
  }
}

function isLivingMember(pid: string, pgid: number): boolean {
  const [state, , pgrp] = statFields(pid);
  return Number(pgrp) === pgid && state !== 'Z' && state !== 'X';
}
