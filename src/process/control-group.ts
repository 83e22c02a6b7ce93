import { constants, readFileSync } from 'node:fs';
import { readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeBytes } from '../json/describe-bytes.js';
import type { RunProcess } from '../state/run-file.js';
import type { ResourceLimits } from '../supervision/resource-limits.js';
import type { Clock } from '../timing/clock.js';
import { identify } from './process-identity.js';

/** A controller of the kernel that can enforce a limit. */
export type Controller = 'memory' | 'pids';

export interface ControlGroupOptions {
  readonly folder: string;
  readonly clock: Clock;
  /** The folder of the control group that the gateway is in now. */
  readonly home: () => string;
  /** Moves of processes take turns: two at once would move a process back and forth. */
  readonly inTurn: (move: () => Promise<void>) => Promise<void>;
  readonly onRemoved: () => void;
  readonly write: Write;
}

/** Writes a setting of the kernel. Resolves with whether the kernel took it. */
export type Write = (file: string, text: string) => Promise<boolean>;

/**
 * A group of the kernel (cgroup v2) that holds the processes of one launch of a server. Processes are born into it, and
 * none can leave it by a session or an environment of its own.
 */
export class ControlGroup {
  readonly folder: string;
  readonly #options: ControlGroupOptions;
  #leader: number | undefined;
  #enforced: ResourceLimits = {};

  constructor(options: ControlGroupOptions) {
    this.folder = options.folder;
    this.#options = options;
  }

  /** The process that the group was made for, once the group holds it. */
  get leader(): number | undefined {
    return this.#leader;
  }

  /** The limits that the kernel enforces. */
  get enforced(): ResourceLimits {
    return this.#enforced;
  }

  /**
   * Takes in a process that was just started, and what it has started so far, unless it was born here. `hasExited` tells
   * whether its exit is known: from then on, its pid can belong to another process. Never rejects.
   */
  async adopt(pid: number, hasExited: () => boolean): Promise<void> {
    await this.#options.inTurn(async () => {
      const isBornHere = (await readPids(this.folder)).includes(pid);
      if (hasExited()) return;
      if (!isBornHere) await this.#moveTree(pid);
      if (isBornHere || (await readPids(this.folder)).includes(pid)) this.#leader = pid;
    });
  }

  /** First the process, then its children: what it starts from then on is born in the group. */
  async #moveTree(pid: number): Promise<void> {
    if (!(await this.#move(pid))) return;
    for (const child of await childrenOf(pid)) await this.#moveTree(child);
  }

  async #move(pid: number): Promise<boolean> {
    const before = await identify(pid);
    if (before === undefined || !(await this.#moveTo(this.folder, pid))) return false;
    if ((await identify(pid))?.startTime === before.startTime) return true;
    // It has ended meanwhile, and another process may have its pid by now.
    await this.#moveTo(this.#options.home(), pid);
    return false;
  }

  async #moveTo(folder: string, pid: number): Promise<boolean> {
    return await this.#options.write(join(folder, 'cgroup.procs'), String(pid));
  }

  /** The processes in the group and in groups below it. Rejects if the system has no resources for that. */
  async members(): Promise<readonly RunProcess[]> {
    return await membersOf(this.folder);
  }

  /** Whether nothing runs in the group: not even what was born while its members were listed. Never rejects. */
  async isEmpty(): Promise<boolean> {
    return await isEmpty(this.folder);
  }

  /** Kills all processes at once, also those that are just being born. Never rejects. */
  async kill(): Promise<void> {
    await killAll(this.folder);
  }

  /** Lets the kernel enforce the limits for which there are controllers. Never rejects. */
  async enforce({ memoryBytes, processes }: ResourceLimits, controllers: ReadonlySet<Controller>): Promise<void> {
    const { write } = this.#options;
    const writes: Promise<boolean>[] = [];
    let enforced: ResourceLimits = {};
    const limit = (file: string, value: number | undefined) => {
      writes.push(write(join(this.folder, file), value === undefined ? 'max' : String(value)));
    };
    if (controllers.has('memory')) {
      limit('memory.max', memoryBytes);
      // All processes end together, as in a restart: half of a server would be of no use.
      writes.push(write(join(this.folder, 'memory.oom.group'), '1'));
      if (memoryBytes !== undefined) enforced = { ...enforced, memoryBytes };
    }
    if (controllers.has('pids')) {
      limit('pids.max', processes === undefined ? undefined : mostTasks(processes));
      if (processes !== undefined) enforced = { ...enforced, processes };
    }
    this.#enforced = (await Promise.all(writes)).every(Boolean) ? enforced : {};
  }

  /** What the server did if the kernel killed it for its memory, as a phrase. Reads one small file at once. */
  outOfMemory(): string | undefined {
    const { memoryBytes } = this.#enforced;
    if (memoryBytes === undefined) return undefined;
    try {
      const events = readFileSync(join(this.folder, 'memory.events'), 'utf8');
      if (!/^oom_kill [1-9]/m.test(events)) return undefined;
    } catch {
      return undefined;
    }
    return `it needed more memory than its limit of ${describeBytes(memoryBytes)}, and the system killed it`;
  }

  /** Removes the group, if it is empty. Otherwise the next start finds it. Never rejects. */
  async remove(): Promise<void> {
    this.#leader = undefined;
    await removeTree(this.folder, this.#options.clock);
    this.#options.onRemoved();
  }
}

/**
 * The most tasks for a number of processes. The kernel counts threads, of which one program has ten and another a thousand.
 * So this only stops a server that multiplies without end; the processes themselves are counted in another place.
 */
function mostTasks(processes: number): number {
  return 1_000 + 16 * processes;
}

/** The pids in a control group, without groups below it; none if there is no such group. */
export async function readPids(folder: string): Promise<readonly number[]> {
  const text = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '');
  // A process of another pid namespace has the number 0.
  return text
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 0);
}

