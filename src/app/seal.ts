import { createHmac, randomBytes } from 'node:crypto';
import type { Hmac } from '../mcp/exposed-name.js';

export interface SealOptions {
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
