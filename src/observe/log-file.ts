import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** All files of one log together take five times this at most, the one that is written to included. */
const MAX_FILE_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 5;

export interface LogFileOptions {
  readonly file: string;
  readonly maxFileBytes?: number;
  readonly maxFiles?: number;
  /** Called when a line could not be written, and not again before one could. */
  readonly onFault: (error: unknown) => void;
}

/**
 * A log file that does not grow without end: when it is full it becomes `FILE.1`, the one before `FILE.2`, and so on,
 * and the oldest goes.
 *
 * Writes are synchronous, so that the last line before an exit is not lost. Files are readable by their owner only, and
 * so is a folder that has to be made for them. What is no regular file, such as a terminal or a pipe, is written to and
 * never renamed. A line that cannot be written is lost, and the next one is tried again.
 */
export class LogFile {
  /** Of a link, what it leads to: that is rotated, not the link. Absent for what is no file to rotate. */
  readonly #file: string | undefined;
  readonly #maxFileBytes: number;
  readonly #maxFiles: number;
  readonly #onFault: (error: unknown) => void;
  #descriptor: number;
  #length: number;
  #isFaulty = false;
  /** The last line was written in part. */
  #isTorn = false;

  /** Throws when the file cannot be opened. */
  constructor({ file, maxFileBytes = MAX_FILE_BYTES, maxFiles = MAX_FILES, onFault }: LogFileOptions) {
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

  /** A full disk takes a part of a line first, and nothing of it then. */
  #writeWhole(bytes: Buffer): void {
    let written = 0;
    while (written < bytes.length) {
      written += writeSync(this.#descriptor, bytes, written);
      this.#isTorn = written < bytes.length;
    }
    this.#length += written;
  }

  #rotate(file: string): void {
    // Another process with the same log may have done so already.
    if (isSame(statOf(file), fstatSync(this.#descriptor))) {
      for (let number = this.#maxFiles - 1; number >= 1; number -= 1) {
        const younger = number === 1 ? file : `${file}.${number - 1}`;
        if (statOf(younger) !== undefined) renameSync(younger, `${file}.${number}`);
      }
    }
    const descriptor = open(file);
    closeSync(this.#descriptor);
    this.#descriptor = descriptor;
    this.#length = fstatSync(descriptor).size;
  }
}

function open(file: string): number {
  return openSync(file, 'a', 0o600);
}

function statOf(file: string): Stats | undefined {
  return statSync(file, { throwIfNoEntry: false });
}

function isSame(one: Stats | undefined, other: Stats): boolean {
  return one?.ino === other.ino && one.dev === other.dev;
}
