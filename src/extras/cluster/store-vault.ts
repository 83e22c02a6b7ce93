import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { RequestError } from '../../host/http/send-request.js';
import type { Keys } from '../../host/sealed-bytes.js';
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
} from '../../upstream/auth/vault.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import type { Cancel } from '../../wire/timing/clock.js';
import { type ClusterStore, StoreUnavailable } from './store.js';

/**
 * Time of a lease, in milliseconds. It is longer than a request for tokens, 30 s at most, before which it is confirmed. It is
 * shorter than the default `timeout` of a call, 60 s, because a call may have to wait for the lease of a gateway that was killed.
 */
const LEASE_MS = 45_000;
/** Pause before asking again, in milliseconds. */
const WAIT_MS = 100;
/** How long a store that has stopped answering is asked again, in milliseconds: longer than a gateway takes to connect again. */
const PATIENCE_MS = 3_000;
/** Pause before trying again to store a login, in milliseconds. */
const RETRY_MS = 500;
/** Time until a change by another gateway is noticed, in milliseconds. */
const FOLLOW_MS = 5_000;
/** How long the end of a process waits for the store, in milliseconds. */
const CLOSE_MS = 2_000;

/** A version of a login. Each change makes a greater number, 0 means no login. The record is `undefined` after a logout. */
interface Version {
  readonly version: number;
  readonly record: LoginRecord | undefined;
  /** `isUnreadable`: no key decrypts the record. `hasOldKey`: another key than the first one decrypts it. */
  readonly isUnreadable?: boolean;
  readonly hasOldKey?: boolean;
}

export interface StoreVaultOptions {
  /** Returns the store. Rejects with `StoreUnavailable` if it cannot be opened. */
  readonly open: () => Promise<ClusterStore>;
  /** Closes the store if this process has it for the logins only. */
  readonly close?: () => Promise<void>;
  /** Returns keys. The first one encrypts, and all of them decrypt. */
  readonly readKeys: () => Promise<Keys>;
}

/**
 * Stores the logins of a cluster, so that one login serves all its gateways. They need not have the configuration in the same place, so the
 * key and the URL of a server identify its login. The lock of a login is a lease, because its holder may be on another machine that fails.
 *
 * The store may lose its last writes, or be away when a login was renewed. Then this process puts the newest login that it knows back,
 * because an earlier refresh token must not be used again.
 *
 * Rejects with a `RequestError` if the store does not answer.
 */
