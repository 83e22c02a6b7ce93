import { readFile } from 'node:fs/promises';
import { counted, type Finding, finding } from './finding.js';

/** Limits of the system for the processes of this user. `undefined`: not limited, or not known. */
export interface Limits {
  readonly openFiles?: number | undefined;
  readonly processes?: number | undefined;
  /** Files that all programs of this user may watch; Linux only. */
  readonly watches?: number | undefined;
}

/** Open files for each server (its pipes, and what it opens while it starts), and for Trunkline itself. */
const FILES_OF_SERVER = 4 * 8;
const OWN_FILES = 256;
/** Processes for each server with its children, and for the rest of the desktop. */
const PROCESSES_OF_SERVER = 16;
const OTHER_PROCESSES = 256;
/** Editors alone watch thousands. */
const MIN_WATCHES = 4_096;

/** Whether the limits of the system suffice for this many servers. */
export function checkLimits({ openFiles, processes, watches }: Limits, servers: number): Finding[] {
  const found: Finding[] = [];
  const files = servers * FILES_OF_SERVER + OWN_FILES;
  if (openFiles !== undefined && openFiles < files)
    found.push(
      finding('TL-LIMIT-FILES', `${openFiles} open files are allowed; ${counted(servers, 'server')} may need ${files}`),
    );
  const needed = servers * PROCESSES_OF_SERVER + OTHER_PROCESSES;
  if (processes !== undefined && processes < needed)
    found.push(finding('TL-LIMIT-PROCESSES', `${processes} processes are allowed; ${needed} may be needed`));
  if (watches !== undefined && watches < MIN_WATCHES)
    found.push(finding('TL-LIMIT-WATCHES', `only ${watches} files can be watched`));
  return found;
}

/** Reads the limits on Linux. Other systems have no file to read them from, so nothing is known there. */
export async function readLimits(): Promise<Limits> {
  const [limits, watches] = await Promise.all([
    readFile('/proc/self/limits', 'utf8').catch(() => ''),
    readFile('/proc/sys/fs/inotify/max_user_watches', 'utf8').catch(() => ''),
  ]);
  return {
    openFiles: numberIn(/^Max open files\s+(\d+)/m.exec(limits)?.[1]),
    processes: numberIn(/^Max processes\s+(\d+)/m.exec(limits)?.[1]),
    watches: numberIn(watches.trim()),
  };
}

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}
