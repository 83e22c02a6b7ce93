import { UsageError } from '../errors/usage-error.js';
import { openProcessLock } from './process-lock.js';
import { changeLockFolder } from './user-files.js';

/** Longer than a lock whose holder cannot be identified stays valid, and than a client's own program may take. */
const MAX_WAIT_MS = 120_000;

/**
 * Runs `change` while no other command of this user changes a file: the configuration, its environment file, the stored
 * secrets, files of clients, or the journal of `undo`. Two commands at once would otherwise read the same content, and
 * the second write would lose the first.
 *
 * `change` must not wait for a person, and must not call this function, because it would wait for itself. A command that
 * was killed holds no lock. A dry run changes nothing, and takes no lock. Throws a `UsageError` if another command holds the
 * lock for two minutes.
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
    // The data folder cannot be written. A change of a file elsewhere is possible all the same, and a change in it reports why not.
    return async () => {};
  }
}
