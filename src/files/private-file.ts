import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { errorCode } from '../errors/error-text.js';

/** What was found where a file of this user's may be. */
export type PrivateFile =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly reason: string }
  | { readonly kind: 'read'; readonly bytes: Uint8Array; readonly modifiedAt: number };

/** Reads a file that nobody but this user can read or have written, and that is no larger than it may be. */
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
  if (!stats.isFile()) return 'it is no file';
  // Windows has neither; there the user's folder keeps others out.
  const isOurs = process.getuid === undefined || (uid === process.getuid() && (mode & 0o077) === 0);
  if (!isOurs) return 'others can read or change it';
  return size > maxBytes ? 'it is too large' : undefined;
}
