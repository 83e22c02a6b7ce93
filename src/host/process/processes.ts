import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { errorCode } from '../errors/error-text.js';
import { machineName } from './machine-name.js';
import { windowsProcesses } from './windows.js';

/** Distinguishes a process from a later one with the same pid. */
interface ProcessIdentity {
  /** Start time in the format of the system: only for comparison. */
  readonly startTime: string;
  /** The process has ended, and its parent has not read its exit status yet. */
  readonly isZombie: boolean;
  /** Start time in milliseconds since 1970, without the part of a second. Absent on Linux and Windows. */
  readonly startedAtMs?: number;
}

export interface ListedProcess {
  readonly pid: number;
  /** The parent. On Unix, an orphan gets another one. On Windows, the parent may have ended, and its pid may belong to another process. */
  readonly ppid: number;
  /** The process group; on Windows, which has none, the pid. */
  readonly pgid: number;
  /** Start time, as from `identify`. */
  readonly startTime: string;
  /** Start in milliseconds since 1970 on Windows. 0 elsewhere, because `ppid` is never the pid of an ended process there. */
  readonly startedAtMs: number;
  /** Processor time in milliseconds. On Linux it includes that of ended children. Absent on Windows, and if `ps` refuses it. */
  readonly cpuMs?: number;
  /** Resident memory. Only `ps` lists it, unless it refuses. */
  readonly residentBytes?: number;
}

/** A process with its command line, which can hold secrets: compare it, never show it. */
export interface CommandLine {
  readonly pid: number;
  readonly ppid: number;
  /** The program and its arguments. If the system gives one text only, the words of this text. */
  readonly words: readonly string[];
}

interface ProcessSystem {
  identify(pid: number): Promise<ProcessIdentity | undefined>;
  list(): Promise<readonly ListedProcess[]>;
  commandLines(): Promise<readonly CommandLine[]>;
}

/** Number of files of /proc that are read between two pauses, in about one millisecond. */
const SLICE = 32;

/** Linux: reads /proc synchronously. `list` reads it in slices, between which other work can run. */
const linux: ProcessSystem = {
  identify: async (pid) => {
    const fields = statFields(String(pid));
    const [state] = fields;
    const startTime = fields[START];
    return startTime === undefined ? undefined : { startTime, isZombie: state === 'Z' || state === 'X' };
  },
  list: async () => {
    const rows: ListedProcess[] = [];
    for (const [index, pid] of listPids().entries()) {
      if (index % SLICE === SLICE - 1) await setImmediate();
      const row = toRow(pid, statFields(pid));
      if (row !== undefined) rows.push(row);
    }
    return rows;
  },
  commandLines: async () => listPids().flatMap(readProc),
};

/** Columns of `ps` for `parsePs`. */
const COLUMNS = ['pid', 'ppid', 'pgid', 'stat', 'lstart'];
const WITH_USAGE = [...COLUMNS, 'rss', 'time'];

/** On macOS the one of the system, because another one in PATH, such as that of Nix, may not tell the usage of processes. */
const PS = process.platform === 'darwin' ? '/bin/ps' : 'ps';

/** macOS and others: one `ps` each time. */
export function systemWithPs(program = PS): ProcessSystem {
  const run = (columns: readonly string[], args: readonly string[], locale?: string) =>
    runPs(columns, args, { locale, program });
  return {
    identify: async (pid) => {
      const [state, ...start] = split(await run(['stat', 'lstart'], ['-p', String(pid)]));
      if (state === undefined) return undefined;
      const startedAtMs = Date.parse(`${start.join(' ')} UTC`);
      return { startTime: start.join('-'), isZombie: state.startsWith('Z'), startedAtMs };
    },
    // Some versions of macOS, and its sandboxes, refuse the columns with the usage, and `ps` fails.
    list: async () => parsePs(await run(WITH_USAGE, ['-A']).catch(() => run(COLUMNS, ['-A']))),
    commandLines: async () => parseCommandLines(await run(['pid', 'ppid', 'command'], ['-x', '-ww'], 'en_US.UTF-8')),
  };
}

const windows: ProcessSystem = {
  identify: (pid) => windowsProcesses.identify(pid),
  list: () => windowsProcesses.list(),
  commandLines: async () => (await windowsProcesses.list()).filter(({ words }) => words.length > 0),
};

const SYSTEMS: Readonly<Record<string, ProcessSystem>> = { linux, win32: windows };
const system = SYSTEMS[process.platform] ?? systemWithPs();

/** Whether processes have groups, which get signals as a whole. Windows has neither groups nor signals. */
export const HAS_GROUPS = process.platform !== 'win32';

/** Identifies the process with this pid; undefined when there is none. Rejects if the system does not tell. */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  return await system.identify(pid);
}

/** All processes that run on this machine, without zombies. Rejects if they cannot be listed. */
export async function listProcesses(): Promise<readonly ListedProcess[]> {
  return await system.list();
}

/** Returns the processes of this user whose command lines can be read. Rejects if the list cannot be read. */
export async function readCommandLines(): Promise<readonly CommandLine[]> {
  return await system.commandLines();
}

/**
 * Whether the process with this pid is the one that started at this time, and has not ended. Rejects if the system does not tell: then
 * take the process for a running one, because what belongs to it must not be removed.
 */
