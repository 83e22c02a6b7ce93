import { randomBytes } from 'node:crypto';
import {
  type BigIntStats,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  promises,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { parseJson } from '../../wire/json/json-value.js';
import { errorCode } from '../errors/error-text.js';
import { systemFault, withFile } from '../errors/file-error.js';
import { UsageError } from '../errors/usage-error.js';
import { whenFree, whenFreeSync } from './held-files.js';

/*
 * Writes files completely or not at all: first a draft in the same folder, which a rename or a link then puts in place. Drafts have
 * random names, because gateways in different containers can share a folder and have the same pid. Missing folders are created for
 * the owner alone. If the system refuses, the old content stays, the draft and new folders are removed, and a `FileError` with the
 * name of the file is thrown.
 */

/** Suffix of drafts. A gateway that is killed during a write leaves its draft behind. */
export const DRAFT_SUFFIX = '.tmp';

interface WriteOptions {
  /** Permissions of the file. Default: 0o600, for the owner alone. */
  readonly mode?: number;
  /** Whether to wait until the content is on the disk, so that a power failure does not leave an empty file. */
  readonly flush?: boolean;
}

/** Creates the file or replaces its content. */
export async function replaceFile(
  file: string,
  content: string | Uint8Array,
  { mode = 0o600, flush = false }: WriteOptions = {},
): Promise<void> {
  const draft = draftOf(file);
  const write = () => promises.writeFile(draft, content, { mode, flush, flag: 'wx' });
  let made: readonly string[] = [];
  try {
    await write().catch(async (error) => {
      if (errorCode(error) !== 'ENOENT') throw error;
      made = missingFolders(file);
      await promises.mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await write();
    });
    await whenFree(() => promises.rename(draft, file));
  } catch (error) {
    // Only the first error is reported, because removing the draft may fail for the same reason.
    await promises.unlink(draft).catch(() => {});
    removeEmpty(made);
    throw withFile(error, file);
  }
}

/** `replaceFile`, for callers that must know the outcome at once. */
export function replaceFileSync(file: string, content: string | Uint8Array, options?: WriteOptions): void {
  withDraft(file, content, options, (draft) => whenFreeSync(() => renameSync(draft, file)));
}

/** Creates the file. Returns false, and changes nothing, if the file exists. */
export function createFileSync(file: string, content: string | Uint8Array, options?: WriteOptions): boolean {
  return withDraft(file, content, options, (draft) => {
    try {
      // A link, because a rename would replace a file that another process has created meanwhile.
      linkSync(draft, file);
      return true;
    } catch (error) {
      if (errorCode(error) === 'EEXIST') return false;
      throw error;
    }
  });
}

/** The folders that have to be made for a file, its own first. */
export function missingFolders(file: string): readonly string[] {
  const missing: string[] = [];
  for (let folder = dirname(file); !existsSync(folder); folder = dirname(folder)) missing.push(folder);
  return missing;
}

/** Removes folders that are empty, the inner ones first. */
export function removeEmpty(folders: readonly string[]): void {
  try {
    for (const folder of folders) rmdirSync(folder);
  } catch {
    // It has content, or was not made.
  }
}

export async function removeFile(file: string): Promise<void> {
  await whenFree(() => promises.rm(file, { force: true }));
}

/** Copies a file with its content, mode and time of change, in milliseconds since 1970. */
export function copyWhole(from: string, to: string, modifiedMs: number): void {
  const draft = draftOf(to);
  const made = missingFolders(to);
  try {
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    copyFileSync(from, draft, constants.COPYFILE_EXCL);
    utimesSync(draft, new Date(), new Date(modifiedMs));
    whenFreeSync(() => renameSync(draft, to));
  } catch (error) {
    rmSync(draft, { force: true });
    removeEmpty(made);
    throw withFile(error, to);
  }
}

/** The path of the copy that keeps the older content of a file beside it: its name has the time of the last change, in UTC. */
export function olderBeside(file: string, modifiedMs: number): string {
  return `${file}.${new Date(modifiedMs).toISOString().replaceAll(/[-:.]/g, '')}.bak`;
}

/** Copies a file over another one, like `copyWhole`. A regular file that it replaces is kept as the copy of `olderBeside`. */
export function copyOver(from: string, to: string, modifiedMs: number): void {
  const before = lstatSync(to, { throwIfNoEntry: false });
  if (before?.isFile()) copyWhole(to, olderBeside(to, before.mtimeMs), before.mtimeMs);
  copyWhole(from, to, modifiedMs);
}

function withDraft<T>(
  file: string,
  content: string | Uint8Array,
  { mode = 0o600, flush = false }: WriteOptions = {},
  publish: (draft: string) => T,
): T {
  const draft = draftOf(file);
  const made = missingFolders(file);
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    try {
      writeFileSync(draft, content, { mode, flush, flag: 'wx' });
      return publish(draft);
    } finally {
      rmSync(draft, { force: true });
    }
  } catch (error) {
    removeEmpty(made);
    throw withFile(error, file);
  }
}

