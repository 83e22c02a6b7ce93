import { randomBytes } from 'node:crypto';
import type { Stats } from 'node:fs';
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DRAFT_SUFFIX, replaceFile } from '../files/whole-file.js';
import { isRecord } from '../json/is-record.js';
import { parseJson } from '../json/parse-json.js';

/** A gateway and its process groups. */
export interface Run {
  /** The host, or container, in which the pids are valid. */
  readonly host: string;
  readonly gateway: RunProcess;
  /** The leaders of the groups; their pids are the ids of the groups. */
  readonly groups: readonly RunGroup[];
}

interface RunGroup extends RunProcess {
  /** The mark of the group's family, if that may not outlive the gateway either. */
  readonly mark?: string;
}

type RunOwner = Omit<Run, 'groups'>;

/** A process, distinguished from a later one with the same pid. */
export interface RunProcess {
  readonly pid: number;
  readonly startTime: string;
}

export interface RunFileOptions {
  /** Folder of the run files of all gateways of this user. */
  readonly folder: string;
  /** Identifies this gateway. When it resolves with undefined, no file is written. */
  readonly owner: () => Promise<RunOwner | undefined>;
  /** Called for the first failed write. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Lists the process groups of this gateway on disk. When the gateway and its guardian are killed, the next gateway reads
 * the list and ends what is left.
 *
 * The file exists while there are groups. It is written in the background as a whole. A failed write is only reported.
 */
export class RunFile {
  readonly #options: RunFileOptions;
  /** Unique, even when a gateway in another pid namespace has the same pid. */
  readonly #name = `${process.pid}-${randomBytes(6).toString('hex')}.json`;
  readonly #groups = new Map<number, RunGroup>();
  #owner: RunOwner | undefined;
  #writing: Promise<void> | undefined;
  #isChanged = false;
  #isFaultReported = false;

  constructor(options: RunFileOptions) {
    this.#options = options;
  }

  add(group: RunGroup): void {
    this.#groups.set(group.pid, group);
    this.#change();
  }

  remove(pgid: number): void {
    if (this.#groups.delete(pgid)) this.#change();
  }

  /** Resolves when the file is up to date. Never rejects. */
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
        if (!this.#isFaultReported) this.#options.onFault(error);
        this.#isFaultReported = true;
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

/** A draft or damaged file of this age was left behind by a process that was killed. */
const TORN_AFTER_MS = 60_000;
/** Files of other hosts that share the folder, or from before a reboot, are removed after this time. */
const FOREIGN_FOR_MS = 30 * 24 * 60 * 60 * 1_000;
/** More than a thousand groups. */
const MAX_FILE_BYTES = 256 * 1024;

export interface FoundRun {
  readonly file: string;
  readonly run: Run;
}

/**
 * Reads the run files of all gateways on this host, running or not. Files that others could have written are ignored.
 * Damaged files and files of other hosts are left out, and removed when they are old. Never rejects.
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

/** Removes a run file. Never rejects: the next gateway finds a file that could not be removed. */
export async function removeRun(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => {});
}

/** Reads a run file or a draft; `undefined` for other files, and for files that another user could have written. */
async function readRun(file: string): Promise<{ stats: Stats; run: Run | undefined } | undefined> {
  const isDraft = file.includes('.json.') && file.endsWith(DRAFT_SUFFIX);
  if (!file.endsWith('.json') && !isDraft) return undefined;
  const handle = await open(file, 'r');
  try {
    const stats = await handle.stat();
    // The content decides which processes are killed, so nobody else may be able to write it.
    const isOurs = process.getuid === undefined || (stats.uid === process.getuid() && (stats.mode & 0o022) === 0);
    if (!stats.isFile() || !isOurs) return undefined;
    const isWhole = file.endsWith('.json') && stats.size <= MAX_FILE_BYTES;
    return { stats, run: isWhole ? parseRun(await handle.readFile('utf8')) : undefined };
  } finally {
    await handle.close();
  }
}

function parseRun(text: string): Run | undefined {
  const value = parseJson(text);
  if (!isRecord(value)) return undefined;
  const { host, gateway, groups } = value;
  if (typeof host !== 'string' || !isRunProcess(gateway) || !Array.isArray(groups)) return undefined;
  return { host, gateway, groups: groups.filter(isRunGroup) };
}

function isRunGroup(value: unknown): value is RunGroup {
  // As group ids, 0 and 1 would signal the gateway's own group and every process.
  if (!isRunProcess(value) || value.pid <= 1) return false;
  return !('mark' in value) || (typeof value.mark === 'string' && /^[0-9a-f]{32}$/.test(value.mark));
}

function isRunProcess(value: unknown): value is RunProcess {
  return (
    isRecord(value) && Number.isSafeInteger(value.pid) && Number(value.pid) > 0 && typeof value.startTime === 'string'
  );
}
