import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DRAFT_SUFFIX, replaceFile } from '../files/whole-file.js';
import { isRecord } from '../json/is-record.js';

/** A gateway and the process groups that run for it. */
export interface Run {
  /** Where its pids mean something: they are compared with processes of the same host only. */
  readonly host: string;
  readonly gateway: RunProcess;
  /** By their leaders, whose pids are the groups' ids too. */
  readonly groups: readonly RunProcess[];
}

/** Whose run it is. */
type RunOwner = Omit<Run, 'groups'>;

/** A process that can be told from a later one with the same pid. */
export interface RunProcess {
  readonly pid: number;
  readonly startTime: string;
}

export interface RunFileOptions {
  /** Where the run files of all gateways of this user are. */
  readonly folder: string;
  /** How the file begins: who we are. `undefined` where that cannot be told; then nothing is written. */
  readonly owner: () => Promise<RunOwner | undefined>;
  /** Called once, when the file cannot be written. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Says which groups are ours, for the gateway that starts next if we, and the guardian, are killed.
 *
 * The file exists while there are groups. It is written in the background, always as a whole, and put in its place
 * by a rename. That it cannot be written is no reason to do anything but to say so.
 */
export class RunFile {
  readonly #options: RunFileOptions;
  /** A name that no other gateway has, even if it has our pid in another namespace. */
  readonly #name = `${process.pid}-${randomBytes(6).toString('hex')}.json`;
  readonly #groups = new Map<number, RunProcess>();
  #owner: RunOwner | undefined;
  #writing: Promise<void> | undefined;
  #isChanged = false;
  #isFaultTold = false;

  constructor(options: RunFileOptions) {
    this.#options = options;
  }

  add(group: RunProcess): void {
    this.#groups.set(group.pid, group);
    this.#change();
  }

  remove(pgid: number): void {
    if (this.#groups.delete(pgid)) this.#change();
  }

  /** Resolves when the file says what is. Never rejects. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  #change(): void {
    this.#isChanged = true;
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    while (this.#isChanged) {
      this.#isChanged = false;
      try {
        await this.#writeOnce();
      } catch (error) {
        if (!this.#isFaultTold) this.#options.onFault(error);
        this.#isFaultTold = true;
      }
    }
    this.#writing = undefined;
  }

  async #writeOnce(): Promise<void> {
    this.#owner ??= await this.#options.owner();
    if (this.#owner === undefined) return;
    const file = join(this.#options.folder, this.#name);
    if (this.#groups.size === 0) {
      await rm(file, { force: true });
      return;
    }
    const run: Run = { ...this.#owner, groups: [...this.#groups.values()] };
    await replaceFile(file, `${JSON.stringify(run)}\n`);
  }
}

/** A file that was left half written is not being written any more after this. */
const TORN_AFTER_MS = 60_000;
/** Files of other hosts that share the folder, or of this one before it was started anew, are kept this long. */
const FOREIGN_FOR_MS = 30 * 24 * 60 * 60 * 1_000;
/** More than a thousand groups. */
const MAX_FILE_BYTES = 256 * 1024;

/** A run file that was found. */
export interface FoundRun {
  readonly file: string;
  readonly run: Run;
}

/**
 * The runs of gateways on this host, living or dead, from files that only this user can have written. Files that are
 * torn, or of other hosts, are left out, and removed when they are old. Never rejects.
 */
export async function findRuns(folder: string, host: string): Promise<readonly FoundRun[]> {
  const names = await readdir(folder).catch((): string[] => []);
  const found: FoundRun[] = [];
  for (const name of names) {
    const file = join(folder, name);
    const read = await readRun(file).catch(() => undefined);
    if (read === undefined) continue;
    const ageMs = Date.now() - read.stats.mtimeMs;
    if (read.run?.host === host) found.push({ file, run: read.run });
    else if (ageMs > (read.run === undefined ? TORN_AFTER_MS : FOREIGN_FOR_MS)) await removeRun(file);
  }
  return found;
}

/** Never rejects: what cannot be removed is found again by the next gateway. */
export async function removeRun(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => {});
}

/** What stands in a file, or `undefined` for a file that is not for us to look at. */
async function readRun(file: string): Promise<{ stats: Stats; run: Run | undefined } | undefined> {
  const isDraft = file.includes('.json.') && file.endsWith(DRAFT_SUFFIX);
  if (!file.endsWith('.json') && !isDraft) return undefined;
  const handle = await open(file, 'r');
  try {
    const stats = await handle.stat();
    // Whoever can write here decides which processes are ended.
    const isOurs = process.getuid === undefined || (stats.uid === process.getuid() && (stats.mode & 0o022) === 0);
    if (!stats.isFile() || !isOurs) return undefined;
    const isWhole = file.endsWith('.json') && stats.size <= MAX_FILE_BYTES;
    return { stats, run: isWhole ? parseRun(await handle.readFile('utf8')) : undefined };
  } finally {
    await handle.close();
  }
}

function parseRun(text: string): Run | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const { host, gateway, groups } = value;
  if (typeof host !== 'string' || !isRunProcess(gateway) || !Array.isArray(groups)) return undefined;
  // 0 and 1 would mean, as groups, our own and everybody.
  return { host, gateway, groups: groups.filter(isRunProcess).filter(({ pid }) => pid > 1) };
}

function isRunProcess(value: unknown): value is RunProcess {
  return (
    isRecord(value) && Number.isSafeInteger(value.pid) && Number(value.pid) > 0 && typeof value.startTime === 'string'
  );
}