function draftOf(file: string): string {
  return `${file}.${randomBytes(6).toString('hex')}${DRAFT_SUFFIX}`;
}

/** Size limit of JSON files of other programs, above every file of npm. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Reads a whole text of at most 64 MiB; `undefined` if it is missing, unreadable, larger, or not a regular file. */
export function readTextFile(file: string): string | undefined {
  const found = readRegularFileSync(file, { maxBytes: MAX_BYTES, followsLinks: true });
  return found.kind === 'read' ? found.bytes.toString() : undefined;
}

/** Reads JSON of another program, such as npm. `undefined` if the file is missing, damaged or not a regular file. */
export function readJsonFile(file: string): unknown {
  const text = readTextFile(file);
  return text === undefined ? undefined : parseJson(text);
}

export interface ReadRules {
  /** A larger file is not read. */
  readonly maxBytes: number;
  /** Whether the file must belong to this user, and other users must not be able to read or change it. */
  readonly isPrivate?: boolean;
  /** Whether other users must not be able to change the file. They may be able to read it. */
  readonly isGuarded?: boolean;
  readonly followsLinks?: boolean;
  /** Whether a private file may belong to root, and be readable by its group. */
  readonly isFromSystem?: boolean;
}

type FileFault = 'unreadable' | 'link' | 'not-regular' | 'foreign' | 'exposed' | 'too-large';

/** The result of reading a file, which may be missing or unusable. */
export type ReadFile =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly fault: FileFault; readonly reason: string; readonly cause?: unknown }
  | {
      readonly kind: 'read';
      readonly bytes: Buffer;
      /** Time of the last change, in milliseconds since 1970. */
      readonly modifiedAt: number;
      /** Always false on Windows. */
      readonly isReadableByOthers: boolean;
    };

type Unusable = Extract<ReadFile, { kind: 'unusable' }>;

/** The rules for a file that only this user may read and change. */
export function privateFile(maxBytes: number): ReadRules {
  return { maxBytes, isPrivate: true };
}

/**
 * The rules for a file with a secret. In `folder`, where the system puts secrets, the file may be a symbolic link that stays
 * in the folder, belong to root, and be readable by its group, as in a Secret volume of Kubernetes.
 */
export function secretRules(file: string, maxBytes: number, folder?: string): ReadRules {
  const [real, realFolder] = folder === undefined ? [] : [realPath(file), realPath(folder)];
  if (real === undefined || realFolder === undefined || !real.startsWith(join(realFolder, sep)))
    return privateFile(maxBytes);
  return { maxBytes, isPrivate: true, followsLinks: true, isFromSystem: true };
}

/**
 * Reads a regular file. Never throws. Refuses folders, devices and sockets, and symbolic links unless the rules allow them. Refuses pipes,
 * because opening a pipe without a writer would wait without end, and reading a pipe would take data that is meant for another process.
 */
export async function readRegularFile(file: string, rules: ReadRules): Promise<ReadFile> {
  try {
    // `promises` is used here first, because Node loads its code with the first use.
    const handle = await whenFree(() => promises.open(file, flagsFor(rules)));
    try {
      const stats = await handle.stat();
      return faultOf(stats, rules) ?? read(await handle.readFile(), stats);
    } finally {
      await handle.close();
    }
  } catch (error) {
    return unread(error);
  }
}

