import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { errorCode } from '../errors/error-text.js';
import { machineName } from './machine-name.js';
import { windowsProcesses } from './windows.js';

/** Distinguishes a process from a later one with the same pid. */
interface ProcessIdentity {
  /** Start time in the format of the system: only for comparison. */
  readonly startTime: string;
  /** The process has ended, and its parent has not read its exit status yet. */
  readonly isZombie: boolean;
}

/**
 * Identifies the process with this pid; undefined when there is none.
 *
 * On Linux /proc is read synchronously. Windows uses PowerShell, other systems `ps`, which is untested.
 */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  if (process.platform === 'win32') return await windowsProcesses.identify(pid);
  if (process.platform !== 'linux') return await identifyByPs(pid);
  const fields = statFields(String(pid));
  const [state] = fields;
  // Field 22 of /proc/PID/stat: ticks between the boot and the start of the process.
  const startTime = fields[19];
  return startTime === undefined ? undefined : { startTime, isZombie: state === 'Z' || state === 'X' };
}

/** Whether the process with this pid is the one that started at this time, and has not ended. */
export async function isRunning({ pid, startTime }: { pid: number; startTime: string }): Promise<boolean> {
  const identity = await identify(pid);
  return identity?.startTime === startTime && !identity.isZombie;
}

/** Identifies the scope of pids: this boot of the machine, and on Linux the pid namespace. */
export function hostIdentity(): string {
  if (process.platform !== 'linux') return machineName();
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    // A sandbox hides these files.
    return machineName();
  }
}

/** The pids of all processes on Linux, as in /proc. */
export function listPids(): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
}

/**
 * The fields of /proc/PID/stat after the name: state, ppid, pgrp and so on. The name can contain spaces and parentheses.
 * Empty when the process has ended.
 */
export function statFields(pid: string): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    if (hasEnded(error)) return [];
    throw error;
  }
}

/** Whether a file of /proc could not be read because its process has ended. */
export function hasEnded(error: unknown): boolean {
  return ['ENOENT', 'ESRCH'].includes(errorCode(error) ?? '');
}

/** `identify` on systems without /proc. */
export async function identifyByPs(pid: number): Promise<ProcessIdentity | undefined> {
  const stdout = await runPs('-o', 'stat=,lstart=', '-p', String(pid)).catch(() => '');
  const [, state, startTime] = /^\s*(\S+)\s+(\S.*?)\s*$/.exec(stdout) ?? [];
  if (state === undefined || startTime === undefined) return undefined;
  return { startTime, isZombie: state.startsWith('Z') };
}

/**
 * Returns the output of `ps`. Rejects if it finds no process, or cannot run. Start times are in UTC, because `ps` would give them in
 * the time zone of its environment, and another Trunkline may have another one.
 */
export async function runPs(...args: readonly string[]): Promise<string> {
  const { execa } = await import('execa');
  const options = { env: { LC_ALL: 'C', TZ: 'UTC0' }, stderr: 'ignore', maxBuffer: Number.MAX_SAFE_INTEGER } as const;
  const { stdout } = await execa('ps', args, options);
  return stdout;
}

/** A process with its command line, which can hold secrets: compare it, never show it. */
export interface CommandLine {
  readonly pid: number;
  readonly ppid: number;
  /** The program and its arguments. If the system gives one text only, the words of this text. */
  readonly words: readonly string[];
}

/**
 * The processes of this user that run now. Rejects if the list cannot be read.
 *
 * On Linux /proc is read. Windows is asked with PowerShell, other systems with one `ps`, which is untested.
 */
export async function readCommandLines(): Promise<readonly CommandLine[]> {
  if (process.platform === 'win32') return (await windowsProcesses.list()).filter(({ words }) => words.length > 0);
  return process.platform === 'linux'
    ? listPids().flatMap(readProc)
    : parseCommandLines(await runPs('-x', '-ww', '-o', 'pid=,ppid=,command='));
}

function readProc(pid: string): CommandLine[] {
  try {
    if (statSync(`/proc/${pid}`).uid !== process.getuid?.()) return [];
    const [, ppid] = statFields(pid);
    const words = wordsIn(readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    return ppid === undefined || words.length === 0 ? [] : [{ pid: Number(pid), ppid: Number(ppid), words }];
  } catch {
    // It has ended meanwhile, or hides its command line.
    return [];
  }
}

/** A process that has given itself a title, as npm does, has one text in place of its arguments. */
function wordsIn(cmdline: string): string[] {
  const words = cmdline.split('\0').filter((word) => word !== '');
  const [only = ''] = words;
  return words.length === 1 ? split(only) : words;
}

/** Reads what `ps -x -ww -o pid=,ppid=,command=` prints. */
export function parseCommandLines(text: string): readonly CommandLine[] {
  return text.split('\n').flatMap((line) => {
    const [pid = '', ppid, ...words] = split(line);
    return pid === '' || words.length === 0 ? [] : [{ pid: Number(pid), ppid: Number(ppid), words }];
  });
}

function split(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
