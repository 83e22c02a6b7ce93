import { errorCode } from './error-text.js';
import { HintedError } from './usage-error.js';

/**
 * The words for the errors of the system at files, which all commands and messages use: the reason, as a clause about the file,
 * and the next step. `ulimit` names the limit of a shell.
 */
const FILE_FAULTS: Readonly<Record<string, readonly [reason: string, hint: string]>> = {
  ENOSPC: ['the disk is full', 'make room on the disk'],
  EDQUOT: ['your share of the disk is used up', 'remove files of yours, or ask for a larger share'],
  EFBIG: ['it would be larger than a file may be here', 'raise the limit: `ulimit -f`'],
  EROFS: ['its file system is read-only', 'make the file system writable, or choose another folder'],
  EACCES: ['this user may not do that', 'correct the permissions of the file and of its folder'],
  EPERM: ['the system does not allow that', 'correct the owner and the attributes of the file and of its folder'],
  EMFILE: ['this process has too many open files', 'raise the limit: `ulimit -n`'],
  ENFILE: ['this machine has too many open files', 'end other programs, or raise the limit of the machine'],
  ENAMETOOLONG: ['its path is too long', 'choose a shorter path'],
  EISDIR: ['it is a folder, not a file', 'choose another path, or remove the folder'],
  ENOTDIR: ['a part of its path is a file, not a folder', 'choose another path, or move that file away'],
  EEXIST: ['a file is in the place of a folder of its path', 'move that file away'],
  ENOENT: ['it or its folder does not exist', 'correct the path'],
  ELOOP: ['it is a symbolic link, or its links have no end', 'choose another path, or remove the link'],
  EBUSY: ['another program uses it', 'end that program'],
  EIO: ['the disk has failed', 'check the disk; the log of the system says more'],
};

/** On Windows, a file that another program holds has the same codes as one that this user may not change: EACCES and EPERM. */
const ERRNOS_ON_WINDOWS: ReadonlySet<unknown> = new Set([-4092, -4048]);
const HELD_ON_WINDOWS = [
  'another program uses it, or this user may not do that',
  'end that program, or correct the permissions of the file and of its folder',
] as const;

/** The calls of the system that use files. Others, such as `connect` and `spawn`, give some of the same codes other reasons. */
const FILE_CALLS =
  /^(?:open|write|read|close|f?sync|fdatasync|mkdir|mkdtemp|rename|unlink|rmdir|rm|link|symlink|readlink|copyfile|cp|f?chmod|f?chown|[fl]?utimes?|f?truncate|scandir|opendir|[fl]?stat|access|realpath)$/;

/** Returns the reason of the system, with its code, and the next step. An unknown code is its own reason. */
export function systemFault(error: unknown): { readonly reason: string; readonly hint: string } {
  const code = errorCode(error) ?? 'unknown error';
  const isHeld = error instanceof Error && 'errno' in error && ERRNOS_ON_WINDOWS.has(error.errno);
  const [reason, hint = 'check the file and its folder'] = (isHeld ? HELD_ON_WINDOWS : FILE_FAULTS[code]) ?? [];
  return { reason: reason === undefined ? code : `${reason} (${code})`, hint };
}

/** A file that the system does not let Trunkline write or use. `code` is that of the system. */
export class FileError extends HintedError {
  override readonly name = 'FileError';
  readonly code: string;

  constructor(file: string, cause: unknown, problem = 'cannot be written') {
    const { reason, hint } = systemFault(cause);
    // Without the cause, whose message a log would append, with the same code and often with the name of a draft.
    super(`${file} ${problem}: ${reason}`, hint);
    this.code = errorCode(cause) ?? 'unknown error';
  }
}

/** Names the file in an error of the system, which may have none or that of a draft. Returns other errors as they are. */
export function withFile(error: unknown, file: string): unknown {
  return fileErrorIn(error) === undefined || error instanceof FileError ? error : new FileError(file, error);
}

/** Returns the error as a `FileError`, or `undefined` if it is no error of the system at a file. */
export function fileErrorIn(error: unknown): FileError | undefined {
  if (error instanceof FileError) return error;
  if (!(error instanceof Error) || FILE_FAULTS[errorCode(error) ?? ''] === undefined) return undefined;
  const { syscall, path } = error as NodeJS.ErrnoException;
  if (syscall === undefined || !FILE_CALLS.test(syscall)) return undefined;
  return new FileError(path ?? 'a file', error, 'cannot be used');
}

/** Returns the message of an error on one line, with the next step if one is known. */
export function explain(error: unknown): string {
  const known = error instanceof HintedError ? error : fileErrorIn(error);
  if (known !== undefined) return `${known.message}; ${known.hint}`;
  return error instanceof Error ? error.message : String(error);
}
