import { readFileSync } from 'node:fs';

/** A process, with how many tasks the system had started at some time before it; `undefined` if nobody had counted. */
export interface FirstProcess {
  readonly pid: number;
  readonly tasksBefore: number | undefined;
}

/** Tasks that may start between the count and the listing of all processes. */
const MARGIN = 1_000;

let counted: number | undefined;

/** How many tasks the system had started when `countTasks` was last called. Reads nothing. */
export function tasksCounted(): number | undefined {
  return counted;
}

/** Counts the tasks, which are processes and threads, that the system has started since its boot. */
export function countTasks(): number | undefined {
  counted = numberIn('/proc/stat', /^processes (\d+)$/m);
  return counted;
}

/**
 * Whether every process that started after this one has a higher pid. The kernel gives pids in ascending order and skips
 * those in use; at the highest one it starts over with low ones. So pids are in order until as many tasks have started
 * as there were pids left. False if that is unknown: outside Linux, or where the system hides its counts.
 */
export function isInPidOrderSince({ pid, tasksBefore }: FirstProcess): boolean {
  if (tasksBefore === undefined) return false;
  const now = countTasks();
  const running = numberIn('/proc/loadavg', /\/(\d+) /);
  const highest = numberIn('/proc/sys/kernel/pid_max', /^(\d+)/);
  if (now === undefined || running === undefined || highest === undefined) return false;
  return now >= tasksBefore && pid + (now - tasksBefore) + running + MARGIN < highest;
}

/** Undefined also for 0, which is what sandboxes show that do not count. */
function numberIn(file: string, pattern: RegExp): number | undefined {
  try {
    const [, digits] = pattern.exec(readFileSync(file, 'latin1')) ?? [];
    return Number(digits) || undefined;
  } catch {
    return undefined;
  }
}
