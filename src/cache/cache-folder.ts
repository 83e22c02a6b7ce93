import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { readPrivateFile } from '../files/private-file.js';
import { DRAFT_SUFFIX, replaceFile } from '../files/whole-file.js';

export interface CacheFolderOptions {
  readonly folder: string;
  readonly maxFileBytes: number;
  /** Beyond this, the files that were not used for longest are removed. */
  readonly maxFiles: number;
  /** Told of a file that is there and not used. */
  readonly onIgnored: (file: string, reason: string) => void;
  /** Called once, when a file cannot be written. */
  readonly onFault: (error: unknown) => void;
}

/** Files are marked as used at most this often. */
const MARK_EVERY_MS = 24 * 60 * 60 * 1_000;
/** A draft that was left half written is not being written any more after this. */
const TORN_AFTER_MS = 60_000;

/**
 * Files that only spare work: each may be missing at any time, and nothing depends on one being written.
 *
 * Reading is quick and at once, for somebody waits; writing goes on in the background, always of a whole file, which a
 * rename puts in its place. Nobody but this user can read a file or have written one that is used.
 */
export class CacheFolder {
  readonly #options: CacheFolderOptions;
  readonly #waiting = new Map<string, Uint8Array>();
  #writing: Promise<void> | undefined;
  #isFaultTold = false;

  constructor(options: CacheFolderOptions) {
    this.#options = options;
  }

  /** What stands in the file of this name, if it is there and ours. */
  read(name: string): Uint8Array | undefined {
    const file = join(this.#options.folder, name);
    const found = readPrivateFile(file, this.#options.maxFileBytes);
    if (found.kind === 'unusable') this.#options.onIgnored(file, found.reason);
    if (found.kind !== 'read') return undefined;
    if (Date.now() - found.modifiedAt > MARK_EVERY_MS) void markUsed(file);
    return found.bytes;
  }

  /** Puts these bytes into the file of this name, soon. Too many of them take no file's place. */
  write(name: string, bytes: Uint8Array): void {
    if (bytes.length > this.#options.maxFileBytes) {
      this.#options.onIgnored(join(this.#options.folder, name), 'it would be too large');
      return;
    }
    this.#waiting.set(name, bytes);
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when everything is written, or cannot be. Never rejects. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    for (let [next] = this.#waiting; next !== undefined; [next] = this.#waiting) {
      const [name, bytes] = next;
      this.#waiting.delete(name);
      try {
        await replaceFile(join(this.#options.folder, name), bytes);
        if (this.#waiting.size === 0) await this.#trim();
      } catch (error) {
        if (!this.#isFaultTold) this.#options.onFault(error);
        this.#isFaultTold = true;
      }
    }
    this.#writing = undefined;
  }

  async #trim(): Promise<void> {
    const { folder, maxFiles } = this.#options;
    const found = await Promise.all(
      (await readdir(folder)).map(async (name) => {
        const file = join(folder, name);
        // One that is gone meanwhile, by another gateway's hand, is the oldest.
        const usedAt = await stat(file).then(
          ({ mtimeMs }) => mtimeMs,
          () => 0,
        );
        return { file, usedAt, isDraft: name.endsWith(DRAFT_SUFFIX) };
      }),
    );
    const torn = found.filter(({ isDraft, usedAt }) => isDraft && Date.now() - usedAt > TORN_AFTER_MS);
    const whole = found.filter(({ isDraft }) => !isDraft).sort((a, b) => b.usedAt - a.usedAt);
    await Promise.all([...torn, ...whole.slice(maxFiles)].map(({ file }) => rm(file, { force: true })));
  }
}

async function markUsed(file: string): Promise<void> {
  const now = new Date();
  // Gone, or not ours to mark: it will count as old.
  await utimes(file, now, now).catch(() => {});
}
