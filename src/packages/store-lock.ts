import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, readdir, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createFile, replaceFile } from '../files/whole-file.js';
import type { RunProcess } from '../process/run-file.js';

/** Who holds a lock. */
export interface LockOwner {
  /** Where the pid means something. */
  readonly host: string;
  /** Absent where a process cannot be told from a later one with its pid. */
  readonly process: RunProcess | undefined;
}

export interface StoreLockOptions {
  readonly folder: string;
  readonly self: () => Promise<LockOwner>;
  /** Whether a process of this host lives. */
  readonly isRunning: (process: RunProcess) => Promise<boolean>;
}

/** How often those who wait look. */
const LOOK_EVERY_MS = 200;
/** The holder shows that it lives this often, for those who cannot ask its system whether it does. */
const SIGN_EVERY_MS = 10_000;
const SILENT_AFTER_MS = 60_000;
const LOCK_NAME = /^lock\.(\d+)$/;

/**
 * Lets one process at a time install, of all that share a store.
 *
 * The lock is the file with the highest number: who makes the next one holds it, which is allowed once the last one was
 * given back or its holder is dead. Since the highest is never removed, no two can take a dead one's place, which
 * they could if they had to remove its file first.
 */
export class StoreLock {
  readonly #options: StoreLockOptions;

  constructor(options: StoreLockOptions) {
    this.#options = options;
  }

  /** Resolves, when it is our turn, with what gives the lock back. Rejects once `signal` is aborted. */
  async acquire(signal: AbortSignal): Promise<() => Promise<void>> {
    await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
    for (;;) {
      signal.throwIfAborted();
      const last = await this.#last();
      if (last === 0 || (await this.#isFree(last))) {
        const release = await this.#take(last + 1);
        if (release !== undefined) return release;
      } else {
        await setTimeout(LOOK_EVERY_MS, undefined, { signal });
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
      // Removed by somebody who holds a later one.
      return false;
    }
    try {
      const owner = parseOwner(await handle.readFile('utf8'));
      if (owner === undefined) return true;
      const { host } = await this.#options.self();
      if (owner.host === host && owner.process !== undefined) return !(await this.#options.isRunning(owner.process));
      // On another host, or on this one before it was started anew.
      return Date.now() - (await handle.stat()).mtimeMs > SILENT_AFTER_MS;
    } finally {
      await handle.close();
    }
  }

  /** Returns nothing when somebody else was quicker. */
  async #take(number: number): Promise<(() => Promise<void>) | undefined> {
    const file = this.#file(number);
    if (!(await createFile(file, JSON.stringify(await this.#options.self())))) return undefined;
    // A number that had been given back and removed is no lock: it was taken for the last one too long ago.
    if ((await this.#last()) !== number) {
      await rm(file, { force: true });
      return undefined;
    }
    for (const earlier of await this.#numbers()) if (earlier < number) await rm(this.#file(earlier), { force: true });
    const sign = setInterval(() => void touch(file), SIGN_EVERY_MS);
    sign.unref();
    return async () => {
      clearInterval(sign);
      await replaceFile(file, RELEASED);
    };
  }
}

const RELEASED = 'null';

async function touch(file: string): Promise<void> {
  const now = new Date();
  // If it has gone, nobody needs the sign.
  await utimes(file, now, now).catch(() => {});
}

/** Files appear as a whole, so what is not an owner was given back. */
function parseOwner(text: string): LockOwner | undefined {
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null ? (value as LockOwner) : undefined;
}
