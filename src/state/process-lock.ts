import { mkdir, readdir, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { UsageError } from '../errors/usage-error.js';
import { createFileSync, readRegularFile, replaceFile } from '../files/whole-file.js';
import { isRecord, parseJson } from '../json/json-value.js';
import { hostIdentity, identify, isRunning } from '../process/processes.js';
import { isRunProcess, type RunProcess } from '../process/run-file.js';
import { changeLockFolder } from './user-files.js';

/** The process that holds a lock. */
export interface LockOwner {
  /** The host, or container, in which the pid is valid. */
  readonly host: string;
  /** Undefined on systems where a process cannot be distinguished from a later one with the same pid. */
  readonly process: RunProcess | undefined;
}

export interface ProcessLockOptions {
  readonly folder: string;
  readonly self: () => Promise<LockOwner>;
  /** Whether a process of this host is running. */
  readonly isRunning: (process: RunProcess) => Promise<boolean>;
  /** Called for a lock that names no owner and is not released. */
  readonly onTorn: (file: string, reason: string) => void;
}

/** The lock of this process in a folder. */
export function openProcessLock(folder: string, onTorn: ProcessLockOptions['onTorn']): ProcessLock {
  const host = hostIdentity();
  const self = async () => {
    const startTime = (await identify(process.pid))?.startTime;
    return { host, process: startTime === undefined ? undefined : { pid: process.pid, startTime } };
  };
  return new ProcessLock({ folder, self, isRunning, onTorn });
}

/** Time between two looks of a waiting process at the lock. */
const POLL_MS = 200;
/** Time between two updates of the lock's time by its owner, for processes on other hosts. */
const TOUCH_MS = 10_000;
const STALE_AFTER_MS = 60_000;
/** So few digits that the next number is another one. */
const LOCK_NAME = /^lock\.(\d{1,15})$/;
const MAX_LOCK_BYTES = 4_096;

/**
 * Lets one process at a time do something, such as install packages into a shared store.
 *
 * The file with the highest number is the lock. A process takes the lock by creating the next number, which is allowed
 * when the last lock was released or its owner is dead. The highest file is never removed, so two processes cannot both
 * replace a dead owner, as they could if they had to remove its file first.
 *
 * A lock file is complete on the disk before it has its name, so a torn one has no owner that lives: something else has
 * damaged it. It counts as released.
 */
export class ProcessLock {
  readonly #options: ProcessLockOptions;

  constructor(options: ProcessLockOptions) {
    this.#options = options;
  }

  /** Waits for the lock; resolves with the function that releases it. Rejects when `signal` is aborted. */
  async acquire(signal: AbortSignal): Promise<() => Promise<void>> {
    await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
    for (;;) {
      signal.throwIfAborted();
      const last = await this.#last();
      if (last === 0 || (await this.#isFree(last))) {
        const release = await this.#take(last + 1);
        if (release !== undefined) return release;
      } else {
        await setTimeout(POLL_MS, undefined, { signal });
      }
    }
  }

  async #last(): Promise<number> {
    return Math.max(0, ...(await this.#numbers()));
  }

  async #numbers(): Promise<number[]> {
    const names = await readdir(this.#options.folder);
    return names.map((name) => Number(LOCK_NAME.exec(name)?.[1] ?? 0)).filter((number) => number > 0);
  }

  #file(number: number): string {
    return join(this.#options.folder, `lock.${number}`);
  }

  async #isFree(number: number): Promise<boolean> {
    const file = this.#file(number);
    const found = await readRegularFile(file, { maxBytes: MAX_LOCK_BYTES });
    // Removed by the owner of a later lock.
    if (found.kind === 'absent') return false;
    if (found.kind === 'unusable') {
      if (found.fault === 'unreadable') throw new Error(`the lock ${file}: ${found.reason}`);
      this.#options.onTorn(file, found.reason);
      return true;
    }
    const owner = parseOwner(found.bytes.toString());
    if (owner === 'released') return true;
    if (owner === undefined) {
      this.#options.onTorn(file, 'it names no owner');
      return true;
    }
    const { host } = await this.#options.self();
    if (owner.host === host && owner.process !== undefined) return !(await this.#options.isRunning(owner.process));
    // The owner is on another host, or the machine was restarted.
    return Date.now() - found.modifiedAt > STALE_AFTER_MS;
  }

  /** Returns undefined when another process was faster. */
  async #take(number: number): Promise<(() => Promise<void>) | undefined> {
    const file = this.#file(number);
    const owner = JSON.stringify(await this.#options.self());
    if (!createFileSync(file, owner, { flush: true })) return undefined;
    // Another process has taken and released a later lock since the last number was read, so this one does not count.
    if ((await this.#last()) !== number) {
      await rm(file, { force: true });
      return undefined;
    }
    for (const earlier of await this.#numbers()) if (earlier < number) await removed(this.#file(earlier));
    const timer = setInterval(() => void touch(file), TOUCH_MS);
    timer.unref();
    return async () => {
      clearInterval(timer);
      await replaceFile(file, RELEASED);
    };
  }
}

const RELEASED = 'null';

async function touch(file: string): Promise<void> {
  const now = new Date();
  // When the file is gone, its time does not matter.
  await utimes(file, now, now).catch(() => {});
}

/** An earlier lock that cannot be removed, such as a folder, does no harm: the highest number counts. */
async function removed(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => {});
}

function parseOwner(text: string): LockOwner | 'released' | undefined {
  const value = parseJson(text);
  if (value === null) return 'released';
  if (!isRecord(value) || typeof value.host !== 'string') return undefined;
  const { host, process } = value;
  if (process !== undefined && !isRunProcess(process)) return undefined;
  return { host, process };
}

/** Longer than a lock whose holder cannot be identified stays valid, and than a client's own program may take. */
const MAX_WAIT_MS = 120_000;

/**
 * Runs `change` while no other command of this user changes a file: the configuration, its environment file, the stored
 * secrets, files of clients, or the journal of `undo`. Two commands at once would otherwise read the same content, and
 * the second write would lose the first.
 *
 * `change` must not wait for a person, and must not call this function, because it would wait for itself. A command that
 * was killed holds no lock. A dry run changes nothing, and takes no lock. Throws a `UsageError` if another command holds the
 * lock for two minutes.
 */
export async function withChangeLock<T>(change: () => T | Promise<T>, { isDryRun = false } = {}): Promise<T> {
  if (isDryRun) return await change();
  const release = await acquire();
  try {
    return await change();
  } finally {
    await release();
  }
}

async function acquire(): Promise<() => Promise<void>> {
  const timeout = AbortSignal.timeout(MAX_WAIT_MS);
  try {
    return await openProcessLock(changeLockFolder(), () => {}).acquire(timeout);
  } catch {
    if (timeout.aborted) {
      throw new UsageError('another command of Trunkline is changing files for minutes', 'end it, or try again later');
    }
    // The data folder cannot be written. A change of a file elsewhere is possible all the same, and a change in it reports why not.
    return async () => {};
  }
}
