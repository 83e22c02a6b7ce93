import { readdir, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import {
  DRAFT_SUFFIX,
  privateFile,
  readRegularFile,
  readRegularFileSync,
  removeFile,
  replaceFile,
} from '../host/files/whole-file.js';
import type { Cancel, Clock } from '../wire/timing/clock.js';

export interface CacheFolderOptions {
  readonly folder: string;
  readonly maxFileBytes: number;
  /** Limit on the number of files. The least recently used files are removed first. */
  readonly maxFiles: number;
  /** Called for a file that exists and cannot be used. */
  readonly onIgnored: (file: string, reason: string) => void;
  /** Called for the first failed write. */
  readonly onFault: (error: unknown) => void;
  /** Clock that delays writes by one second, because a starting client needs the processor first. Without it, they begin at once. */
  readonly clock?: Clock;
}

/** The content of a file, or a function that is called once, when the file is written or read. */
export type CacheContent = Uint8Array | (() => Uint8Array);

const WRITE_AFTER_MS = 1_000;

/** Minimum time between two updates of a file's time of last use. */
const MARK_EVERY_MS = 24 * 60 * 60 * 1_000;
/** Age from which a draft counts as left behind by a killed process. */
const TORN_AFTER_MS = 60_000;

/**
 * A folder of cache files. Each file may be missing at any time, and a failed write is only logged.
 *
 * Reads are synchronous, because a client waits for them. Writes happen in the background and replace whole files. Files of
 * other users, and files that other users can read or write, are ignored.
 */
export class CacheFolder {
  readonly #options: CacheFolderOptions;
  readonly #waiting = new Map<string, CacheContent>();
  #cancel: Cancel | undefined;
  #writing: Promise<void> | undefined;
  #isFaultReported = false;

  constructor(options: CacheFolderOptions) {
    this.#options = options;
  }

  /** The content of a file; `undefined` if the file is missing or cannot be used. */
  read(name: string): Uint8Array | undefined {
    const waiting = this.#waiting.get(name);
    if (waiting !== undefined) {
      const content = bytesOf(waiting);
      this.#waiting.set(name, content);
      return content;
    }
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

  /** Schedules a write. A file with the same content is not written again. Content above `maxFileBytes` is not written. */
  write(name: string, content: CacheContent): void {
    this.#waiting.set(name, content);
    if (this.#writing !== undefined || this.#cancel !== undefined) return;
    const { clock } = this.#options;
    if (clock === undefined) this.#begin();
    else this.#cancel = clock.schedule(WRITE_AFTER_MS, () => this.#begin());
  }

  /** Starts scheduled writes. Resolves when all writes have ended. Never rejects. */
  async settled(): Promise<void> {
    if (this.#cancel !== undefined) this.#begin();
    await this.#writing;
  }

  #begin(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#writing = this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    for (let [next] = this.#waiting; next !== undefined; [next] = this.#waiting) {
      const [name, content] = next;
      this.#waiting.delete(name);
      try {
        await this.#writeFile(name, bytesOf(content));
        if (this.#waiting.size === 0) await this.#trim();
      } catch (error) {
        if (!this.#isFaultReported) this.#options.onFault(error);
        this.#isFaultReported = true;
      }
    }
    this.#writing = undefined;
  }

  async #writeFile(name: string, bytes: Uint8Array): Promise<void> {
    const { folder, maxFileBytes, onIgnored } = this.#options;
    const file = join(folder, name);
    if (bytes.length > maxFileBytes) {
      onIgnored(file, 'the content is too large');
      return;
    }
    const before = await readRegularFile(file, privateFile(maxFileBytes));
    if (before.kind !== 'read' || !before.bytes.equals(bytes)) await replaceFile(file, bytes);
  }

  async #trim(): Promise<void> {
    const { folder, maxFiles } = this.#options;
    const found = await Promise.all(
      (await readdir(folder)).map(async (name) => {
        const file = join(folder, name);
        // A file that another gateway has removed meanwhile counts as the oldest.
        const usedAt = await stat(file).then(
          ({ mtimeMs }) => mtimeMs,
          () => 0,
        );
        return { file, usedAt, isDraft: name.endsWith(DRAFT_SUFFIX) };
      }),
    );
    const torn = found.filter(({ isDraft, usedAt }) => isDraft && Date.now() - usedAt > TORN_AFTER_MS);
    const whole = found.filter(({ isDraft }) => !isDraft).sort((a, b) => b.usedAt - a.usedAt);
    await Promise.all([...torn, ...whole.slice(maxFiles)].map(({ file }) => removeFile(file)));
  }
}

function bytesOf(content: CacheContent): Uint8Array {
  return typeof content === 'function' ? content() : content;
}

async function markUsed(file: string): Promise<void> {
  const now = new Date();
  // If the time cannot be set, the file counts as old.
  await utimes(file, now, now).catch(() => {});
}
