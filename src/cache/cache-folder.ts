import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { privateFile, readRegularFileSync } from '../files/regular-file.js';
import { DRAFT_SUFFIX, replaceFile } from '../files/whole-file.js';

export interface CacheFolderOptions {
  readonly folder: string;
  readonly maxFileBytes: number;
  /** With more files, the least recently used ones are removed. */
  readonly maxFiles: number;
  /** Called for a file that exists and is not used. */
  readonly onIgnored: (file: string, reason: string) => void;
  /** Called once, for the first file that cannot be written. */
  readonly onFault: (error: unknown) => void;
}

/** The time of last use is updated at most this often. */
const MARK_EVERY_MS = 24 * 60 * 60 * 1_000;
/** A draft of this age was left behind by a process that was killed. */
const TORN_AFTER_MS = 60_000;

/**
 * A folder of cache files. Any of them may be missing at any time, and a failed write has no consequence but a log record.
 *
 * Reads are synchronous, since a client waits for them; writes happen in the background and replace whole files. Only
 * files that this user owns, and that nobody else can read or write, are used.
 */
export class CacheFolder {
  readonly #options: CacheFolderOptions;
  readonly #waiting = new Map<string, Uint8Array>();
  #writing: Promise<void> | undefined;
  #isFaultReported = false;

  constructor(options: CacheFolderOptions) {
    this.#options = options;
  }

  /** The content of a file, if it exists and can be used. */
  read(name: string): Uint8Array | undefined {
    const file = join(this.#options.folder, name);
    const found = readRegularFileSync(file, privateFile(this.#options.maxFileBytes));
    if (found.kind === 'unusable') this.#options.onIgnored(file, found.reason);
    if (found.kind !== 'read') return undefined;
    if (found.bytes.every((byte) => byte === 0)) {
      this.#options.onIgnored(file, 'it has no content, as after a power failure');
      return undefined;
    }
    if (Date.now() - found.modifiedAt > MARK_EVERY_MS) void markUsed(file);
    return found.bytes;
  }

  /** Schedules a write. Content above `maxFileBytes` is not written and leaves the previous file in place. */
  write(name: string, bytes: Uint8Array): void {
    if (bytes.length > this.#options.maxFileBytes) {
      this.#options.onIgnored(join(this.#options.folder, name), 'the content is too large');
      return;
    }
    this.#waiting.set(name, bytes);
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when all writes have ended. Never rejects. */
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
        if (!this.#isFaultReported) this.#options.onFault(error);
        this.#isFaultReported = true;
      }
    }
    this.#writing = undefined;
  }

  async #trim(): Promise<void> {
    const { folder, maxFiles } = this.#options;
    const found = await Promise.all(
      (await readdir(folder)).map(async (name) => {
        const file = join(folder, name);
        // Another gateway has removed the file meanwhile: it counts as the oldest.
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
  // When the time cannot be set, the file counts as old.
  await utimes(file, now, now).catch(() => {});
}
