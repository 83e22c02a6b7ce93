import { createHmac, randomBytes } from 'node:crypto';

/*
 * Proofs that both ends of a connection know the token, which is in a file that only this user can read. The token itself is never sent,
 * and a client sends nothing else before the hub has proven itself, because any program can listen under the name of the pipe of a hub that
 * has ended.
 */

/** A random text that makes the proofs of one connection differ from those of all others. */
export function newNonce(): string {
  return randomBytes(24).toString('base64url');
}

export interface Nonces {
  readonly client: string;
  readonly hub: string;
}

/** Proves to the other end that this end knows the token. The ends have different proofs, so none can return that of the other. */
export function proofOf(end: 'client' | 'hub', token: string, { client, hub }: Nonces): string {
  return createHmac('sha256', token)
    .update(JSON.stringify([end, client, hub]))
    .digest('base64url');
}
