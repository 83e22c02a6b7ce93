import { type BigIntStats, renameSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { errorCode } from '../errors/error-text.js';
import { whenFreeSync } from './held-files.js';

export interface LogLinesOptions {
  /** The newest file. `FILE.1` is the one before it, and so on. */
  readonly file: string;
  /** Largest number of files, including the newest. */
  readonly maxFiles: number;
  /** Whether to go on with lines that are written later, even after a rotation. */
  readonly isFollowed: boolean;
}

const READ_BYTES = 64 * 1024;
/** How often a followed file is read, in milliseconds. */
const LOOK_EVERY_MS = 250;

/** The newest file that was read, and how much of it was read. */
interface Progress {
  readonly id: string;
  readonly decoder: InstanceType<typeof TextDecoder>;
  position: number;
  unfinished: string;
}

/**
 * Yields the lines of a log file and of its rotated predecessors, the oldest line first; nothing if there is no file. Closes
 * all files when the caller stops early.
 */
export async function* logLines(options: LogLinesOptions): AsyncGenerator<string> {
  let progress: Progress | undefined;
  for (;;) {
    const files = await openAll(options);
    try {
      // All files are newer if the file that was read last is gone.
      const at = files.findIndex(({ id }) => id === progress?.id);
      for (const { id, handle } of files.slice(Math.max(0, at))) {
        if (progress?.id !== id) progress = { id, decoder: new TextDecoder(), position: 0, unfinished: '' };
        yield* newLines(handle, progress);
      }
    } finally {
      for (const { handle } of files) await handle.close();
    }
    if (!options.isFollowed) return;
    await setTimeout(LOOK_EVERY_MS);
  }
}

/**
 * Renames `FILE` to `FILE.1`, `FILE.1` to `FILE.2`, and so on. The oldest file is overwritten. Throws if a file cannot be renamed, because
 * the next one would overwrite it.
 */
export function shiftFiles(file: string, maxFiles: number): void {
  for (let at = maxFiles - 1; at >= 1; at -= 1) {
    try {
      whenFreeSync(() => renameSync(nameOf(file, at - 1), nameOf(file, at)));
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error;
    }
  }
}

/** The numbers that identify a file. Those of Windows have 64 bits, and a `number` of two files could be the same. */
export interface FileIdentity {
  readonly ino: bigint;
  readonly dev: bigint;
}

/** The file behind a name; `undefined` if it is missing or not accessible. */
export function exactStatOf(file: string): BigIntStats | undefined {
  try {
    return statSync(file, { bigint: true });
  } catch {
    return undefined;
  }
}

/** Whether a name still leads to an open file, which another process may have rotated. */
export function isSameFile(named: FileIdentity | undefined, opened: FileIdentity): boolean {
  return named?.ino === opened.ino && named.dev === opened.dev;
}

function nameOf(file: string, number: number): string {
  return number === 0 ? file : `${file}.${number}`;
}

/** Opens the files, the oldest first. The id of a file stays the same when the file is renamed. */
async function openAll({ file, maxFiles }: LogLinesOptions): Promise<{ id: string; handle: FileHandle }[]> {
  const files = new Map<string, FileHandle>();
  for (let at = maxFiles - 1; at >= 0; at -= 1) {
    const handle = await open(nameOf(file, at), 'r').catch(() => undefined);
    if (handle === undefined) continue;
    const { dev, ino } = await handle.stat({ bigint: true });
    const id = `${dev} ${ino}`;
    // A file that was renamed meanwhile is opened under two names.
    if (files.has(id)) await handle.close();
    else files.set(id, handle);
  }
  return [...files].map(([id, handle]) => ({ id, handle }));
}

/** Yields the lines that were written since the last read. */
async function* newLines(handle: FileHandle, progress: Progress): AsyncGenerator<string> {
  const buffer = new Uint8Array(READ_BYTES);
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, READ_BYTES, progress.position);
    if (bytesRead === 0) return;
    progress.position += bytesRead;
    const text = progress.unfinished + progress.decoder.decode(buffer.subarray(0, bytesRead), { stream: true });
    const lines = text.split('\n');
    progress.unfinished = lines.pop() ?? '';
    yield* lines;
  }
}
