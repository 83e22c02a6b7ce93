import { randomBytes } from 'node:crypto';

/**
 * Rejection of a command, because the store is away, did not answer in time, or refused the command. The command may have had an
 * effect. The message is for users. It names the setting to correct, if there is one. It contains no secret.
 */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** Claims a name for `ms` milliseconds. Resolves with false while an earlier claim lasts. Rejects with `StoreUnavailable`. */
export async function takeOnce(
  store: { readonly claim: ClusterStore['claim'] },
  name: string,
  ms: number,
): Promise<boolean> {
  const taker = randomBytes(16).toString('base64url');
  return (await store.claim(`once:${name}`, taker, ms)) === taker;
}

/** Handler for the rejection of a command that the cluster can do without. Throws any other error than `StoreUnavailable`. */
export function ignoreAbsence(error: unknown): undefined {
  if (!(error instanceof StoreUnavailable)) throw error;
  return undefined;
}

/**
 * The store that the gateways of a cluster share. It has keys, values and times to live, and each command is atomic. Every value is
 * text or bytes, a few kilobytes at most. Adapters prefix all keys with the name of the cluster. Times are in milliseconds.
 *
 * Each command settles within 250 ms; each answer to another command begins the 250 ms anew. Commands reject with `StoreUnavailable`
 * at once while the store is known to be away, so that no client waits. Only `beat` and `connect` ask a store that is away, and may
 * then take some seconds.
 */
export interface ClusterStore extends ClaimStore {
  /** Whether the store is connected, and no command has failed since it was connected. */
  readonly isUp: boolean;

  /** Connects to the store if it is away. */
  connect(): Promise<void>;
  /** Stores the text of a member for `ms`. Returns the texts of all members whose time is not over, by their names. */
  beat(member: string, text: string, ms: number): Promise<ReadonlyMap<string, string>>;
  leave(member: string): Promise<void>;

  /** Stores a record; for ever without `ms`. */
  write(name: string, value: Uint8Array, ms?: number): Promise<void>;
  remove(name: string): Promise<void>;

  /** Ends the connection. Commands in flight are rejected. */
  close(): Promise<void>;
}

/** Claims and records. All gateways see a change of one immediately. */
export interface ClaimStore {
  /** Gives the name to `holder` for `ms`, if it is free, or if `holder` or `instead` holds it. Then returns the holder. */
  claim(name: string, holder: string, ms: number, instead?: string): Promise<string>;
  /** Returns the holder of the name; `undefined` if the name is free. */
  holderOf(name: string): Promise<string | undefined>;
  /**
   * Begins the times of these claims again. Claims that ended unnoticed are made again if the names are free. Returns the
   * names that others hold.
   */
  renew(names: readonly string[], holder: string, ms: number): Promise<readonly string[]>;
  release(names: readonly string[], holder: string): Promise<void>;

  read(name: string): Promise<Uint8Array | undefined>;
  /** Replaces a record, without an end of time, if its content is still `before` (`undefined`: absent). Returns whether it did. */
  replace(name: string, before: Uint8Array | undefined, value: Uint8Array): Promise<boolean>;
}
