import { readdirSync } from 'node:fs';
import { statFields } from './process-identity.js';

/** Less processor time than this between two calls counts as none. In ticks of the kernel, of 10 ms each. */
const MIN_TICKS = 2;

/**
 * Returns a function that tells whether a process computes: it has used the processor since the last call, or waits for
 * it now. The function returns `undefined` if that is unknown: outside Linux, and when the process has ended.
 */
export function createComputingProbe(pid: number): () => boolean | undefined {
  let seen = 0;
  return () => {
    const fields = statFields(String(pid));
    const [state] = fields;
    if (state === undefined) return undefined;
    // Fields 14 and 15 of /proc/PID/stat: time in user mode and in the kernel.
    const used = Number(fields[11]) + Number(fields[12]);
    const hasComputed = used - seen >= MIN_TICKS;
    seen = used;
    return hasComputed || state === 'R' || hasRunnableThread(pid);
  };
}

/** The main thread may wait for a thread that waits for the processor, as when files are read in a pool of threads. */
function hasRunnableThread(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).some((thread) => statFields(`${pid}/task/${thread}`)[0] === 'R');
  } catch {
    // The process has just ended.
    return false;
  }
}
