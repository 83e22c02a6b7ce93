import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import type { ProcessRow } from '../supervision/resource-limits.js';
import { listPids, statFields } from './process-identity.js';

/** A process with its resident memory, where the table of processes has it. */
export interface TableRow extends ProcessRow {
  readonly residentBytes?: number;
}

/** How the memory of one process is counted. `proportional`: a page that several processes share counts in parts. */
export type MemoryKind = 'resident' | 'proportional';

/** The kernel counts processor time in ticks of 10 ms for all programs, whatever its own are. */
const TICK_MS = 10;
/** So many files of /proc are read without a pause: in about one millisecond. */
const SLICE = 32;

/**
 * All processes that run on this machine, without zombies; `undefined` on Windows. Rejects if the system does not tell.
 *
 * On Linux /proc is read, in slices that let other work pass. Other systems are asked with one `ps`.
 */
export async function readProcessTable(): Promise<readonly TableRow[] | undefined> {
  if (process.platform === 'win32') return undefined;
  return process.platform === 'linux' ? await readProc() : parsePs(await runPs());
}

/**
 * The memory of a process on Linux; `undefined` elsewhere, after its end, or if it is not ours to know. For the
 * proportional memory the kernel visits each page, which takes 30 ms for 1 GiB: not on the event loop.
 */
export async function memoryOf(pid: number, kind: MemoryKind): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined;
  const [file, pattern] = MEMORY[kind];
  try {
    return parseMemory(await readFile(`/proc/${pid}/${file}`, 'utf8'), pattern);
  } catch {
    // It has ended, belongs to another user, or the kernel is older than the file.
    return undefined;
  }
}

const MEMORY = {
  resident: ['status', /^VmRSS:\s+(\d+) kB$/m],
  proportional: ['smaps_rollup', /^Pss:\s+(\d+) kB$/m],
} as const;

function parseMemory(text: string, pattern: RegExp): number | undefined {
  const [, kib] = pattern.exec(text) ?? [];
  return kib === undefined ? undefined : Number(kib) * 1024;
}

async function readProc(): Promise<readonly ProcessRow[]> {
  const rows: ProcessRow[] = [];
  for (const [index, pid] of listPids().entries()) {
    if (index % SLICE === SLICE - 1) await setImmediate();
    const row = toRow(pid, statFields(pid));
    if (row !== undefined) rows.push(row);
  }
  return rows;
}

/** Reads the fields of /proc/PID/stat after the name. `undefined` for a process that has ended. */
export function toRow(pid: string, fields: readonly string[]): ProcessRow | undefined {
  const [state, ppid, pgid] = fields;
  if (state === undefined || state === 'Z' || state === 'X') return undefined;
  // Fields 14 to 17: time in user mode and in the kernel, of the process and of its children that have ended.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { pid: Number(pid), ppid: Number(ppid), pgid: Number(pgid), cpuMs: ticks * TICK_MS };
}

const PS_ARGS = ['-A', '-o', 'pid=,ppid=,pgid=,rss=,stat=,time='];

async function runPs(): Promise<string> {
  const { execa } = await import('execa');
  const { stdout } = await execa('ps', PS_ARGS, { env: { LC_ALL: 'C' }, stderr: 'ignore' });
  return stdout;
}

/** Reads what `ps -A -o pid=,ppid=,pgid=,rss=,stat=,time=` prints: memory in KiB, times as `[[days-]hours:]minutes:seconds`. */
export function parsePs(text: string): readonly TableRow[] {
  return text.split('\n').flatMap((line) => {
    const [pid, ppid, pgid, rss, state = 'Z', time = ''] = line.trim().split(/\s+/);
    if (pid === '' || state.startsWith('Z')) return [];
    const row = { pid: Number(pid), ppid: Number(ppid), pgid: Number(pgid), residentBytes: Number(rss) * 1024 };
    return [{ ...row, cpuMs: parsePsTime(time) }];
  });
}

function parsePsTime(time: string): number {
  const [clock = '', days = '0'] = time.split('-').reverse();
  const seconds = clock.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  return Math.round((seconds + Number(days) * 86_400) * 1000);
}
