import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { AuthorizationServerMetadata, OAuthTokens } from '@modelcontextprotocol/client';
import { type Keychain, systemKeychain } from '../config/resolve/secrets.js';
import { errorMessage } from '../errors/error-text.js';
import {
  createFileSync,
  privateFile,
  type ReadFile,
  readRegularFile,
  realPath,
  replaceFile,
} from '../files/whole-file.js';
import { parseJson } from '../json/json-value.js';
import { withVaultLock } from './vault-lock.js';

/** The login at one remote server, for one configuration file. */
export interface LoginRecord {
  readonly server: string;
  /** The configuration file, without symbolic links. */
  readonly configFile: string;
  readonly url: string;
  /**
   * - `logged_in`: The record has tokens.
   * - `expired`: The tokens were refused, by the authorization server at a renewal or by the server. The client stays.
   */
  readonly state: 'logged_in' | 'expired';
  /** Random id of the login. A renewal does not change it. */
  readonly identity: string;
  readonly issuer: string;
  /** Absent for an authorization server without metadata, which has the default endpoints (2025-03-26). */
  readonly metadata?: AuthorizationServerMetadata;
  /** The `resource` of each request for tokens. */
  readonly resource?: string;
  /** The client of the login. A secret in the configuration is not stored here. */
  readonly client: StoredClient;
  /** Scopes that the latest login asked for. */
  readonly requestedScopes: readonly string[];
  /** Scopes that calls lacked since the login. The next login asks for them, too. */
  readonly missingScopes?: readonly string[];
  readonly tokens?: StoredTokens;
  /** The private key to which the tokens are bound (RFC 9449), as a JWK. */
  readonly dpopKey?: Readonly<Record<string, unknown>>;
}

interface StoredClient {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly token_endpoint_auth_method?: string;
  /** URL to which the authorization server sends the browser back. The registration includes it. */
  readonly redirectUri?: string;
  /** Whether Trunkline has registered this client. If so, it may register another one. */
  readonly isRegistered: boolean;
}

/** Returns the client for storage, without a secret from the configuration. */
export function withoutSecret(client: StoredClient): StoredClient {
  const { client_secret: _, ...rest } = client;
  return client.isRegistered ? client : rest;
}

export interface StoredTokens extends Pick<OAuthTokens, 'access_token' | 'refresh_token' | 'token_type' | 'scope'> {
  /** Times on the wall clock, in milliseconds. */
  readonly obtainedAt: number;
  readonly expiresAt?: number;
}

/** Identifies a stored login. Each server of a configuration file has one for each of its URLs. */
export interface LoginId {
  readonly server: string;
  readonly configFile: string;
  readonly url: string;
}

/** A login that failed, or that cannot be stored or read. The message is a clause without a secret; `hint` says what to do. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MAX_BYTES = 256 * 1024;
const CIPHER = 'aes-256-gcm';
const FORMAT = Buffer.from('trunkline login 1\n');
/** Content of the key file if the keychain has the key. */
const IN_KEYCHAIN = 'keychain';

/**
 * Stores the logins of a user, each in an encrypted file (AES-256-GCM). The key is in the keychain of the system if there is
 * one, otherwise in a file beside the logins that only this user can read.
 *
 * To change a login, hold its lock, and read the login again before the change.
 */
export class Vault {
  readonly #folder: string;
  readonly #keychain: Keychain | undefined;
  #key: Promise<Buffer> | undefined;

  constructor(
    folder: string,
    keychain = systemKeychain({ platform: process.platform, env: process.env, cwd: homedir() }),
  ) {
    this.#folder = folder;
    this.#keychain = keychain;
  }