/** The processes in a control group and in all groups below it. */
export async function membersOf(folder: string): Promise<readonly RunProcess[]> {
  const members: RunProcess[] = [];
  for (const pid of await readPids(folder)) {
    const identity = await identify(pid);
    if (identity !== undefined && !identity.isZombie) members.push({ pid, startTime: identity.startTime });
  }
  for (const below of await groupsIn(folder)) members.push(...(await membersOf(below)));
  return members;
}

/** Whether nothing runs in a control group and in the groups below it, or there is no such group. */
export async function isEmpty(folder: string): Promise<boolean> {
  const events = await readFile(join(folder, 'cgroup.events'), 'utf8').catch(() => '');
  return !/^populated 1$/m.test(events);
}

/** Kills all processes in a control group and in all groups below it, at once. */
export async function killAll(folder: string): Promise<void> {
  await write(join(folder, 'cgroup.kill'), '1');
}

/** The kernel needs a moment until the last process of a group is gone. */
const REMOVE_TRIES = 8;
const FIRST_PAUSE_MS = 2;

/** Removes a control group and the groups below it. Resolves with whether it is gone. */
export async function removeTree(folder: string, clock: Clock): Promise<boolean> {
  for (let tries = 0; tries < REMOVE_TRIES; tries += 1) {
    if (tries > 0) await new Promise<void>((resolve) => clock.schedule(FIRST_PAUSE_MS * 2 ** tries, resolve));
    if (await removeOnce(folder)) return true;
  }
  return false;
}

async function removeOnce(folder: string): Promise<boolean> {
  for (const below of await groupsIn(folder)) await removeOnce(below);
  return await rmdir(folder).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  );
}

/** The folders of the control groups right below one. */
export async function groupsIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
}

/** The processes that a process has started and that run. Not every kernel tells. */
async function childrenOf(pid: number): Promise<readonly number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '')),
  );
  return lists
    .flatMap((list) => list.split(' '))
    .map(Number)
    .filter((child) => child > 0);
}

/** Writes to a file of the kernel. */
export const write: Write = async (file, text) => {
  return await writeFile(file, text, { flag: constants.O_WRONLY | constants.O_TRUNC }).then(
    () => true,
    () => false,
  );
};