export async function isRunning({ pid, startTime }: { pid: number; startTime: string }): Promise<boolean> {
  const identity = await identify(pid);
  return identity?.startTime === startTime && !identity.isZombie;
}

/** Identifies the scope of pids: on Linux this boot of the machine and the pid namespace, elsewhere the machine. */
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

/**
 * Returns these columns of `ps`, without a header; '' if it finds no process. Rejects if it cannot run. Each column is an option of its
 * own, because POSIX takes all that follows an equals sign as a header. Start times are in UTC, because `ps` writes them in the time
 * zone of its environment, which can differ between two Trunklines. Letters beyond ASCII need a locale that has them.
 */
export async function runPs(
  columns: readonly string[],
  args: readonly string[],
  { locale = 'C', program = PS }: { locale?: string | undefined; program?: string } = {},
): Promise<string> {
  const { execa } = await import('execa');
  const { stdout, exitCode, cause } = await execa(
    program,
    [...args, ...columns.flatMap((column) => ['-o', `${column}=`])],
    {
      // A client may have started Trunkline in a folder that was removed, and without the folders of the system in PATH.
      cwd: '/',
      env: { LC_ALL: locale, TZ: 'UTC0', PATH: `${process.env.PATH ?? ''}:/usr/bin:/bin` },
      stderr: 'ignore',
      // Otherwise execa would take signals that Node ignores, such as the one for a file that may not grow, and end this process.
      cleanup: false,
      maxBuffer: Number.MAX_SAFE_INTEGER,
      reject: false,
    },
  );
  if (exitCode !== 0 && !(exitCode === 1 && stdout === '')) throw cause ?? new Error(`\`ps\` ended with ${exitCode}`);
  return stdout;
}

/** Index of the start time, in ticks since the boot, among the fields that `statFields` returns. */
const START = 19;
/** /proc counts processor time in units of `USER_HZ`, 100 a second, whatever the tick rate of the kernel is. */
const TICK_MS = 10;

/** Makes a row from the fields that `statFields` returns. `undefined` for a process that has ended, such as a zombie. */
export function toRow(pid: string, fields: readonly string[]): ListedProcess | undefined {
  const [state, ppid, pgid] = fields;
  if (state === undefined || state === 'Z' || state === 'X') return undefined;
  // Fields 14 to 17: time in user mode and in the kernel, of the process and of its children that have ended.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  const start = { startTime: fields[START] ?? '', startedAtMs: 0 };
  return { pid: Number(pid), ppid: Number(ppid), pgid: Number(pgid), ...start, cpuMs: ticks * TICK_MS };
}

/**
 * Reads the columns `COLUMNS` or `WITH_USAGE` of `ps`: the start as five words, memory in KiB, times as `[[days-]hours:]minutes:seconds`.
 */
export function parsePs(text: string): readonly ListedProcess[] {
  return text.split('\n').flatMap((line) => {
    const words = split(line);
    const [pid, ppid, pgid, state = 'Z'] = words;
    const [rss, time] = words.slice(9);
    if (pid === undefined || state.startsWith('Z')) return [];
    const ids = { pid: Number(pid), ppid: Number(ppid), pgid: Number(pgid) };
    const usage = time === undefined ? {} : { residentBytes: Number(rss) * 1024, cpuMs: parsePsTime(time) };
    return [{ ...ids, startTime: words.slice(4, 9).join('-'), startedAtMs: 0, ...usage }];
  });
}

function parsePsTime(time: string): number {
  const [clock = '', days = '0'] = time.split('-').reverse();
  const seconds = clock.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  return Math.round((seconds + Number(days) * 86_400) * 1000);
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

/** Returns the words of a command line, which is one text if the process has given itself a title, as npm does. */
function wordsIn(cmdline: string): string[] {
  const words = cmdline.split('\0').filter((word) => word !== '');
  const [only = ''] = words;
  return words.length === 1 ? split(only) : words;
}

/** Reads the columns pid, ppid and command of `ps`. */
export function parseCommandLines(text: string): readonly CommandLine[] {
  return text.split('\n').flatMap((line) => {
    const [pid = '', ppid, ...words] = split(line);
    return pid === '' || words.length === 0
      ? []
      : [{ pid: Number(pid), ppid: Number(ppid), words: withWholePaths(words) }];
  });
}

/** Limit of the words of a path with spaces, such as one in `Application Support`. */
const MOST_WORDS_OF_PATH = 8;

/** Joins the words of a path that exists, because `ps` writes no quotes around arguments with spaces. */
function withWholePaths(words: readonly string[]): string[] {
  const joined: string[] = [];
  for (let at = 0; at < words.length; ) {
    const word = words[at] ?? '';
    let count = 1;
    if (word.startsWith('/') && !existsSync(word)) {
      const lengths = Array.from({ length: Math.min(MOST_WORDS_OF_PATH, words.length - at) }, (_, index) => index + 1);
      count = lengths.find((length) => existsSync(words.slice(at, at + length).join(' '))) ?? 1;
    }
    joined.push(words.slice(at, at + count).join(' '));
    at += count;
  }
  return joined;
}

function split(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
