import { closeSync, openSync, readSync } from 'node:fs';
import { errorCode } from '../../host/errors/error-text.js';
import { hasEnded, identify, listPids, listProcesses, runPs } from '../../host/process/processes.js';
import type { RunProcess } from '../../host/process/run-file.js';
import type { Clock } from '../../wire/timing/clock.js';
import { Ending } from './end-group.js';
import { FAMILY_PREFIX } from './environment.js';
import { processTrees } from './process-trees.js';

export interface FamilyEnd {
  /** The processes that got a signal to end. */
  readonly signaled: readonly number[];
  /** False when processes survived SIGKILL, start others faster than they are found, or could not be searched for. */
  readonly gone: boolean;
}

/** Time of the search for processes after the first SIGKILL. */
const CONFIRM_MS = 2_000;
/** Failed searches in a row before the search ends. */
const MAX_FAILURES = 4;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

const endings = new Map<string, FamilyEnding>();

/**
 * Ends the processes with a mark, also in groups and sessions of their own. Call this when the group of the server has ended, so that a
 * server can end its processes itself. Sends SIGTERM at once and SIGKILL after `killAfterMs`; searches again until no process is found.
 *
 * A second call for the same mark joins the first one, and can bring SIGKILL forward. Never rejects.
 */
export function endFamily(mark: string, killAfterMs: number, clock: Clock): Promise<FamilyEnd> {
  let ending = endings.get(mark);
  if (ending === undefined) {
    ending = new FamilyEnding(mark, killAfterMs, clock);
    endings.set(mark, ending);
    void ending.result.then(() => endings.delete(mark));
  } else {
    ending.hasten(killAfterMs);
  }
  return ending.result;
}

class FamilyEnding extends Ending {
  readonly result: Promise<FamilyEnd>;
  readonly #mark: string;
  #killAt: number;
  #firstKillAt: number | undefined;
  readonly #signaled = new Map<number, RunProcess>();

  constructor(mark: string, killAfterMs: number, clock: Clock) {
    super(clock);
    this.#mark = mark;
    this.#killAt = clock.now() + killAfterMs;
    this.result = this.#run();
  }

  hasten(killAfterMs: number): void {
    this.#killAt = Math.min(this.#killAt, this.clock.now() + killAfterMs);
    this.wake();
  }

