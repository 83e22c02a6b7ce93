import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, readdirSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative } from 'node:path';
import { errorCode } from '../../../host/errors/error-text.js';
import { systemFault } from '../../../host/errors/file-error.js';
import { FileRefusal } from '../../../host/files/edit/parse-text.js';
import { whenFreeSync } from '../../../host/files/held-files.js';
import { readRegularFile, realPath, replaceFile } from '../../../host/files/whole-file.js';

/** Largest file of a client that is read. Claude Code keeps the history of all projects in its file. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024;
/** Most backups of one file. Older ones are removed. */
const MAX_BACKUPS = 5;
/** Mode of a new file, because files of clients may hold secrets. */
const NEW_FILE_MODE = 0o600;

export interface ClientFile {
  /** The path behind symbolic links, which stay links. */
  readonly file: string;
  /** `undefined` if there is no file. */
  readonly bytes: Buffer | undefined;
  readonly mode: number;
}

/** Reads a file in order to change it. Throws a `FileRefusal` if it is not a regular file of this user inside their home folder. */
export async function readClientFile(path: string, home: string): Promise<ClientFile> {
  const file = realTarget(path, home);
  const found = await readRegularFile(file, { maxBytes: MAX_FILE_BYTES });
  if (found.kind === 'absent') return { file, bytes: undefined, mode: NEW_FILE_MODE };
  if (found.kind === 'unusable') throw new FileRefusal(found.reason);
  const { uid, mode } = statSync(file);
  if (process.getuid !== undefined && uid !== process.getuid()) throw new FileRefusal('it belongs to another user');
  // Replacing the file would succeed all the same, because that needs rights in the folder only.
  if ((mode & 0o200) === 0) throw new FileRefusal('it is read-only; make it writable first if Trunkline may change it');
  return { file, bytes: found.bytes, mode: mode & 0o777 };
}

/** The text of a file; empty if there is none. Throws a `FileRefusal` if it is not UTF-8, since it could not be written back. */
export function textOfFile({ bytes }: ClientFile): string {
  if (bytes === undefined) return '';
  const text = bytes.toString();
  if (!Buffer.from(text).equals(bytes)) throw new FileRefusal('it is not UTF-8');
  return text;
}

export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Whether a file still has the content with which it was read. */
export async function isAsRead(known: ClientFile): Promise<boolean> {
  const found = await readRegularFile(known.file, { maxBytes: MAX_FILE_BYTES });
  if (known.bytes === undefined || found.kind !== 'read') return known.bytes === undefined && found.kind === 'absent';
  return found.bytes.equals(known.bytes);
}

/**
 * Writes a file that was read before, whole or not at all, with its mode. Throws a `FileRefusal` if another program changed
 * it since, or if it has other content afterwards.
 */
export async function writeClientFile(known: ClientFile, content: Uint8Array): Promise<void> {
  if (!(await isAsRead(known))) throw new FileRefusal('it has changed meanwhile; run this command again');
  const { file, mode } = known;
  try {
    await replaceFile(file, content, { mode, flush: true });
  } catch (error) {
    throw systemRefusal('it cannot be written', error);
  }
  // The mode of a new file is subject to the umask.
  if (process.platform !== 'win32' && (statSync(file).mode & 0o777) !== mode) chmodSync(file, mode);
  const written = await readRegularFile(file, { maxBytes: MAX_FILE_BYTES });
  if (written.kind !== 'read' || !written.bytes.equals(content)) {
    throw new FileRefusal('it has other content than was written; another program writes it, too');
  }
}

/** Copies a file beside itself, with its mode, and removes the oldest copies. `undefined` without a file. Throws a `FileRefusal`. */
export function backUp({ file, bytes, mode }: ClientFile, now: Date): string | undefined {
  if (bytes === undefined) return undefined;
  const stem = `${file}.trunkline-${stamp(now)}`;
  try {
    for (let count = 1; ; count += 1) {
      const backup = count === 1 ? `${stem}.bak` : `${stem}-${count}.bak`;
      try {
        writeFileSync(backup, bytes, { flag: 'wx', mode, flush: true });
      } catch (error) {
        if (errorCode(error) === 'EEXIST') continue;
        // A full disk leaves an empty or short file.
        dropBackup(backup);
        throw error;
      }
      if (process.platform !== 'win32') chmodSync(backup, mode);
      removeOldBackups(file, backup);
      return backup;
    }
  } catch (error) {
    throw systemRefusal('its backup cannot be written beside it', error);
  }
}

/** Removes a file if it still has the content that was read. */
export async function removeClientFile(known: ClientFile): Promise<void> {
  if (!(await isAsRead(known))) throw new FileRefusal('it has changed meanwhile; run this command again');
  try {
    whenFreeSync(() => unlinkSync(known.file));
  } catch (error) {
    throw systemRefusal('it cannot be removed', error);
  }
}

function systemRefusal(problem: string, error: unknown): FileRefusal {
  const { reason, hint } = systemFault(error);
  return new FileRefusal(`${problem}: ${reason}; ${hint}`);
}

/** Removes a backup that is not needed any more. It does no harm if it stays. */
export function dropBackup(backup: string): void {
  try {
    unlinkSync(backup);
  } catch {
    // Another process has removed it, or it cannot be removed.
  }
}

function removeOldBackups(file: string, newest: string): void {
  const folder = dirname(file);
  const beginning = `${basename(file)}.trunkline-`;
  const isBackup = (name: string) => /^\d{8}-\d{6}(?:-\d+)?\.bak$/.test(name.slice(beginning.length));
  const names = readdirSync(folder).filter((name) => name.startsWith(beginning) && isBackup(name));
  const others = names.map((name) => join(folder, name)).filter((path) => path !== newest);
  const age = (one: string, other: string) => statSync(one).mtimeMs - statSync(other).mtimeMs || (one < other ? -1 : 1);
  for (const path of others.sort(age).slice(0, Math.max(0, others.length - MAX_BACKUPS + 1))) dropBackup(path);
}

/** Local time, as people look for it. */
function stamp(now: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  return `${day}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
}

/** The target of a path. A path inside the home folder must not lead out of it. */
function realTarget(path: string, home: string): string {
  const target = realPath(path) ?? newFile(path);
  if (isInside(path, home) && !isInside(target, realPath(home) ?? home)) {
    throw new FileRefusal('it is a symbolic link that leads out of your home folder');
  }
  return target;
}

/** The real path of a file that does not exist. Its folders may not exist, either. */
function newFile(path: string): string {
  if (exists(path)) throw new FileRefusal('it is a symbolic link that leads nowhere');
  const folder = dirname(path);
  return folder === path ? path : join(realPath(folder) ?? newFile(folder), basename(path));
}

/** Whether something has this path, also a link that leads nowhere. Throws a `FileRefusal` if a folder of the path cannot be used. */
function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw systemRefusal('its folder cannot be used', error);
  }
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '' && !way.startsWith('..') && !isAbsolute(way);
}
