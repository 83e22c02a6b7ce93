import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, readdir, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createFile, replaceFile } from '../files/whole-file.js';
import type { RunProcess } from '../process/run-file.js';

/** The process that holds a lock. */
export interface LockOwner {
  /** The host, or container, in which the pid is valid. */
  readonly host: string;
  /** Undefined on systems where a process cannot be distinguished from a later one with the same pid. */
  readonly process: RunProcess | undefined;
}

export interface StoreLockOptions {
  readonly folder: string;
  readonly self: () => Promise<LockOwner>;
  /** Whether a process of this host is running. */
  readonly isRunning: (process: RunProcess) => Promise<boolean>;
}

/** How often waiting processes check the lock. */
const POLL_MS = 200;
/** How often the owner updates the time of the lock, for processes on other hosts. */
const TOUCH_MS = 10_000;
const STALE_AFTER_MS = 60_000;
const LOCK_NAME = /^lock\.(\d+)$/;

/**
 * Lets one process at a time install packages into a shared store.
 *
 * The file with the highest number is the lock. A process takes the lock by creating the next number, which is allowed
 * when the last lock was released or its owner is dead. The highest file is never removed, so two processes cannot both
 * replace a dead owner, as they could if they had to remove its file first.
 */
export class StoreLock {
  readonly #options: StoreLockOptions;

  constructor(options: StoreLockOptions) {
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
    let handle: FileHandle;
    try {
      handle = await open(this.#file(number), 'r');
    } catch {
      // Removed by the owner of a later lock.
      return false;
    }
    try {
      const owner = parseOwner(await handle.readFile('utf8'));
      if (owner === undefined) return true;
      const { host } = await this.#options.self();
      if (owner.host === host && owner.process !== undefined) return !(await this.#options.isRunning(owner.process));
      // The owner is on another host, or the machine was restarted.
      return Date.now() - (await handle.stat()).mtimeMs > STALE_AFTER_MS;
    } finally {
      await handle.close();
    }
  }

  /** Returns undefined when another process was faster. */
  async #take(number: number): Promise<(() => Promise<void>) | undefined> {
    const file = this.#file(number);
    if (!(await createFile(file, JSON.stringify(await this.#options.self())))) return undefined;
    // Another process has taken and released a later lock since the last number was read, so this one does not count.
    if ((await this.#last()) !== number) {
      await rm(file, { force: true });
      return undefined;
    }
    for (const earlier of await this.#numbers()) if (earlier < number) await rm(this.#file(earlier), { force: true });
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

/** Files are always complete, so a file without an owner is a released lock. */
function parseOwner(text: string): LockOwner | undefined {
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null ? (value as LockOwner) : undefined;
}
