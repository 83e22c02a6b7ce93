import { win32 } from 'node:path';
import { errorCode } from '../errors/error-text.js';

/*
 * The processes of Windows. It has neither process groups nor /proc, and Node cannot read when a process was started, so PowerShell is
 * asked for all processes at once. Its start takes half a second, so one answer serves everyone who has asked before it was begun, and
 * the identity of a process is kept for a while.
 */

/** A process of Windows. */
export interface WindowsProcess {
  readonly pid: number;
  /** The process that has started it, which may have ended; then another process can have this pid. */
  readonly ppid: number;
  /** Milliseconds since 1970. */
  readonly startedAtMs: number;
  /** The words of the command line. None for processes of other users. */
  readonly words: readonly string[];
}

/**
 * The path of a program of Windows, because Windows looks for a bare name in the working folder first, which may be a stranger's
 * repository. On other systems, where only tests have such programs, the name.
 */
export function systemProgram(name: string, platform = process.platform, root = process.env.SystemRoot): string {
  if (platform !== 'win32') return name;
  const folder = name === 'powershell.exe' ? 'System32\\WindowsPowerShell\\v1.0' : 'System32';
  return win32.join(root ?? 'C:\\Windows', folder, name.endsWith('.exe') ? name : `${name}.exe`);
}

/** The program that lists the processes, each on a line as `parseListing` reads it. Newer systems have no `wmic`. */
export const LISTING: { readonly command: string; readonly args: readonly string[] } = {
  command: systemProgram('powershell.exe'),
  args: [
    ...['-NoLogo', '-NoProfile', '-NonInteractive', '-Command'],
    `[Console]::OutputEncoding = [Text.UTF8Encoding]::new($false)
Get-CimInstance Win32_Process | Where-Object CreationDate | ForEach-Object {
  $start = ([DateTimeOffset]$_.CreationDate).ToUnixTimeMilliseconds()
  "$($_.ProcessId) $($_.ParentProcessId) $start $($_.CommandLine -replace '\\s+', ' ')"
}`,
  ],
};

/** Longest wait for the list, in milliseconds. */
export const LISTING_MS = 10_000;

/** Reads the output of `LISTING`. The guardian gets the text of this function, so it uses nothing from outside. */
export function parseListing(text: string): WindowsProcess[] {
  return text.split('\n').flatMap((line) => {
    const [pid, ppid, start, ...words] = line.split(/\s+/).filter((word) => word !== '');
    return start === undefined ? [] : [{ pid: Number(pid), ppid: Number(ppid), startedAtMs: Number(start), words }];
  });
}

/** A process of a tree. */
export interface TreeMember {
  readonly pid: number;
  /** A time at which it ran, in milliseconds since 1970; that of its start if `startedAtMs` is known. */
  readonly seenAtMs: number;
  startedAtMs?: number;
}

/**
 * Brings a tree up to date with a list of processes, and returns those of the tree that run. Without the list, a process whose parent
 * has ended would be lost: its `ppid` remains, but only the times tell its parent from a later process with the same pid. `nowMs` is the time
 * at which the list was complete. The guardian gets the text of this function, so it uses nothing from outside.
 */
export function growTree(tree: TreeMember[], processes: readonly WindowsProcess[], nowMs: number): WindowsProcess[] {
  const has = (each: WindowsProcess) => tree.some((it) => it.pid === each.pid && it.startedAtMs === each.startedAtMs);
  for (const member of tree) {
    // The clock of the list may be a little ahead. A later process with this pid has begun long after.
    const first = processes.find(({ pid, startedAtMs }) => pid === member.pid && startedAtMs <= member.seenAtMs + 100);
    if (first !== undefined) member.startedAtMs ??= first.startedAtMs;
  }
  for (let isGrown = true; isGrown; ) {
    isGrown = false;
    for (const each of processes) {
      const { pid, ppid, startedAtMs } = each;
      const parent = tree.find((it) => it.pid === ppid && (it.startedAtMs ?? it.seenAtMs - 1_000) <= startedAtMs);
      if (parent === undefined || startedAtMs > nowMs || has(each)) continue;
      // The pid of the parent may belong to a later process, which has started this one.
      const current = processes.find((it) => it.pid === ppid);
      if (current !== undefined && !has(current) && current.startedAtMs <= startedAtMs) continue;
      tree.push({ pid, seenAtMs: startedAtMs, startedAtMs });
      isGrown = true;
    }
  }
  const running = processes.filter(has);
  // Those that have ended start no others.
  const isRunning = ({ pid, startedAtMs }: TreeMember) =>
    running.some((it) => it.pid === pid && it.startedAtMs === startedAtMs);
  tree.splice(0, tree.length, ...tree.filter(isRunning));
  return running;
}

interface WindowsProcessesOptions {
  /** Runs `LISTING` and returns its output. */
  readonly ask: () => Promise<string>;
  /** Whether a process has this pid now. */
  readonly isTaken: (pid: number) => boolean;
  /** Milliseconds, on a clock that goes on. */
  readonly now: () => number;
}

/** How long the identity of a running process is kept, in milliseconds, so that waiting for a lock starts no PowerShell each time. */
const KEPT_MS = 10_000;

export class WindowsProcesses {
  readonly #options: WindowsProcessesOptions;
  readonly #known = new Map<number, { readonly startTime: string; readonly askedAt: number }>();
  #current: Promise<readonly WindowsProcess[]> | undefined;
  #next: Promise<readonly WindowsProcess[]> | undefined;

  constructor(options: WindowsProcessesOptions = { ask: askPowerShell, isTaken, now: () => performance.now() }) {
    this.#options = options;
  }

  /** The processes that run now. Rejects if they cannot be listed. */
  list(): Promise<readonly WindowsProcess[]> {
    if (this.#next !== undefined) return this.#next;
    const listed = (this.#current ?? Promise.resolve([]))
      .catch(() => [])
      .then(async () => {
        this.#current = this.#next;
        this.#next = undefined;
        return parseListing(await this.#options.ask());
      });
    this.#next = listed;
    return listed;
  }

  /** Identifies a process without asking for more than is needed: a pid that no process has is free at once. */
  async identify(pid: number): Promise<{ startTime: string; isZombie: boolean } | undefined> {
    const { isTaken: isAlive, now } = this.#options;
    if (!isAlive(pid)) {
      this.#known.delete(pid);
      return undefined;
    }
    const known = this.#known.get(pid);
    if (known !== undefined && (pid === process.pid || now() - known.askedAt < KEPT_MS))
      return { startTime: known.startTime, isZombie: false };
    const found = (await this.list()).find((each) => each.pid === pid);
    if (found === undefined) return undefined;
    const startTime = String(found.startedAtMs);
    this.#known.set(pid, { startTime, askedAt: now() });
    return { startTime, isZombie: false };
  }
}

/** The processes of this machine. Only for Windows. */
export const windowsProcesses = new WindowsProcesses();

async function askPowerShell(): Promise<string> {
  const { execa } = await import('execa');
  const { command, args } = LISTING;
  const limits = { timeout: LISTING_MS, maxBuffer: Number.MAX_SAFE_INTEGER };
  const { stdout } = await execa(command, args, { ...limits, stdin: 'ignore', stderr: 'ignore', windowsHide: true });
  return stdout;
}

function isTaken(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It belongs to another user.
    return errorCode(error) === 'EPERM';
  }
}
