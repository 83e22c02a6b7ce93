import { createHmac, randomBytes } from 'node:crypto';
import { UsageError } from '../errors/usage-error.js';
import { privateFile, readRegularFile } from '../files/whole-file.js';
import type { GatewayOptions } from '../gateway/gateway.js';
import type { Hmac } from '../mcp/task-id.js';
import type { Logger } from '../observe/logger.js';
import { newToken, readToken, storeToken } from './token-file.js';
import { sealFile } from './user-files.js';

interface SealOptions {
  /** Key of the seal. Default: a random key. */
  readonly secret?: string | undefined;
  /** Called at each use of the seal. */
  readonly onSealed?: () => void;
}

/** Length of a seal: 132 bits, too many to guess and few enough for an id. */
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
  /** False if the file cannot be read. The next run will have another key then. */
  readonly isLasting: boolean;
  /** Must be called when a sealed text outlives the process. The first call stores a new key in its file. */
  readonly onSealed: () => void;
}

/** Reads the key of this user, or creates a key, which `onSealed` stores. */
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

/** Minimum length of a shared key: 256 bits in Base64. */
const MIN_KEY_LENGTH = 43;
const MAX_KEY_FILE_BYTES = 4_096;

/** Reads the key that several gateways share. Throws a `UsageError` if others can read the file, or if the key is too short. */
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

/** The seals of a gateway. Gateways with the same shared key accept each other's seals. */
export function createSeals({ sharedKey, ...own }: SealsOptions): Pick<GatewayOptions, 'seal' | 'hmac' | 'runSeal'> {
  const runSeal = createSeal();
  if (sharedKey === undefined) return { seal: createSeal(own), hmac: createSeal(), runSeal };
  const sharedSeal = (purpose: string) => createSeal({ secret: keyFor(purpose, sharedKey) });
  return { seal: sharedSeal('tasks'), hmac: sharedSeal('cursors'), runSeal };
}

/** Derives a key for one purpose, so that a seal for one purpose is not valid for another. */
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
