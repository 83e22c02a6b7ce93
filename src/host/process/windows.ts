import { win32 } from 'node:path';
import { errorCode } from '../errors/error-text.js';

/*
 * The processes of Windows. It has neither process groups nor /proc, and Node cannot read when a process was started, so PowerShell is
 * asked for all processes at once. Its start takes half a second, so one answer serves all requests that came before it began, and the
 * identity of a process is kept for a while.
 */

/** A process of Windows, as a `ListedProcess` with the words of its command line. Processes of other users have no words. */
export interface WindowsProcess {
  readonly pid: number;
  readonly ppid: number;
  readonly pgid: number;
  readonly startTime: string;
  readonly startedAtMs: number;
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

/** The program that lists the processes, each on a line for `parseListing`: PowerShell, because newer systems have no `wmic`. */
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
    const [pid, ppid, startTime, ...words] = (line.match(/(?:"[^"]*"|[^\s"])+/g) ?? []).map((word) =>
      word.replaceAll('"', ''),
    );
    if (startTime === undefined) return [];
    return [
      { pid: Number(pid), ppid: Number(ppid), pgid: Number(pid), startTime, startedAtMs: Number(startTime), words },
    ];
  });
}

interface WindowsProcessesOptions {
  readonly ask: () => Promise<string>;
  /** Whether a process has this pid now. */
  readonly isTaken: (pid: number) => boolean;
  /** Milliseconds on a monotonic clock. */
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

  /** Identifies a process. Lists the processes only if the pid is taken and its identity is not kept. */
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
    const { startTime } = found;
    this.#known.set(pid, { startTime, askedAt: now() });
    return { startTime, isZombie: false };
  }

  isTaken(pid: number): boolean {
    return this.#options.isTaken(pid);
  }

  /** Start of the process with this pid, in milliseconds since 1970; `undefined` if no process of the list has it. */
  async startedAtMs(pid: number): Promise<number | undefined> {
    const identity = await this.identify(pid);
    return identity && Number(identity.startTime);
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
