import { closeSync, constants, fstatSync, mkdirSync, openSync, realpathSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { exactStatOf, isSameFile, shiftFiles } from '../files/log-lines.js';

/** Five files of this size at most, the current one included. */
const MAX_FILE_BYTES = 10 * 1024 * 1024;
export const MAX_LOG_FILES = 5;

export interface LogFileOptions {
  readonly file: string;
  readonly maxFileBytes?: number;
  readonly maxFiles?: number;
  /** Called for the first line of a series that cannot be written. */
  readonly onFault: (error: unknown) => void;
}

/**
 * A log file with rotation: when it is full it becomes `FILE.1`, the previous `FILE.1` becomes `FILE.2`, and so on; the
 * oldest file is removed.
 *
 * Writes are synchronous, so that the last line before a crash is not lost. Only the owner can read the files, and a
 * folder that is created for them. A terminal, a pipe or a device is never renamed. A line that cannot be written is
 * lost; the next line is tried again. Several processes may write to the same log.
 */
export class LogFile {
  /** The target of a symbolic link, so that the link itself stays. Undefined when the file cannot be rotated. */
  readonly #file: string | undefined;
  readonly #maxFileBytes: number;
  readonly #maxFiles: number;
  readonly #onFault: (error: unknown) => void;
  #descriptor: number;
  #length: number;
  #isFaulty = false;
  /** The last line was written only in part. */
  #isTorn = false;

  /** Throws when the file cannot be opened. */
  constructor({ file, maxFileBytes = MAX_FILE_BYTES, maxFiles = MAX_LOG_FILES, onFault }: LogFileOptions) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    this.#maxFileBytes = maxFileBytes;
    this.#maxFiles = maxFiles;
    this.#onFault = onFault;
    this.#descriptor = open(file);
    const stats = fstatSync(this.#descriptor);
    this.#file = stats.isFile() ? realpathSync(file) : undefined;
    this.#length = stats.size;
  }

  write(line: string): void {
    try {
      const bytes = Buffer.from(this.#isTorn ? `\n${line}` : line);
      const isFull = this.#length > 0 && this.#length + bytes.length > this.#maxFileBytes;
      if (isFull && this.#file !== undefined) this.#rotate(this.#file);
      this.#writeWhole(bytes);
      this.#isFaulty = false;
    } catch (error) {
      if (!this.#isFaulty) this.#onFault(error);
      this.#isFaulty = true;
    }
  }

  /** Writes all bytes. A full disk accepts a part of the line first, and nothing afterwards. */
  #writeWhole(bytes: Buffer): void {
    let written = 0;
    while (written < bytes.length) {
      written += writeSync(this.#descriptor, bytes, written);
      this.#isTorn = written < bytes.length;
    }
    this.#length += written;
  }

  #rotate(file: string): void {
    // Another process with the same log may have rotated it already.
    if (isSameFile(exactStatOf(file), fstatSync(this.#descriptor, { bigint: true }))) shiftFiles(file, this.#maxFiles);
    const descriptor = open(file);
    closeSync(this.#descriptor);
    this.#descriptor = descriptor;
    this.#length = fstatSync(descriptor).size;
  }
}

const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK = 0 } = constants;

/** Opens the log without blocking, so that a pipe without a reader, or a full one, is an error and does not block Trunkline. */
function open(file: string): number {
  const descriptor = openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0o600);
  // Windows can open a folder in this way, and refuses each line.
  if (!fstatSync(descriptor).isDirectory()) return descriptor;
  closeSync(descriptor);
  throw Object.assign(new Error(`${file} is a folder`), { code: 'EISDIR' });
}
