import { createHmac, randomBytes } from 'node:crypto';
import { newToken, readToken, storeToken } from '../files/token-file.js';
import type { Hmac } from '../mcp/task-id.js';
import type { Logger } from '../observe/logger.js';
import { sealFile } from './user-files.js';

interface SealOptions {
  /** A random key of this process when absent. */
  readonly secret?: string | undefined;
  /** Called when the seal is first used. */
  readonly onSealed?: () => void;
}

/** 132 bits: too many to guess, and short enough for an id. */
const SEAL_LENGTH = 22;

/** Returns a function that signs texts with the key (HMAC-SHA256, shortened). */
export function createSeal({ secret, onSealed = () => {} }: SealOptions = {}): Hmac {
  const key = secret ?? randomBytes(32);
  let isUsed = false;
  return (text) => {
    if (!isUsed) onSealed();
    isUsed = true;
    return createHmac('sha256', key).update(text).digest('base64url').slice(0, SEAL_LENGTH);
  };
}

/** The key that signs task ids and protects the caches. */
export interface SealSecret {
  readonly secret: string;
  /** False when the file cannot be read, so that the next run will have another key. */
  readonly isLasting: boolean;
  /** Must be called when the key is first used for something that outlives the process. It stores a new key in its file. */
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
  const store = () => void storeToken(sealFile(), secret).catch(warn);
  return { secret, isLasting, onSealed: stored === undefined ? once(store) : () => {} };
}

function once(run: () => void): () => void {
  let hasRun = false;
  return () => {
    if (!hasRun) run();
    hasRun = true;
  };
}
