import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { identify, isRunning } from './process-identity.js';

/** How long a process may take to end after SIGKILL, and the time between two looks. */
const GONE_WITHIN_MS = 2_000;
const POLL_MS = 20;

/**
 * Ends the process of a hub that does not answer with SIGKILL, if the process with this pid really has `folder`, the folder
 * of the hubs, in its command line. Resolves with whether it is gone.
 */
export async function endHubProcess(pid: number, folder: string): Promise<boolean> {
  const identity = await identify(pid);
  if (identity === undefined || !(await commandLineOf(pid)).includes(folder)) return false;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
  for (let waitedMs = 0; waitedMs < GONE_WITHIN_MS; waitedMs += POLL_MS) {
    if (!(await isRunning({ pid, ...identity }))) return true;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return false;
}

/** Empty if the process has ended. */
async function commandLineOf(pid: number): Promise<string> {
  try {
    if (process.platform === 'linux') return await readFile(`/proc/${pid}/cmdline`, 'utf8');
    return (await promisify(execFile)('ps', ['-ww', '-o', 'args=', '-p', String(pid)])).stdout;
  } catch {
    return '';
  }
}
