import { randomBytes } from 'node:crypto';
import { privateFile, type ReadFile, readRegularFile } from '../files/regular-file.js';
import { createFile } from '../files/whole-file.js';

export type TokenFileErrorCode =
  /** The file cannot be read or created. */
  | 'token-file-unusable'
  /** Other users can read or change it, or it belongs to another user. */
  | 'token-file-exposed'
  /** Its content is not a token. */
  | 'token-file-malformed';

/** A token file that cannot be used. The message never contains the token. */
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

/** Characters that are allowed after `Bearer` in an `Authorization` header; at least as long as a generated token. */
const TOKEN = /^[A-Za-z0-9._~+/-]{43,}={0,2}$/;

/** Enough for any token; a larger file is not a token file. */
const MAX_FILE_BYTES = 4_096;

/**
 * Reads the token in the file; creates the file with a new token if there is none.
 *
 * Only the owner can read the file. Several processes can call this at the same time, and all get the same token.
 */
export async function readOrCreateToken(file: string): Promise<string> {
  const token = await readToken(file);
  if (token !== undefined) return token;
  await storeToken(file, newToken());
  const created = await readToken(file);
  if (created === undefined)
    throw new TokenFileError('token-file-unusable', `The token file ${file} was removed again`);
  return created;
}

/** A random token of 256 bits. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Creates the file with the token; an existing file stays as it is. */
export async function storeToken(file: string, token: string): Promise<void> {
  try {
    await createFile(file, `${token}\n`, { flush: true });
  } catch (cause) {
    throw new TokenFileError('token-file-unusable', `Cannot create the token file ${file}`, { cause });
  }
}

/** Reads the token in the file; `undefined` when there is no file. */
export async function readToken(file: string): Promise<string | undefined> {
  const found = await readRegularFile(file, privateFile(MAX_FILE_BYTES));
  if (found.kind === 'absent') return undefined;
  const token = contentOf(found, file).trim();
  if (TOKEN.test(token)) return token;
  throw new TokenFileError(
    'token-file-malformed',
    `The token file ${file} must hold one token of at least 43 letters, digits or characters of ._~+/-`,
  );
}

function contentOf(found: Exclude<ReadFile, { kind: 'absent' }>, file: string): string {
  if (found.kind === 'read') return found.bytes.toString('latin1');
  const { fault, reason, cause } = found;
  switch (fault) {
    // Not a token, either.
    case 'too-large':
      return '';
    case 'exposed':
      throw new TokenFileError(
        'token-file-exposed',
        `Other users can access the token file ${file}; remove it to get a new token, or run: chmod 600 ${file}`,
      );
    case 'foreign':
      throw new TokenFileError(
        'token-file-exposed',
        `The token file ${file} belongs to another user, who can read and change it; remove it to get a new token, or make it yours with chown`,
      );
    default:
      throw new TokenFileError('token-file-unusable', `Cannot use the token file ${file}: ${reason}`, { cause });
  }
}
