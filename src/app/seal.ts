import { createHmac, randomBytes } from 'node:crypto';
import type { Hmac } from '../mcp/exposed-name.js';

export interface SealOptions {
  /** One of this process alone when absent. */
  readonly secret?: string | undefined;
  /** Called when the seal is first used. */
  readonly onSealed?: () => void;
}

/** 132 bits: enough that nobody guesses one, and short enough for an id. */
const SEAL_LENGTH = 22;

/** Seals texts under a secret. */
export function createSeal({ secret, onSealed = () => {} }: SealOptions = {}): Hmac {
  const key = secret ?? randomBytes(32);
  let isUsed = false;
  return (text) => {
    if (!isUsed) onSealed();
    isUsed = true;
    return createHmac('sha256', key).update(text).digest('base64url').slice(0, SEAL_LENGTH);
  };
}
