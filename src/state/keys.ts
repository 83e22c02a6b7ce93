import { createHmac, randomBytes } from 'node:crypto';
import { UsageError } from '../errors/usage-error.js';
import { createFileSync, privateFile, type ReadFile, readRegularFile } from '../files/whole-file.js';
import type { GatewayOptions } from '../gateway/gateway.js';
import type { Hmac } from '../mcp/task-id.js';
import type { Logger } from '../observe/logger.js';
import { sealFile } from './user-files.js';

interface SealOptions {
  /** A random key of this process when absent. */
  readonly secret?: string | undefined;
  /** Called at each use of the seal. */
  readonly onSealed?: () => void;
}

/** 132 bits: too many to guess, and short enough for an id. */
const SEAL_LENGTH = 22;

/** Returns a function that signs texts with the key (HMAC-SHA256, shortened). */
export function createSeal({ secret, onSealed = () => {} }: SealOptions = {}): Hmac {
  const key = secret ?? randomBytes(32);
  return (text) => {
    onSealed();
    return createHmac('sha256', key).update(text).digest('base64url').slice(0, SEAL_LENGTH);
  };
}

/** The key that signs task ids and protects the caches. */
export interface SealSecret {
  readonly secret: string;
  /** False when the file cannot be read, so that the next run will have another key. */
  readonly isLasting: boolean;
  /** Must be called when the key is used for something that outlives the process. The first call stores a new key in its file. */
  readonly onSealed: () => void;
}

/** Reads the key of this user, or makes a new one, which is stored when it is first used. */
export async function readSealSecret(logger: Logger): Promise<SealSecret> {
  const warn = (err: unknown) =>
    logger.warn({ err }, 'the key for task ids cannot be stored, so task ids become invalid when Trunkline restarts');
  let isLasting = true;
  const stored = await readToken(sealFile()).catch((err: unknown) => {
    isLasting = false;
    warn(err);
  });
  const secret = stored ?? newToken();
  const store = () => {
    try {
      storeToken(sealFile(), secret);
    } catch (err) {
      warn(err);
    }
  };
  return { secret, isLasting, onSealed: stored === undefined ? once(store) : () => {} };
}

/** As many characters as 256 bits in Base64 have. */
const MIN_KEY_LENGTH = 43;
const MAX_KEY_FILE_BYTES = 4_096;

/** Reads the key that several gateways share. Throws a `UsageError` if others could know it, or guess it. */
export async function readSealKey(file: string): Promise<string> {
  const found = await readRegularFile(file, privateFile(MAX_KEY_FILE_BYTES));
  const hint = `make the file with: (umask 077; openssl rand -base64 32 > ${file}), and give each gateway the same one`;
  if (found.kind !== 'read') {
    const reason = found.kind === 'absent' ? 'it does not exist' : found.reason;
    throw new UsageError(`cannot use the file ${file} of gateway.sealKeyFile: ${reason}`, hint);
  }
  const key = found.bytes.toString('latin1').trim();
  if (key.length >= MIN_KEY_LENGTH && /^[!-~]+$/.test(key)) return key;
  throw new UsageError(
    `the file ${file} of gateway.sealKeyFile must have one line of at least ${MIN_KEY_LENGTH} visible characters`,
    hint,
  );
}

interface SealsOptions extends SealOptions {
  /** The key that several gateways share. */
  readonly sharedKey?: string | undefined;
}

/** The seals of a gateway. With a shared key, gateways take what others of them have sealed. */
export function createSeals({ sharedKey, ...own }: SealsOptions): Pick<GatewayOptions, 'seal' | 'hmac' | 'runSeal'> {
  const runSeal = createSeal();
  if (sharedKey === undefined) return { seal: createSeal(own), hmac: createSeal(), runSeal };
  const sharedSeal = (purpose: string) => createSeal({ secret: keyFor(purpose, sharedKey) });
  return { seal: sharedSeal('tasks'), hmac: sharedSeal('cursors'), runSeal };
}

/** The key for one purpose, so that what is sealed for one of them is not valid for another. */
function keyFor(purpose: string, sharedKey: string): string {
  return createHmac('sha256', sharedKey).update(purpose).digest('base64url');
}

function once(run: () => void): () => void {
  let hasRun = false;
  return () => {
    if (!hasRun) run();
    hasRun = true;
  };
}

/** A token file that cannot be used. The message never contains the token. */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError';
  /** `exposed`: other users can access the file. `malformed`: its content is no token. */
  readonly code: `token-file-${'unusable' | 'exposed' | 'malformed'}`;

  constructor(code: TokenFileError['code'], message: string, options?: ErrorOptions) {
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
  storeToken(file, newToken());
  const created = await readToken(file);
  if (created === undefined)
    throw new TokenFileError('token-file-unusable', `The token file ${file} was removed again`);
  return created;
}

/** A random token of 256 bits. */
function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Creates the file with the token; an existing file stays as it is. */
function storeToken(file: string, token: string): void {
  try {
    createFileSync(file, `${token}\n`, { flush: true });
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
