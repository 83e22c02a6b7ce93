import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { DRAFT_SUFFIX, privateFile, readRegularFile, removeFile, replaceFile } from '../files/whole-file.js';

export interface GatewayRun {
  /** The host, or container, in which the pids are valid. */
  readonly host: string;
  readonly gateway: RunProcess;
  /** The leaders of the groups; their pids are the ids of the groups. */
  readonly groups: readonly RunGroup[];
}

export interface RunGroup extends RunProcess {
  /** The mark of the group's family. Absent if the family may outlive the gateway. */
  readonly mark?: string;
  /** Processes of the family outside of the group. Some lack the mark. */
  readonly others?: readonly RunProcess[];
}

type RunOwner = Omit<GatewayRun, 'groups'>;

/** A process, distinguished from a later one with the same pid. */
export interface RunProcess {
  readonly pid: number;
  readonly startTime: string;
}

export interface RunFileOptions {
  readonly folder: string;
  /** Identifies this gateway. When it resolves with undefined, no file is written. */
  readonly owner: () => Promise<RunOwner | undefined>;
  /** Called for the first failed write. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Keeps a file with the process groups of this gateway. When the gateway and its guardian are killed, the next gateway reads
 * the file and ends the processes that are left.
 *
 * The file exists while there are groups. It is written in the background as a whole. Only the first failed write is reported.
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

  /** Resolves when no write is under way. Never rejects. */
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
    // Includes groups that were added meanwhile. Fewer writes leave fewer drafts behind when the gateway is killed.
    this.#isChanged = false;
    const file = join(this.#options.folder, this.#name);
    if (this.#groups.size === 0) {
      await removeFile(file);
      return;
    }
    const run: GatewayRun = { ...this.#owner, groups: [...this.#groups.values()] };
    await replaceFile(file, `${JSON.stringify(run)}\n`);
  }
}

/** Drafts and damaged files are removed after this time, because no gateway writes them any more. */
const TORN_AFTER_MS = 60_000;
/** Files of other hosts that share the folder, or from before a reboot, are removed after this time. */
const FOREIGN_FOR_MS = 30 * 24 * 60 * 60 * 1_000;
/** Limit of a run file, which suffices for more than a thousand groups. */
const MAX_FILE_BYTES = 256 * 1024;

export interface FoundRun {
  readonly file: string;
  readonly run: GatewayRun;
}

interface FindRunsOptions {
  readonly folder: string;
  readonly host: string;
  /** Called for a run file that cannot be used. The processes of its gateway then stay unknown. */
  readonly onIgnored: (file: string, reason: string) => void;
  /** Leaves drafts, damaged files and old files of other hosts where they are. */
  readonly isReadOnly?: boolean;
}

/**
 * Reads the run files of all gateways on this host, running or not. Files that others could have written are ignored.
 * Damaged files and files of other hosts are left out, and removed when they are old, unless `isReadOnly` is set. Never rejects.
 */
export async function findRuns({
  folder,
  host,
  onIgnored,
  isReadOnly = false,
}: FindRunsOptions): Promise<readonly FoundRun[]> {
  const names = await readdir(folder).catch((): string[] => []);
  const found: FoundRun[] = [];
  for (const name of names) {
    const isDraft = name.includes('.json.') && name.endsWith(DRAFT_SUFFIX);
    if (!name.endsWith('.json') && !isDraft) continue;
    const file = join(folder, name);
    // Only this user may write the file, because its content decides which processes are killed.
    const read = await readRegularFile(file, privateFile(MAX_FILE_BYTES));
    if (read.kind === 'absent') continue;
    if (read.kind === 'unusable') {
      onIgnored(file, read.reason);
      continue;
    }
    const run = isDraft ? undefined : parseRun(read.bytes.toString());
    if (run === undefined && !isDraft) onIgnored(file, 'it is damaged or has another format');
    const ageMs = Date.now() - read.modifiedAt;
    if (run?.host === host) found.push({ file, run });
    else if (!isReadOnly && ageMs > (run === undefined ? TORN_AFTER_MS : FOREIGN_FOR_MS)) await removeRun(file);
  }
  return found;
}

/** Removes a run file. Never rejects, because the next gateway finds a file that could not be removed. */
export async function removeRun(file: string): Promise<void> {
  await removeFile(file).catch(() => {});
}

function parseRun(text: string): GatewayRun | undefined {
  const value = parseJson(text);
  if (!isRecord(value)) return undefined;
  const { host, gateway, groups } = value;
  if (typeof host !== 'string' || !isRunProcess(gateway) || !Array.isArray(groups)) return undefined;
  return { host, gateway, groups: groups.filter(isRunGroup) };
}

function isRunGroup(value: unknown): value is RunGroup {
  // A signal to group 0 reaches the gateway's own group, one to group 1 every process.
  if (!isRunProcess(value) || value.pid <= 1) return false;
  const { mark, others } = value as Partial<Record<keyof RunGroup, unknown>>;
  if (others !== undefined && !(Array.isArray(others) && others.every(isRunProcess))) return false;
  return mark === undefined || (typeof mark === 'string' && /^[0-9a-f]{32}$/.test(mark));
}

export function isRunProcess(value: unknown): value is RunProcess {
  return (
    isRecord(value) && Number.isSafeInteger(value.pid) && Number(value.pid) > 0 && typeof value.startTime === 'string'
  );
}
