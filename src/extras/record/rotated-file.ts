import { constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { exactStatOf, isSameFile, shiftFiles } from '../../host/files/log-lines.js';
import { removeFile } from '../../host/files/whole-file.js';
import type { LineOutput } from './line-queue.js';

export interface RotatedFileOptions {
  readonly file: string;
  readonly maxFileBytes: number;
  /** Limit of the number of files, the newest included. */
  readonly maxFiles: number;
  /** Makes the first line of each file. `part` counts from 1. */
  readonly header?: (part: number) => string;
  /** Whether other processes may write to the same file. Otherwise an existing file becomes `FILE.1`. */
  readonly isShared: boolean;
}

const { O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants;
const NEWLINE = 0x0a;
/** How often a file that other processes may rotate is compared with its name, in milliseconds. */
const LOOK_EVERY_MS = 1_000;

/**
 * A file with a limited size that only its owner can read. A full file becomes `FILE.1`, the previous `FILE.1` becomes
 * `FILE.2`, and the oldest one is deleted. If a write ends within a line, the next write begins a new line.
 */
export class RotatedFile implements LineOutput {
  readonly #options: RotatedFileOptions;
  #handle: FileHandle;
  #length = 0;
  #headerLength = 0;
  #part = 1;
  #isTorn = false;
  /** When the file was last compared with its name, in milliseconds since 1970. */
  #lookedAt = 0;

  private constructor(options: RotatedFileOptions, handle: FileHandle) {
    this.#options = options;
    this.#handle = handle;
  }

  /** Opens the file. Rejects if it cannot be written. */
  static async open(options: RotatedFileOptions): Promise<RotatedFile> {
    const { file, isShared } = options;
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    if (!isShared) shiftFiles(options.file, options.maxFiles);
    const opened = new RotatedFile(options, await openAt(options));
    try {
      opened.#length = (await opened.#handle.stat()).size;
      await opened.#begin();
      return opened;
    } catch (error) {
      await opened.close();
      if (!isShared) await removeFile(file);
      throw error;
    }
  }

  async write(text: string): Promise<void> {
    if (this.#options.isShared && Date.now() - this.#lookedAt >= LOOK_EVERY_MS) await this.#follow();
    let rest = Buffer.from(this.#isTorn ? `\n${text}` : text);
    while (rest.length > 0) {
      const fitting = this.#fitting(rest);
      if (fitting === 0) await this.#rotate();
      else await this.#append(rest.subarray(0, fitting));
      rest = rest.subarray(fitting);
    }
  }

  /**
   * Opens the file again if another process has rotated it, or if it was removed; otherwise reads its length, which others have changed.
   */
  async #follow(): Promise<void> {
    this.#lookedAt = Date.now();
    const now = exactStatOf(this.#options.file);
    if (now !== undefined && isSameFile(now, await this.#handle.stat({ bigint: true })))
      this.#length = Number(now.size);
    else await this.#reopen();
  }

  /** Returns the number of bytes of these lines that fit into the file. A new file takes any first line. */
  #fitting(lines: Buffer): number {
    const room = this.#options.maxFileBytes - this.#length;
    if (lines.length <= room) return lines.length;
    const fitting = room > 0 ? lines.lastIndexOf(NEWLINE, room - 1) + 1 : 0;
    return fitting === 0 && this.#length <= this.#headerLength ? lines.indexOf(NEWLINE) + 1 : fitting;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** Writes the bytes. A full disk may take only a part of them. */
  async #append(bytes: Uint8Array): Promise<void> {
    let written = 0;
    try {
      while (written < bytes.length) written += (await this.#handle.write(bytes, written)).bytesWritten;
    } finally {
      this.#length += written;
      if (written > 0) this.#isTorn = bytes[written - 1] !== NEWLINE;
    }
  }

  async #begin(): Promise<void> {
    const header = this.#options.header?.(this.#part);
    this.#headerLength = 0;
    if (header === undefined) return;
    await this.#append(Buffer.from(`${header}\n`));
    this.#headerLength = this.#length;
  }

  /** Begins a new file, unless another process has done that. */
  async #rotate(): Promise<void> {
    const { file, isShared, maxFiles } = this.#options;
    const opened = await this.#handle.stat({ bigint: true });
    // Compares and renames in one turn, so that two processes hardly ever rename the files at once.
    if (isSameFile(exactStatOf(file), opened)) shiftFiles(file, maxFiles);
    else if (!isShared) throw new Error(`another process writes to ${file}`);
    await this.#reopen();
  }

  async #reopen(): Promise<void> {
    const handle = await openAt(this.#options);
    await this.#handle.close();
    this.#handle = handle;
    this.#length = (await handle.stat()).size;
    this.#isTorn = false;
    this.#part += 1;
    await this.#begin();
  }
}

/** Opens the file. A pipe in its place is refused at once, because opening it would wait for a reader. */
async function openAt({ file, isShared }: RotatedFileOptions): Promise<FileHandle> {
  const flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW;
  const handle = await open(file, flags | (isShared ? 0 : O_EXCL), 0o600);
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw new Error(`${file} is not a regular file`);
}