/** `readRegularFile`, for callers that must know the content at once. */
export function readRegularFileSync(file: string, rules: ReadRules): ReadFile {
  try {
    const descriptor = whenFreeSync(() => openSync(file, flagsFor(rules)));
    try {
      const stats = fstatSync(descriptor);
      return faultOf(stats, rules) ?? read(readFileSync(descriptor), stats);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    return unread(error);
  }
}

/** Reads a file that a setting or an option names. Rejects with a `UsageError` if it is missing or unusable. */
export async function readNamedFile(file: string, setting: string, rules: ReadRules, hint: string): Promise<Buffer> {
  const found = await readRegularFile(file, rules);
  if (found.kind === 'read') return found.bytes;
  throw unusableFile(file, setting, found.kind === 'absent' ? 'it does not exist' : found.reason, hint);
}

export function unusableFile(file: string, setting: string, reason: string, hint: string): UsageError {
  return new UsageError(`cannot use the file ${file} of ${setting}: ${reason}`, hint);
}

/** Windows has neither flag, and no pipes among its files. */
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;

function flagsFor({ followsLinks = false }: ReadRules): number {
  return O_RDONLY | O_NONBLOCK | (followsLinks ? 0 : O_NOFOLLOW);
}

function read(bytes: Buffer, { mode, mtimeMs }: Stats): ReadFile {
  const isReadableByOthers = process.getuid !== undefined && (mode & 0o044) !== 0;
  return { kind: 'read', bytes, modifiedAt: mtimeMs, isReadableByOthers };
}

function faultOf(stats: Stats, rules: ReadRules): Unusable | undefined {
  const { maxBytes, isPrivate = false, isGuarded = false, isFromSystem = false } = rules;
  // Windows has neither owners nor modes. The permissions of the user's folder protect the file there.
  const isPosix = process.getuid !== undefined;
  if (!stats.isFile()) return unusable('not-regular', `it is ${describeKind(stats)}`);
  const isOwn = stats.uid === process.getuid?.() || (isFromSystem && stats.uid === 0);
  if (isPosix && isPrivate && !isOwn) return unusable('foreign', 'it belongs to another user');
  if (isPosix && isPrivate && (stats.mode & (isFromSystem ? 0o037 : 0o077)) !== 0)
    return unusable('exposed', 'other users can read or change it');
  if (isPosix && isGuarded && (stats.mode & 0o022) !== 0) return unusable('exposed', 'other users can change it');
  return stats.size <= maxBytes ? undefined : unusable('too-large', 'it is too large');
}

function unusable(fault: FileFault, reason: string, cause?: unknown): Unusable {
  return { kind: 'unusable', fault, reason, ...(cause !== undefined && { cause }) };
}

export function describeKind(stats: Stats): string {
  if (stats.isDirectory()) return 'a folder, not a file';
  if (stats.isFIFO()) return 'a pipe, not a regular file';
  return stats.isSocket() ? 'a socket, not a regular file' : 'a device, not a regular file';
}

function unread(cause: unknown): ReadFile {
  const code = errorCode(cause);
  if (code === 'ENOENT') return { kind: 'absent' };
  // EMLINK is the code of FreeBSD for a symbolic link.
  if (code === 'ELOOP' || code === 'EMLINK')
    return unusable('link', 'it is a symbolic link, not a regular file', cause);
  // The codes of Linux and of macOS for a socket; the first one is that of a device without hardware, too.
  if (code === 'ENXIO' || code === 'EOPNOTSUPP')
    return unusable('not-regular', 'it is a socket or a device, not a regular file', cause);
  return unusable('unreadable', `it cannot be read: ${systemFault(cause).reason}`, cause);
}

/**
 * The path behind all symbolic links; `undefined` if the path is missing or not accessible. On macOS and Windows, letters have the
 * case that they have on the disk, so that two spellings of a path are one file.
 */
export function realPath(path: string): string | undefined {
  try {
    if (process.platform === 'darwin') return realpathSync.native(path);
    const real = realpathSync(path);
    if (process.platform !== 'win32') return real;
    const onDisk = realpathSync.native(path);
    // Windows replaces the letter of a network drive, too, by a name that cmd.exe takes for no working folder.
    return onDisk.startsWith('\\\\') ? real : onDisk;
  } catch {
    return undefined;
  }
}

/** The names in a folder; none if it does not exist, or cannot be read. */
export function fileNamesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The file or folder behind a path and its symbolic links; `undefined` if it is missing or not accessible. */
export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** A text that changes when a file is written or replaced; `undefined` if the file is missing or not accessible. */
export function fileState(file: string): string | undefined {
  try {
    return stateIn(statSync(file, { bigint: true }));
  } catch {
    return undefined;
  }
}

/** A text that changes when one of the files does. */
export function statesOf(files: readonly string[]): string {
  return files.map(fileState).join();
}

export function stateIn({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join('-');
}
