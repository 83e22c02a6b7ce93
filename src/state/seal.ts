import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { GatewayOptions } from '../gateway/gateway.js';
import { UsageError } from '../host/errors/usage-error.js';
import { readNamedFile, secretRules } from '../host/files/whole-file.js';
import type { Logger } from '../host/observe/logger.js';
import type { Keys } from '../host/sealed-bytes.js';
import type { Hmac } from '../wire/mcp/task-id.js';
import { newToken, readToken, storeToken } from './token-file.js';
import { sealFile } from './user-files.js';

interface SealOptions {
  /** Key of the seal. Default: a random key. */
  readonly secret?: string | Uint8Array | undefined;
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
const MAX_KEYS = 3;
const MAX_KEY_FILE_BYTES = 4_096;

/** The keys that several gateways share. The first one seals, and all of them open. */
export type SharedKeys = readonly [string, ...string[]];

/**
 * Reads the keys that several gateways share. Throws a `UsageError` if others can read the file, or if a key is too short.
 * `secretFolder` is a folder in which the system puts secrets.
 */
export async function readSealKeys(file: string, secretFolder?: string): Promise<SharedKeys> {
  const setting = 'gateway.sealKeyFile';
  // A missing file is not created here, because its key would differ from that of the other gateways.
  const hint = `copy it from another gateway, or make the first one with: (umask 077; openssl rand -base64 32 > ${file}); it must be closed to others: chmod 600 ${file}`;
  const bytes = await readNamedFile(file, setting, secretRules(file, MAX_KEY_FILE_BYTES, secretFolder), hint);
  const [first, ...others] = bytes.toString('latin1').trim().split(/\r?\n/);
  const keys: SharedKeys = [first ?? '', ...others];
  const isSound = (key: string) => key.length >= MIN_KEY_LENGTH && /^[!-~]+$/.test(key);
  if (keys.length <= MAX_KEYS && keys.every(isSound)) return keys;
  throw new UsageError(
    `the file ${file} of ${setting} must have one to ${MAX_KEYS} lines, each with a key of at least ${MIN_KEY_LENGTH} visible characters`,
    hint,
  );
}

interface SealsOptions extends SealOptions {
  readonly sharedKeys?: SharedKeys | undefined;
}

/** The seals of a gateway. Gateways with the same shared key accept each other's seals. */
type GatewaySeals = GatewayOptions['seals'];

export interface Seals extends GatewaySeals {
  /** Returns the keys for one purpose. Texts that they seal outlive the process. */
  keysFor(purpose: string): Keys;
}

export function createSeals({ sharedKeys, ...own }: SealsOptions = {}): Seals {
  const instance = instanceName();
  const run = createSeal();
  if (sharedKeys === undefined) {
    const { secret = randomBytes(32), onSealed = () => {} } = own;
    const keysFor = (purpose: string): Keys => {
      onSealed();
      return [keyFor(purpose, secret)];
    };
    return { lasting: createSeal({ ...own, secret }), cursors: createSeal(), run, instance, keysFor };
  }
  const [first, ...others] = sharedKeys;
  const keysFor = (purpose: string): Keys => [keyFor(purpose, first), ...others.map((key) => keyFor(purpose, key))];
  const sealFor = (purpose: string): Hmac => {
    const [key, ...older] = keysFor(purpose);
    return Object.assign(createSeal({ secret: key }), { older: older.map((secret) => createSeal({ secret })) });
  };
  return { lasting: sealFor('tasks'), cursors: sealFor('cursors'), run, instance, keysFor };
}

/** Derives a key for one purpose, so that a seal for one purpose is not valid for another. */
function keyFor(purpose: string, secret: string | Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, '', `trunkline ${purpose}`, 32));
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';

/** A random name for this process, of 50 bits. Pids and names of hosts are not unique, because containers share them. */
function instanceName(): string {
  return [...randomBytes(10)].map((byte) => LETTERS[byte % LETTERS.length]).join('');
}

function once(run: () => void): () => void {
  let hasRun = false;
  return () => {
    if (!hasRun) run();
    hasRun = true;
  };
}
