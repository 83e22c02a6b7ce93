import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { errorCode } from '../errors/error-text.js';

/** The result of reading a file that must belong to this user alone. */
export type PrivateFile =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly reason: string }
  | { readonly kind: 'read'; readonly bytes: Uint8Array; readonly modifiedAt: number };

/** Reads a regular file that this user owns, that nobody else can read or write, and that has at most `maxBytes`. */
export function readPrivateFile(file: string, maxBytes: number): PrivateFile {
  let descriptor: number;
  try {
    descriptor = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    const code = errorCode(error);
    return code === 'ENOENT'
      ? { kind: 'absent' }
      : { kind: 'unusable', reason: `it cannot be read (${code ?? 'unknown'})` };
  }
  try {
    const stats = fstatSync(descriptor);
    const reason = faultOf(stats, maxBytes);
    if (reason !== undefined) return { kind: 'unusable', reason };
    return { kind: 'read', bytes: readFileSync(descriptor), modifiedAt: stats.mtimeMs };
  } catch (error) {
    return { kind: 'unusable', reason: String(error) };
  } finally {
    closeSync(descriptor);
  }
}

function faultOf(stats: Stats, maxBytes: number): string | undefined {
  const { uid, mode, size } = stats;
  if (!stats.isFile()) return 'it is not a regular file';
  // Windows has neither; there the permissions of the user's folder protect the file.
  const isOurs = process.getuid === undefined || (uid === process.getuid() && (mode & 0o077) === 0);
  if (!isOurs) return 'other users can read or change it';
  return size > maxBytes ? 'it is too large' : undefined;
}
