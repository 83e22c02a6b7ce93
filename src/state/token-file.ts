import { randomBytes } from 'node:crypto';
import { createFileSync, privateFile, type ReadFile, readRegularFile } from '../host/files/whole-file.js';

/** Thrown for a token file that cannot be used. The message never contains the token. */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError';
  /** `exposed`: other users can access the file. `malformed`: its content is no token. */
  readonly code: `token-file-${'unusable' | 'exposed' | 'malformed'}`;

  constructor(code: TokenFileError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Length of a new token, which has 43 characters in Base64 without padding. */
const TOKEN_BYTES = 32;

/** Characters that are allowed after `Bearer` in an `Authorization` header, at least as many as in a new token. */
const TOKEN = /^[A-Za-z0-9._~+/-]{43,}={0,2}$/;

const MAX_FILE_BYTES = 4_096;

/**
 * Reads the token in the file. If the file does not exist, creates it with a new token, readable by its owner alone. Several
 * processes that call this at the same time get the same token. Rejects with a `TokenFileError` or a `FileError`.
 */
export async function readOrCreateToken(file: string): Promise<string> {
  const token = await readToken(file);
  if (token !== undefined) return token;
  storeToken(file, newToken());
  const created = await readToken(file);
  if (created === undefined)
    throw new TokenFileError('token-file-unusable', `The token file ${file} was removed again`);
  return created;
}

/** A random token of 256 bits. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Creates the file with the token. An existing file is not changed. Throws a `FileError`. */
export function storeToken(file: string, token: string): void {
  createFileSync(file, `${token}\n`, { flush: true });
}

/** Reads the token in the file; `undefined` if the file does not exist. */
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
    // The caller reports an empty text as malformed.
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
