import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/**
 * Keys of one purpose, of 32 bytes. The first one seals and signs, and all of them open and verify, so that a key can be replaced
 * while it is used.
 */
export type Keys = readonly [Uint8Array, ...Uint8Array[]];

const CIPHER = 'aes-256-gcm';
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;

/**
 * Encrypts and authenticates bytes with the first key (AES-256-GCM). They can be opened only with the same `bound`, such as the
 * name of their record, so that nobody can move them to another one. Returns the nonce, the encrypted bytes and the tag.
 */
export function sealBytes(keys: Keys, bytes: Uint8Array, bound: Uint8Array): Buffer {
  // A random nonce is safe for 2 ** 32 uses of a key.
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, keys[0], nonce, { authTagLength: TAG_BYTES }).setAAD(bound);
  return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Returns the bytes that were sealed with one of the keys and with `bound`; `undefined` if they are damaged, or were sealed with
 * another key or another `bound`.
 */
export function openBytes(keys: Keys, sealed: Uint8Array, bound: Uint8Array): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
  for (const key of keys) {
    const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(bound).setAuthTag(sealed.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      // Another key may open them.
    }
  }
  return undefined;
}

/** Signs a value of JSON with the first key (HMAC-SHA-256). Returns the first `length` characters of the signature in Base64url. */
export function sign(keys: Keys, value: unknown, length?: number): string {
  return signatureOf(keys[0], value).slice(0, length);
}

/** Whether one of the keys has signed the value so. The time does not depend on the position of the first difference. */
export function isSigned(keys: Keys, signature: string, value: unknown, length?: number): boolean {
  return keys.some((key) => isSameSecret(signatureOf(key, value).slice(0, length), signature));
}

/** Compares two secrets. The time depends on their lengths only. */
export function isSameSecret(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

function signatureOf(key: Uint8Array, value: unknown): string {
  return createHmac('sha256', key).update(JSON.stringify(value)).digest('base64url');
}
