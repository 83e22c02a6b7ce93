import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Keychain, systemKeychain } from '../../config/resolve/secrets.js';
import { fileErrorIn } from '../../host/errors/file-error.js';
import { watchFiles } from '../../host/files/watch-files.js';
import {
  createFileSync,
  privateFile,
  type ReadFile,
  readRegularFile,
  realPath,
  removeFile,
  replaceFile,
} from '../../host/files/whole-file.js';
import { openProcessLock } from '../../host/process/process-lock.js';
import { parseJson } from '../../wire/json/json-value.js';
import type { Cancel } from '../../wire/timing/clock.js';
import {
  decrypt,
  digest,
  encrypt,
  type FollowOptions,
  type LockedLogin,
  type LoginId,
  type LoginRecord,
  type Vault,
  VaultError,
} from './vault.js';

const KEY_BYTES = 32;
const MAX_BYTES = 256 * 1024;
/** Content of the key file if the keychain has the key. */
const IN_KEYCHAIN = 'keychain';

/**
 * Stores the logins of this machine, and below `users` those of its users, each in an encrypted file (AES-256-GCM). The key is in the keychain of the system if there is
 * one, otherwise in a file beside the logins that only this user can read.
 */
export class FolderVault implements Vault {
  readonly #folder: string;
  readonly #keychain: Keychain | undefined;
  #key: Promise<Buffer> | undefined;

  constructor(folder: string, keychain = systemKeychain({ env: process.env, cwd: homedir() })) {
    this.#folder = folder;
    this.#keychain = keychain;
  }

  /** Returns the path of a login. There is no file before the first login. */
  fileOf(id: LoginId): string {
    return join(id.user === undefined ? this.#folder : this.#folderOf(id.user), `${this.nameOf(id)}.login`);
  }

  nameOf({ server, configFile, url, user }: LoginId): string {
    const ofUser = user === undefined ? [] : [user];
    return digest(JSON.stringify([realPath(configFile) ?? configFile, server, url, ...ofUser]));
  }

  async storedIn(): Promise<'keychain' | 'file' | undefined> {
    const found = await readRegularFile(this.#keyFile, privateFile(MAX_BYTES));
    return found.kind === 'read' ? (isKeychainMark(found) ? 'keychain' : 'file') : undefined;
  }

  async read(id: LoginId): Promise<LoginRecord | undefined> {
    const file = this.fileOf(id);
    const found = await readRegularFile(file, privateFile(MAX_BYTES));
    if (found.kind === 'absent') return undefined;
    if (found.kind === 'unusable') throw new VaultError(`the login in ${file} cannot be used: ${found.reason}`);
    const key = await this.#existingKey(false);
    const text = decrypt(key, this.nameOf(id), found.bytes);
    const record = text === undefined ? undefined : parseJson(text);
    if (record === undefined) {
      throw new VaultError(`the login in ${file} is damaged, or was encrypted with another key`);
    }
    return record as LoginRecord;
  }

  async locked<T>(id: LoginId, signal: AbortSignal, work: (login: LockedLogin) => Promise<T>): Promise<T> {
    const read = () => this.read(id);
    const write = async (record: LoginRecord) => {
      await this.#write(id, record);
      return record;
    };
    const check = async () => {
      const record = await read();
      if (record !== undefined) await write(record);
    };
    const remove = async () => await removeFile(this.fileOf(id));
    return await this.#locked(this.nameOf(id), signal, async () => await work({ read, check, write, remove }));
  }

  follow(ids: readonly LoginId[], { clock, onChange }: FollowOptions): Cancel {
    return watchFiles({ clock, onChange: () => void onChange(), files: ids.map((id) => this.fileOf(id)) });
  }

  async forget(user: string): Promise<void> {
    await rm(this.#folderOf(user), { recursive: true, force: true });
  }

  async close(): Promise<void> {}

  #folderOf(user: string): string {
    return join(this.#folder, 'users', digest(user));
  }

  async #write(id: LoginId, record: LoginRecord): Promise<void> {
    const key = await this.#existingKey(true);
    const file = this.fileOf(id);
    await replaceFile(file, encrypt(key, this.nameOf(id), JSON.stringify(record)), { flush: true });
  }

  async #locked<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      const release = await openProcessLock(join(this.#folder, 'locks', name), () => {}).acquire(signal);
      try {
        return await work();
      } finally {
        await release();
      }
    } catch (error) {
      const fault = fileErrorIn(error);
      if (fault === undefined) throw error;
      throw new VaultError(`the login cannot be stored: ${fault.message}`, fault.hint, { cause: fault });
    }
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
      throw new VaultError(`the key of the logins in ${this.#keyFile} cannot be used: ${found.reason}`);
    if (found.kind === 'read') return await this.#keyIn(found);
    if (!mayCreate) throw new VaultError(`the key of the logins in ${this.#keyFile} is missing`);
    return await this.#locked('key', AbortSignal.timeout(60_000), async () => {
      const key = randomBytes(KEY_BYTES);
      const isInKeychain =
        (await this.#keychain?.store(this.#keyName, key.toString('base64'))) === undefined &&
        this.#keychain !== undefined;
      const content = isInKeychain ? IN_KEYCHAIN : key.toString('base64');
      return createFileSync(this.#keyFile, content, { flush: true }) ? key : await this.#readKey(false);
    });
  }

  async #keyIn(found: Extract<ReadFile, { kind: 'read' }>): Promise<Buffer> {
    let text = found.bytes.toString();
    if (isKeychainMark(found)) {
      const outcome = await (this.#keychain?.read(this.#keyName) ?? {
        fault: 'this system has none that Trunkline can use',
      });
      if ('fault' in outcome)
        throw new VaultError(`the key of the logins cannot be read from the keychain: ${outcome.fault}`);
      text = outcome.value;
    }
    const key = Buffer.from(text, 'base64');
    if (key.length === KEY_BYTES) return key;
    throw new VaultError(
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
