import { readdirSync } from 'node:fs';
import { execa } from 'execa';
import { errorCode } from '../errors/error-text.js';
import { statFields } from './process-identity.js';

export type GroupSignal = 'SIGTERM' | 'SIGKILL';

/**
 * Sends a signal to every member of a group; a group that is gone is left in peace.
 *
 * On Windows, where there are neither groups nor signals for console programs, both signals end the leader's process
 * tree at once. That path is untested.
 */
export function signalGroup(pgid: number, signal: GroupSignal): void {
  if (process.platform === 'win32') {
    void execa('taskkill', ['/PID', String(pgid), '/T', '/F'], { reject: false, stdio: 'ignore' });
    return;
  }
  try {
    process.kill(-pgid, signal);
  } catch {
    // Gone already (ESRCH), or owned by somebody else (EPERM): whoever asks whether it is alive will learn which.
  }
}

/**
 * Whether a group has members that can still do something. Zombies do not count: in a container whose first process
 * does not reap orphans they stay for ever.
 *
 * On Windows only the leader is looked at. That path is untested.
 */
export function isGroupAlive(pgid: number): boolean {
  try {
    process.kill(process.platform === 'win32' ? pgid : -pgid, 0);
  } catch (error) {
    // EPERM means that there is a member, of another user.
    return errorCode(error) === 'EPERM';
  }
  return process.platform !== 'linux' || hasLivingMember(pgid);
}

function hasLivingMember(pgid: number): boolean {
  try {
    // From the youngest pid down, since a group that lives was most likely started of late.
    return readdirSync('/proc').findLast((entry) => /^\d+$/.test(entry) && isLivingMember(entry, pgid)) !== undefined;
  } catch {
    // Where /proc cannot be read (no descriptors left, not mounted), the kernel's answer to the signal stands.
    return true;
  }
}

function isLivingMember(pid: string, pgid: number): boolean {
  const [state, , pgrp] = statFields(pid);
  return Number(pgrp) === pgid && state !== 'Z' && state !== 'X';
}
