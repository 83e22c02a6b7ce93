import { UsageError } from '../host/errors/usage-error.js';
import { openProcessLock } from '../host/process/process-lock.js';
import { changeLockFolder } from './user-files.js';

/**
 * Longest wait for the lock of changes. It exceeds the time after which the lock of a dead owner on another host is released, and
 * the time limit of the programs of MCP clients that a change may run.
 */
const MAX_WAIT_MS = 120_000;

/**
 * Runs `change` while no other command of this user changes files: the configuration, its environment file, the stored secrets, files of
 * clients, or the journal of `undo`. Without the lock, two commands could read the same content, and the second write would undo the first.
 *
 * `change` must not wait for the user, and must not call this function, because it would wait for itself. A killed command holds no lock. A
 * dry run takes no lock. Throws a `UsageError` if another command holds the lock for two minutes.
 */
export async function withChangeLock<T>(change: () => T | Promise<T>, { isDryRun = false } = {}): Promise<T> {
  if (isDryRun) return await change();
  const release = await acquire();
  try {
    return await change();
  } finally {
    await release();
  }
}

async function acquire(): Promise<() => Promise<void>> {
  const timeout = AbortSignal.timeout(MAX_WAIT_MS);
  try {
    return await openProcessLock(changeLockFolder(), () => {}).acquire(timeout);
  } catch {
    if (timeout.aborted) {
      throw new UsageError('another command of Trunkline is changing files for minutes', 'end it, or try again later');
    }
    // The data folder cannot be written. Files elsewhere can still be changed, and a change in the folder reports the reason.
    return async () => {};
  }
}
