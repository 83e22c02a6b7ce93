import { mkdir, readdir, truncate, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { createFileSync, readRegularFile, removeFile, replaceFile } from '../files/whole-file.js';
import { hostIdentity, identify, isRunning } from './processes.js';
import { isRunProcess, type RunProcess } from './run-file.js';

export interface LockOwner {
  /** The host or container of the process. */
  readonly host: string;
  /** Undefined on systems without start times, where a later process may have the same pid. */
  readonly process: RunProcess | undefined;
}

export interface ProcessLockOptions {
  readonly folder: string;
  readonly self: () => Promise<LockOwner>;
  /** Whether a process of this host is running. */
  readonly isRunning: (process: RunProcess) => Promise<boolean>;
  /** Called for a damaged lock file, which counts as released. */
  readonly onTorn: (file: string, reason: string) => void;
}

export function openProcessLock(folder: string, onTorn: ProcessLockOptions['onTorn']): ProcessLock {
  const host = hostIdentity();
  const find = async () => {
    const startTime = (await identify(process.pid).catch(() => undefined))?.startTime;
    return { host, process: startTime === undefined ? undefined : { pid: process.pid, startTime } };
  };
  let self: Promise<LockOwner> | undefined;
  return new ProcessLock({
    ...{ folder, isRunning, onTorn },
    self: () => {
      self ??= find();
      return self;
    },
  });
}

/** How often a waiting process checks the lock. */
const POLL_MS = 200;
/** How often the owner updates the time of its lock file. Processes on other hosts rely on this time. */
const TOUCH_MS = 10_000;
/** Age, in milliseconds, beyond which the lock of an owner on another host counts as released. */
const STALE_AFTER_MS = 60_000;
/** Names of lock files. With 15 digits, adding 1 is still exact. */
const LOCK_NAME = /^lock\.(\d{1,15})$/;
const MAX_LOCK_BYTES = 4_096;

/**
 * A lock that one process at a time holds, for example to install packages into a shared store, renew a login or change files. It also
 * holds between machines and containers that share the folder.
 *
 * The file with the highest number is the lock. A process takes the lock by creating the file with the next number, which is allowed if the
 * last lock was released or its owner is dead. The highest file is never removed, so that two processes cannot both replace a dead owner.
 *
 * A damaged lock file counts as released. It has no living owner, because a lock file is complete before it gets its name.
 */
export class ProcessLock {
  readonly #options: ProcessLockOptions;

  constructor(options: ProcessLockOptions) {
    this.#options = options;
  }

  /** Waits for the lock. Resolves with the function that releases the lock. Rejects when `signal` is aborted. */
  async acquire(signal: AbortSignal): Promise<() => Promise<void>> {
    await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
    for (;;) {
      signal.throwIfAborted();
      const last = await this.#last();
      if (last === 0 || (await this.#isFree(last))) {
        const release = await this.#take(last + 1);
        if (release !== undefined) return release;
      } else {
        // Ends early when `signal` is aborted, which the next turn reports.
        await setTimeout(POLL_MS, undefined, { signal }).catch(() => {});
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
    // The owner of a later lock has removed the file.
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
    if (owner.host === host && owner.process !== undefined) {
      return !(await this.#options.isRunning(owner.process).catch(() => true));
    }
    // The owner is on another host, or the machine was restarted.
    return Date.now() - found.modifiedAt > STALE_AFTER_MS;
  }

  /** Takes the lock; returns undefined if another process was faster. */
  async #take(number: number): Promise<(() => Promise<void>) | undefined> {
    const file = this.#file(number);
    const owner = JSON.stringify(await this.#options.self());
    if (!createFileSync(file, owner, { flush: true })) return undefined;
    // If another process has taken and released a later lock meanwhile, this lock is not the highest and not valid.
    if ((await this.#last()) !== number) {
      await removeFile(file);
      return undefined;
    }
    for (const earlier of await this.#numbers()) if (earlier < number) await removed(this.#file(earlier));
    const timer = setInterval(() => void touch(file), TOUCH_MS);
    timer.unref();
    return async () => {
      clearInterval(timer);
      // On a full disk, an empty file takes its place, which counts as released, too.
      await replaceFile(file, RELEASED).catch(() => truncate(file).catch(() => {}));
    };
  }
}

const RELEASED = 'null';

async function touch(file: string): Promise<void> {
  const now = new Date();
  // The lock may have been taken over and removed meanwhile.
  await utimes(file, now, now).catch(() => {});
}

/** Removes an earlier lock. A failure does no harm, because only the highest number counts. */
async function removed(file: string): Promise<void> {
  await removeFile(file).catch(() => {});
}

function parseOwner(text: string): LockOwner | 'released' | undefined {
  const value = parseJson(text);
  if (value === null) return 'released';
  if (!isRecord(value) || typeof value.host !== 'string') return undefined;
  const { host, process } = value;
  if (process !== undefined && !isRunProcess(process)) return undefined;
  return { host, process };
}
