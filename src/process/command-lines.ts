import { readFileSync, statSync } from 'node:fs';
import { listPids, statFields } from './process-identity.js';

/** A process with its command line, which can hold secrets: compare it, never show it. */
export interface CommandLine {
  readonly pid: number;
  readonly ppid: number;
  /** The program and its arguments. Where the system tells only a text, the words of it. */
  readonly words: readonly string[];
}

/**
 * The processes of this user that run now; `undefined` on Windows. Rejects if the system does not tell.
 *
 * On Linux /proc is read. Other systems are asked with one `ps`, which is untested.
 */
export async function readCommandLines(): Promise<readonly CommandLine[] | undefined> {
  if (process.platform === 'win32') return undefined;
  return process.platform === 'linux' ? listPids().flatMap(readProc) : parseCommandLines(await runPs());
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

async function runPs(): Promise<string> {
  const { execa } = await import('execa');
  const { stdout } = await execa('ps', ['-x', '-ww', '-o', 'pid=,ppid=,command='], {
    env: { LC_ALL: 'C' },
    stderr: 'ignore',
    maxBuffer: Number.MAX_SAFE_INTEGER,
  });
  return stdout;
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