  async #run(): Promise<FamilyEnd> {
    let pauseMs = FIRST_PAUSE_MS;
    for (;;) {
      const members = await this.#find();
      const signaled = () => [...this.#signaled.keys()];
      if (members === undefined) return { signaled: signaled(), gone: false };
      if (members.length === 0) return { signaled: signaled(), gone: true };
      const now = this.clock.now();
      const isKilling = now >= this.#killAt;
      if (isKilling) this.#firstKillAt ??= now;
      if (now >= (this.#firstKillAt ?? now) + CONFIRM_MS) return { signaled: signaled(), gone: false };
      for (const member of members) await this.#signal(member, isKilling ? 'SIGKILL' : 'SIGTERM');
      await this.pause(isKilling ? FIRST_PAUSE_MS : Math.min(pauseMs, this.#killAt - now));
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  /** Resolves with `undefined` if the search fails again and again, for example because no file descriptor is free. */
  async #find(): Promise<readonly RunProcess[] | undefined> {
    for (let failures = 0; failures < MAX_FAILURES; failures += 1) {
      const found = await findFamily(this.#mark).catch(() => undefined);
      if (found !== undefined) return found;
      await this.pause(FIRST_PAUSE_MS * 2 ** failures);
    }
    return undefined;
  }

  async #signal(member: RunProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { pid, startTime } = member;
    if (signal === 'SIGTERM' && this.#signaled.get(pid)?.startTime === startTime) return;
    if ((await identify(pid).catch(() => undefined))?.startTime !== startTime) return;
    this.#signaled.set(pid, member);
    try {
      process.kill(pid, signal);
    } catch {
      // ESRCH: it has ended. EPERM: it belongs to another user now. The next search finds out which.
    }
  }
}

type Families = Map<string, RunProcess[]>;

interface Request {
  readonly mark: string;
  readonly resolve: (members: readonly RunProcess[]) => void;
  readonly reject: (error: unknown) => void;
}

let waiting: Request[] = [];
let isSearching = false;

/**
 * Finds the processes that bear a mark, in any group and session, and those that `processTrees` has seen below its leader, because
 * some hide their environment or have another one. The gateway itself is left out. Rejects when the system has no resources for the
 * search, such as file descriptors.
 *
 * One search serves every mark that was requested before it began. It reads a few processes at a time, so that the event loop is
 * never blocked for longer than a millisecond.
 */
export function findFamily(mark: string): Promise<readonly RunProcess[]> {
  return new Promise((resolve, reject) => {
    waiting.push({ mark, resolve, reject });
    if (isSearching) return;
    isSearching = true;
    setImmediate(() => void searchForAll());
  });
}

async function searchForAll(): Promise<void> {
  while (waiting.length > 0) {
    const requests = waiting;
    waiting = [];
    try {
      const families: Families = new Map(requests.map(({ mark }) => [mark, []]));
      await search(families);
      for (const { mark, resolve } of requests) resolve(families.get(mark) ?? []);
    } catch (error) {
      for (const { reject } of requests) reject(error);
    }
  }
  isSearching = false;
}

async function search(families: Families): Promise<void> {
  if (process.platform === 'linux') await searchProc(families);
  else if (process.platform === 'darwin') await searchByPs(families);
  const listed = await listProcesses();
  for (const [mark, members] of families)
    for (const { pid, startTime } of processTrees.family(mark, listed))
      if (pid !== process.pid && members.every((member) => member.pid !== pid)) members.push({ pid, startTime });
}

/** Processes that are read in one turn of the event loop. */
const SLICE = 8;
/** Passes over the list of processes. Each pass after the first reads processes that started during the search. */
const MAX_ROUNDS = 5;

async function searchProc(families: Families): Promise<void> {
  const seen = new Set<string>([String(process.pid)]);
  let unread = newPids(seen);
  for (let round = 0; unread.length > 0 && round < MAX_ROUNDS; round += 1) {
    const withoutEnvironment: string[] = [];
    for (const [index, pid] of unread.entries()) {
      if (index % SLICE === SLICE - 1) await new Promise(setImmediate);
      const marks = marksOf(pid);
      if (marks === 'none') withoutEnvironment.push(pid);
      else if (marks !== 'ended' && marks.some((mark) => families.has(mark))) await addMember(families, pid);
    }
    // A process can hand its mark on and end before it is read. A process has no environment for a moment
    // during exec; kernel threads and zombies never have one.
    unread = [...newPids(seen), ...(round === 0 ? withoutEnvironment : [])];
  }
}

function newPids(seen: Set<string>): string[] {
  const pids = listPids().filter((pid) => !seen.has(pid));
  for (const pid of pids) seen.add(pid);
  return pids;
}

/** Reads the environment again between two looks at the start time, because the pid may belong to another process by now. */
async function addMember(families: Families, pid: string): Promise<void> {
  const before = await identify(Number(pid));
  const marks = marksOf(pid);
  const after = await identify(Number(pid));
  if (before === undefined || before.startTime !== after?.startTime) return;
  for (const mark of typeof marks === 'string' ? [] : marks)
    families.get(mark)?.push({ pid: Number(pid), startTime: before.startTime });
}

const chunk = Buffer.allocUnsafe(64 * 1024);
const MARK_LENGTH = 32;
const EQUALS = '='.charCodeAt(0);
const VARIABLE_LENGTH = FAMILY_PREFIX.length + MARK_LENGTH + 1;
/** The end of a chunk is read again with the next chunk, since a variable and the byte before it can be cut in two. */
const OVERLAP = VARIABLE_LENGTH + 1;

/** The marks that a process bears; empty if it may not be read. `none`: it has no environment. */
function marksOf(pid: string): readonly string[] | 'none' | 'ended' {
  const file = openEnvironment(pid);
  if (typeof file === 'string') return file === 'hidden' ? [] : file;
  const marks: string[] = [];
  try {
    let kept = 0;
    for (let total = 0; ; ) {
      const read = readSync(file, chunk, kept, chunk.length - kept, null);
      if (read === 0) return total === 0 ? 'none' : marks;
      collectMarks(chunk.subarray(0, kept + read), total === 0, marks);
      total += read;
      const end = kept + read;
      kept = Math.min(end, OVERLAP);
      chunk.copyWithin(0, end - kept, end);
    }
  } catch (error) {
    if (hasEnded(error)) return 'ended';
    throw error;
  } finally {
    closeSync(file);
  }
}

function openEnvironment(pid: string): number | 'hidden' | 'ended' {
  try {
    return openSync(`/proc/${pid}/environ`, 'r');
  } catch (error) {
    if (hasEnded(error)) return 'ended';
    // The process belongs to another user.
    if (['EACCES', 'EPERM'].includes(errorCode(error) ?? '')) return 'hidden';
    throw error;
  }
}

/** Adds the marks whose variables begin in these bytes, at the start of the environment or after a null byte. */
function collectMarks(bytes: Buffer, isStart: boolean, marks: string[]): void {
  for (let at = bytes.indexOf(FAMILY_PREFIX); at >= 0; at = bytes.indexOf(FAMILY_PREFIX, at + 1)) {
    const isName = at === 0 ? isStart : bytes[at - 1] === 0;
    if (!isName || bytes[at + VARIABLE_LENGTH - 1] !== EQUALS) continue;
    const mark = bytes.toString('latin1', at + FAMILY_PREFIX.length, at + VARIABLE_LENGTH - 1);
    if (!marks.includes(mark)) marks.push(mark);
  }
}

/**
 * macOS prints the environment of a process after the command line, and prints none for programs of the system. A process
 * with the text of a mark in its arguments counts as a bearer.
 */
async function searchByPs(families: Families): Promise<void> {
  const stdout = await runPs(['pid', 'command'], ['-A', '-E', '-ww']);
  for (const line of stdout.split('\n')) {
    if (!line.includes(` ${FAMILY_PREFIX}`)) continue;
    const pid = Number.parseInt(line, 10);
    const identity = pid === process.pid ? undefined : await identify(pid);
    if (identity === undefined || identity.isZombie) continue;
    for (const [mark, members] of families)
      if (line.includes(` ${FAMILY_PREFIX}${mark}=`)) members.push({ pid, startTime: identity.startTime });
  }
}