  /** Returns the path of a login. There is no file before the first login. */
  fileOf(id: LoginId): string {
    return join(this.#folder, `${nameOf(id)}.login`);
  }

  /** Resolves with the place of the key, or with `undefined` before the first login. */
  async storedIn(): Promise<'keychain' | 'file' | undefined> {
    const found = await readRegularFile(this.#keyFile, privateFile(MAX_BYTES));
    return found.kind === 'read' ? (isKeychainMark(found) ? 'keychain' : 'file') : undefined;
  }

  /** Reads a login. Resolves with `undefined` if there is none. Rejects with a `LoginError`. */
  async read(id: LoginId): Promise<LoginRecord | undefined> {
    const file = this.fileOf(id);
    const found = await readRegularFile(file, privateFile(MAX_BYTES));
    if (found.kind === 'absent') return undefined;
    if (found.kind === 'unusable') throw new LoginError(`the login in ${file} cannot be used: ${found.reason}`);
    const key = await this.#existingKey(false);
    const text = decrypt(key, nameOf(id), found.bytes);
    const record = text === undefined ? undefined : parseJson(text);
    if (record === undefined) {
      throw new LoginError(`the login in ${file} is damaged, or was encrypted with another key`);
    }
    return record as LoginRecord;
  }

  /** Stores a login. The caller must hold its lock. Rejects with a `LoginError`. */
  async write(id: LoginId, record: LoginRecord): Promise<void> {
    const key = await this.#existingKey(true);
    const file = this.fileOf(id);
    try {
      await replaceFile(file, encrypt(key, nameOf(id), JSON.stringify(record)), { flush: true });
    } catch (error) {
      throw new LoginError(`the login cannot be stored in ${file} (${errorMessage(error)})`);
    }
  }

  async remove(id: LoginId): Promise<void> {
    await rm(this.fileOf(id), { force: true });
  }

  /** Runs `work` while no other process changes this login. Rejects with the reason of `signal` when it aborts first. */
  async locked<T>(id: LoginId, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    return await this.#locked(nameOf(id), signal, work);
  }

  async #locked<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    return await withVaultLock(this.#folder, name, signal, work);
  }

  async #existingKey(mayCreate: boolean): Promise<Buffer> {
    this.#key ??= this.#readKey(mayCreate);
    try {
      return await this.#key;
    } catch (error) {
      // A keychain may be unlocked later.
      this.#key = undefined;
      throw error;
    }
  }

  get #keyFile(): string {
    return join(this.#folder, 'key');
  }

  async #readKey(mayCreate: boolean): Promise<Buffer> {
    const found = await readRegularFile(this.#keyFile, privateFile(MAX_BYTES));
    if (found.kind === 'unusable')
      throw new LoginError(`the key of the logins in ${this.#keyFile} cannot be used: ${found.reason}`);
    if (found.kind === 'read') return await this.#keyIn(found);
    if (!mayCreate) throw new LoginError(`the key of the logins in ${this.#keyFile} is missing`);
    return await this.#locked('key', AbortSignal.timeout(60_000), async () => {
      const key = randomBytes(KEY_BYTES);
      const isInKeychain =
        (await this.#keychain?.store(this.#keyName, key.toString('base64'))) === undefined &&
        this.#keychain !== undefined;
      const content = isInKeychain ? IN_KEYCHAIN : key.toString('base64');
      if (createFileSync(this.#keyFile, content, { flush: true })) return key;
      return await this.#readKey(false);
    });
  }

  async #keyIn(found: Extract<ReadFile, { kind: 'read' }>): Promise<Buffer> {
    let text = found.bytes.toString();
    if (isKeychainMark(found)) {
      const outcome = await (this.#keychain?.read(this.#keyName) ?? {
        fault: 'this system has none that Trunkline can use',
      });
      if ('fault' in outcome)
        throw new LoginError(`the key of the logins cannot be read from the keychain: ${outcome.fault}`);
      text = outcome.value;
    }
    const key = Buffer.from(text, 'base64');
    if (key.length === KEY_BYTES) return key;
    throw new LoginError(
      `the key of the logins in ${this.#keyFile} is damaged; remove the folder ${this.#folder} and log in again`,
    );
  }

  /** Name of the key in the keychain. Each data folder has its own key. */
  get #keyName(): string {
    return `login_key_${digest(realPath(this.#folder) ?? this.#folder).slice(0, 8)}`;
  }
}

function isKeychainMark({ bytes }: Extract<ReadFile, { kind: 'read' }>): boolean {
  return bytes.toString().trim() === IN_KEYCHAIN;
}

function nameOf({ server, configFile, url }: LoginId): string {
  return digest(JSON.stringify([realPath(configFile) ?? configFile, server, url]));
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Encrypts a text for the file with this name. Decryption fails if the file has another name. */
function encrypt(key: Buffer, name: string, text: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(name));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([FORMAT, nonce, cipher.getAuthTag(), sealed]);
}

function decrypt(key: Buffer, name: string, bytes: Buffer): string | undefined {
  const start = FORMAT.length;
  if (!bytes.subarray(0, start).equals(FORMAT)) return undefined;
  const nonce = bytes.subarray(start, start + NONCE_BYTES);
  const tag = bytes.subarray(start + NONCE_BYTES, start + NONCE_BYTES + TAG_BYTES);
  try {
    const decipher = createDecipheriv(CIPHER, key, nonce).setAAD(Buffer.from(name)).setAuthTag(tag);
    const sealed = bytes.subarray(start + NONCE_BYTES + TAG_BYTES);
    return Buffer.concat([decipher.update(sealed), decipher.final()]).toString();
  } catch {
    return undefined;
  }
}