export class StoreVault implements Vault {
  readonly #options: StoreVaultOptions;
  readonly #holder = randomUUID();
  readonly #newest = new Map<string, Version>();
  /** The latest work with each lease. The next work waits for it, because this process is one holder. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Logins whose newest version must still be stored. */
  readonly #restoring = new Set<string>();
  /** Logins that this process has encrypted with its first key. Each only once, because a gateway with another first key undoes it. */
  readonly #resealed = new Set<string>();
  /** When the store stopped answering; `undefined` while it answers. */
  #awaySince: number | undefined = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: StoreVaultOptions) {
    this.#options = options;
  }

  nameOf({ server, url, user }: LoginId): string {
    return digest(JSON.stringify([server, url, ...(user === undefined ? [] : [user])]));
  }

  async storedIn(): Promise<'store'> {
    return 'store';
  }

  async read(id: LoginId): Promise<LoginRecord | undefined> {
    const name = this.nameOf(id);
    const stored = await this.#read(name);
    const newest = this.#newestOf(name, stored);
    const isSealedAnew = stored.hasOldKey === true && !this.#resealed.has(name);
    if (isSealedAnew) this.#resealed.add(name);
    if (isSealedAnew || newest !== stored) void this.#restore(id);
    return readable(newest);
  }

  async locked<T>(id: LoginId, signal: AbortSignal, work: (login: LockedLogin) => Promise<T>): Promise<T> {
    const name = this.nameOf(id);
    const turn = (this.#turns.get(name) ?? Promise.resolve()).then(() => this.#leased(id, signal, work));
    const ended = turn.catch(() => {});
    this.#turns.set(name, ended);
    return await turn;
  }

  /** Plans the next look when `onChange` has ended, because it asks the store for each login, which can take longer than the pause. */
  follow(_: readonly LoginId[], { clock, onChange }: FollowOptions): Cancel {
    let isOver = false;
    let cancel: Cancel = () => {};
    const plan = () => {
      if (!isOver) cancel = clock.schedule(FOLLOW_MS, () => void onChange().then(plan, plan));
    };
    plan();
    return () => {
      isOver = true;
      cancel();
    };
  }

  /** Finds no login, because a store does not list its records. Each login at a server of the configuration is removed by its id. */
  async forget(): Promise<void> {}

  /** Waits for the store for two seconds if a login must still be stored. Rejects with a `LoginError` if it is not stored by then. */
  async close(): Promise<void> {
    const end = performance.now() + CLOSE_MS;
    while (this.#restoring.size > 0 && performance.now() < end) await setTimeout(WAIT_MS);
    this.#isClosed = true;
    await this.#options.close?.();
    if (this.#restoring.size > 0)
      throw new VaultError('the change of the login is lost, because the store of the cluster does not answer');
  }

  async #leased<T>(id: LoginId, signal: AbortSignal, work: (login: LockedLogin) => Promise<T>): Promise<T> {
    const name = this.nameOf(id);
    const lease = `login:${name}`;
    const claim = async () => (await this.#ask((store) => store.claim(lease, this.#holder, LEASE_MS))) === this.#holder;
    while (!(await claim())) {
      await setTimeout(WAIT_MS * (1 + Math.random()));
      signal.throwIfAborted();
    }
    let isLate = false;
    try {
      const stored = await this.#read(name);
      let { bytes } = stored;
      const [key] = await this.#options.readKeys();
      const replace = async ({ version, record }: Version) => {
        const sealed = encrypt(key, name, JSON.stringify({ version, record: record ?? null }));
        const isReplaced = await this.#ask(
          async (store) =>
            (await store.replace(lease, bytes, sealed)) ||
            // The command before may have had its effect, although its answer has not come.
            Buffer.compare((await store.read(lease)) ?? Buffer.alloc(0), sealed) === 0,
        );
        if (isReplaced) bytes = sealed;
        return isReplaced;
      };
      const write = async (record: LoginRecord | undefined): Promise<LoginRecord | undefined> => {
        const { version } = this.#newestOf(name, stored);
        // The time makes a new login newer than one that the store has lost, or that cannot be read.
        const next = { record, version: Math.max(version + 1, Date.now()) };
        this.#newest.set(name, next);
        try {
          if (await replace(next)) return record;
        } catch (error) {
          if (!(error instanceof RequestError)) throw error;
          // Others must not use the earlier refresh token, so this process keeps the lease.
          isLate = true;
          void this.#restore(id);
          return record;
        }
        this.#newest.delete(name);
        return await this.read(id);
      };
      return await work({
        read: async () => readable(this.#newestOf(name, stored)),
        check: async () => {
          const newest = this.#newestOf(name, stored);
          readable(newest);
          const isOurs = (await claim()) && (await replace(newest));
          if (!isOurs) throw new RequestError('another gateway has changed the login meanwhile', false);
        },
        write,
        remove: async () => void (await write(undefined)),
      });
    } finally {
      // If this fails, the lease ends by itself.
      if (!isLate) await this.#ask((store) => store.release([lease], this.#holder)).catch(() => {});
    }
  }

  /**
   * Asks the store, for some seconds if it has just stopped answering, because another server may take its place. Rejects with a
   * `RequestError`.
   */
  async #ask<T>(command: (store: ClusterStore) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const answer = await command(await this.#options.open());
        this.#awaySince = undefined;
        return answer;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        this.#awaySince ??= performance.now();
        if (performance.now() - this.#awaySince >= PATIENCE_MS) {
          const reason = `the login cannot be read or changed, because ${error.message}; try again when it answers`;
          throw new RequestError(reason, false, error);
        }
        await setTimeout(WAIT_MS);
      }
    }
  }

  async #read(name: string): Promise<Version & { readonly bytes: Uint8Array | undefined }> {
    const keys = await this.#options.readKeys();
    const bytes = await this.#ask((store) => store.read(`login:${name}`));
    if (bytes === undefined) return { bytes, version: 0, record: undefined };
    for (const key of keys) {
      const content = parseJson(decrypt(key, name, Buffer.from(bytes)) ?? '');
      if (!isRecord(content)) continue;
      const { version, record } = content as { version: number; record: LoginRecord | null };
      return { bytes, version, record: record ?? undefined, hasOldKey: key !== keys[0] };
    }
    return { bytes, version: 0, record: undefined, isUnreadable: true };
  }

  #newestOf(name: string, stored: Version): Version {
    // Another gateway may have encrypted it with a key that this process does not have yet.
    if (stored.isUnreadable === true) return stored;
    const known = this.#newest.get(name);
    if (known !== undefined && known.version > stored.version) return known;
    this.#newest.set(name, stored);
    return stored;
  }

  /** Stores the newest version of a login, once the store answers. */
  async #restore(id: LoginId): Promise<void> {
    const name = this.nameOf(id);
    if (this.#restoring.has(name)) return;
    this.#restoring.add(name);
    while (this.#restoring.has(name) && !this.#isClosed) {
      try {
        await this.locked(id, AbortSignal.timeout(2 * LEASE_MS), ({ check }) => check());
        this.#restoring.delete(name);
      } catch {
        await setTimeout(RETRY_MS, undefined, { ref: false });
      }
    }
  }
}

function readable({ record, isUnreadable }: Version): LoginRecord | undefined {
  if (isUnreadable !== true) return record;
  throw new VaultError('the login in the store of the cluster is damaged, or was encrypted with another key');
}
