import { randomBytes } from 'node:crypto';
import { open } from 'node:fs/promises';
import { errorCode } from '../errors/error-text.js';
import { createFile } from './whole-file.js';

export type TokenFileErrorCode =
  /** There is something, but it cannot be read as a file, or not be written. */
  | 'token-file-unusable'
  /** Others may read or change it. */
  | 'token-file-exposed'
  /** What stands in it is no token. */
  | 'token-file-malformed';

/** A token's file that cannot be used. The message never contains what stands in it. */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError';
  readonly code: TokenFileErrorCode;

  constructor(code: TokenFileErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** 43 characters in Base64 without padding. */
const TOKEN_BYTES = 32;

/** What may stand in an `Authorization` header after `Bearer`, and is as long as a token of ours at least. */
const TOKEN = /^[A-Za-z0-9._~+/-]{43,}={0,2}$/;

/** Enough for any token; a larger file is something else. */
const MAX_FILE_BYTES = 4_096;

/**
 * The token in the file, which is created with a new one if there is none yet.
 *
 * Only its owner may read it. Several processes may come here at once: all get the same token.
 */
export async function readOrCreateToken(file: string): Promise<string> {
  const token = await readToken(file);
  if (token !== undefined) return token;
  await keepToken(file, newToken());
  const created = await readToken(file);
  if (created === undefined) throw new TokenFileError('token-file-unusable', `The token file ${file} has gone again`);
  return created;
}

/** A token that nobody can guess. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Writes the token into the file, unless there is one in it already. */
export async function keepToken(file: string, token: string): Promise<void> {
  try {
    await createFile(file, `${token}\n`, { flush: true });
  } catch (cause) {
    throw new TokenFileError('token-file-unusable', `Cannot create the token file ${file}`, { cause });
  }
}

/** The token in the file; `undefined` when there is no file. */
export async function readToken(file: string): Promise<string | undefined> {
  let content: string;
  try {
    const handle = await open(file, 'r');
    try {
      const { mode, size } = await handle.stat();
      // Windows has no such modes; there the user's folder keeps others out.
      if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
        throw new TokenFileError(
          'token-file-exposed',
          `Others have access to the token file ${file}; make a new token, or run: chmod 600 ${file}`,
        );
      }
      content = size > MAX_FILE_BYTES ? '' : await handle.readFile('latin1');
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (cause instanceof TokenFileError) throw cause;
    if (errorCode(cause) === 'ENOENT') return undefined;
    throw new TokenFileError('token-file-unusable', `Cannot read the token file ${file}`, { cause });
  }
  const token = content.trim();
  if (TOKEN.test(token)) return token;
  throw new TokenFileError(
    'token-file-malformed',
    `The token file ${file} must hold one token of at least 43 letters, digits or characters of ._~+/-`,
  );
}
