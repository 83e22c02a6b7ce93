import { createHash } from 'node:crypto';
import type { AuthorizationServerMetadata, OAuthTokens } from '@modelcontextprotocol/client';
import { NONCE_BYTES, openBytes, sealBytes, TAG_BYTES } from '../../host/sealed-bytes.js';
import type { RemoteSpec } from '../../spec/server-spec.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';

export interface LoginRecord {
  readonly server: string;
  /** Absolute path of the configuration file, perhaps through symbolic links. */
  readonly configFile: string;
  readonly url: string;
  /**
   * - `logged_in`: The record has tokens.
   * - `expired`: The tokens were refused, by the authorization server at a renewal or by the server. The client stays.
   */
  readonly state: 'logged_in' | 'expired';
  /** The words with which the authorization server refused to renew the login. */
  readonly refusal?: string;
  /** Random id of the login. A renewal does not change it. */
  readonly identity: string;
  readonly issuer: string;
  /** Absent for an authorization server without metadata, which has the default endpoints (2025-03-26). */
  readonly metadata?: AuthorizationServerMetadata;
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

/** Identifies a stored login. Each server of a configuration file has one for each of its URLs and, with `login: user`, users. */
export interface LoginId {
  readonly server: string;
  readonly configFile: string;
  readonly url: string;
  /** The principal whose login it is. Absent for the login of the machine. */
  readonly user?: string;
}

export interface FollowOptions {
  readonly clock: Clock;
  /** Called when a login may have changed. Resolves when all logins are read again. */
  readonly onChange: () => Promise<void>;
}

export function loginIdOf({ url, user, login }: LoginSpec): LoginId {
  return { server: login.server, configFile: login.configFile, url, ...(user !== undefined && { user }) };
}

type LoginSpec = Pick<RemoteSpec, 'url' | 'user'> & { readonly login: Pick<LoginId, 'server' | 'configFile'> };

/** A login that failed, or that cannot be stored or read. The message is a clause without a secret; `hint` says what to do. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
  readonly hint: string | undefined;

  constructor(message: string, hint?: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** A fault of the place where logins are stored. The message can name files of this machine, so it is not for users over HTTP. */
export class VaultError extends LoginError {}

/** Makes a handler for a failed read. It returns `instead` for a login that cannot be used, and throws all other errors again. */
export function unreadable<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof LoginError) return instead;
    throw error;
  };
}

/** Stores the logins of a configuration, encrypted. To change a login, hold its lock. */
export interface Vault {
  /** Returns a key for a login. Two ids of one login have the same key. */
  nameOf(id: LoginId): string;
  /** Resolves with the place of the key, or with `undefined` before the first login. */
  storedIn(): Promise<'keychain' | 'file' | 'store' | undefined>;
  /**
   * Reads a login. Resolves with `undefined` if there is none. Rejects with a `LoginError` if it cannot be used, and with a
   * `RequestError` if a store does not answer.
   */
  read(id: LoginId): Promise<LoginRecord | undefined>;
  /** Runs `work` while no other process changes this login. Rejects with the reason of `signal` when it aborts first. */
  locked<T>(id: LoginId, signal: AbortSignal, work: (login: LockedLogin) => Promise<T>): Promise<T>;
  /** Calls `onChange` when one of these logins may have changed, until the returned function is called. */
  follow(ids: readonly LoginId[], options: FollowOptions): Cancel;
  /** Removes the logins of a user at all servers, also at those that the configuration has no more, if they can be found. */
  forget(user: string): Promise<void>;
  /** Rejects with a `LoginError` if the last change is lost, because a store was away. */
  close(): Promise<void>;
}

export interface LockedLogin {
  read(): Promise<LoginRecord | undefined>;
  /** Checks that the login can be stored. Rejects with a `LoginError` or a `RequestError` if it cannot be stored now. */
  check(): Promise<void>;
  /**
   * Stores the login, later if the store of a cluster does not answer. Resolves with the login that is stored then, which differs
   * if another process changed it although the lock was held. Rejects with a `LoginError`.
   */
  write(record: LoginRecord): Promise<LoginRecord | undefined>;
  remove(): Promise<void>;
}

const FORMAT = Buffer.from('trunkline login 1\n');

/** Returns the first 32 hexadecimal digits of the SHA-256 of a text. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Encrypts the text of the login with this name (`nameOf`). Decryption fails with the name of another login. */
export function encrypt(key: Uint8Array, name: string, text: string): Buffer {
  const sealed = sealBytes([key], Buffer.from(text), Buffer.from(name));
  // This format has the tag before the content.
  const [nonce, content, tag] = [
    sealed.subarray(0, NONCE_BYTES),
    sealed.subarray(NONCE_BYTES, -TAG_BYTES),
    sealed.subarray(-TAG_BYTES),
  ];
  return Buffer.concat([FORMAT, nonce, tag, content]);
}

/** Returns the text, or `undefined` if the bytes are damaged, or were encrypted with another key or name. */
export function decrypt(key: Uint8Array, name: string, bytes: Buffer): string | undefined {
  if (!bytes.subarray(0, FORMAT.length).equals(FORMAT)) return undefined;
  const rest = bytes.subarray(FORMAT.length);
  const [nonce, tag] = [rest.subarray(0, NONCE_BYTES), rest.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)];
  const sealed = Buffer.concat([nonce, rest.subarray(NONCE_BYTES + TAG_BYTES), tag]);
  return openBytes([key], sealed, Buffer.from(name))?.toString();
}
