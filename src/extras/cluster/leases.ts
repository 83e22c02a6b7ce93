import { randomUUID } from 'node:crypto';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { type ClaimStore, ignoreAbsence, StoreUnavailable } from './store.js';

export interface LeasesOptions extends LeasesShared {
  /** Whether a lease is kept while it has no listener. */
  readonly isKept: (name: string) => boolean;
}

export interface LeasesShared {
  readonly store: ClaimStore;
  /** The name of this gateway. */
  readonly self: string;
  readonly clock: Clock;
  readonly onInternalError: (error: unknown) => void;
}

/** Called when a lease is lost. The listener must end the process within `ms`. `because` is the reason, as a clause. */
export type OnLost = (ms: number, because: string) => void;

interface Lease {
  /** From this time on, another gateway can have the lease. */
  endsAt: number;
  readonly listeners: Set<OnLost>;
}

/** How long a lease lasts after it was renewed, in milliseconds. */
const LEASE_MS = 15_000;
const RENEW_MS = 3_000;
/**
 * While the store does not answer, a lease is given up when at most `GIVE_UP_MS` of its time are left, so that the protected
 * process can end in time. `SPARE_MS` of this time are a reserve.
 */
const GIVE_UP_MS = 6_000;
const SPARE_MS = 1_000;

/**
 * Name of the record that says whether the store has all leases. The record is `complete`, or a random text while leases may be
 * missing, because the store is new or has lost its data.
 */
const MARK = 'leases';
const COMPLETE = Buffer.from('complete');

/**
 * The leases of this gateway. A lease is the right to run the process of a sole server. At most one gateway of the cluster has a
 * lease at a time, and renews it until it is released. Its time begins before the store is asked, so that it ends here first.
 */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #held = new Map<string, Lease>();
  readonly #asked = new Set<string>();
  /** Number of commands in flight that give leases back. */
  #releasing = 0;
  /** Callbacks for the moment when no lease is left. */
  #waiting: (() => void)[] = [];
  /** The random text that the record `MARK` had, and when it was first seen. */
  #mark: { readonly text: string; readonly seenAt: number } | undefined;
  #cancelRenewal: Cancel | undefined;

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /**
   * Returns the holder of the lease, this gateway if it was free. Rejects with `StoreUnavailable`, also while the store may lack leases.
   */
  async take(name: string): Promise<string> {
    const { store, self, clock } = this.#options;
    if (!(await this.#isComplete()))
      throw new StoreUnavailable(
        'the store of the cluster is new or has lost its data, so another gateway may still run the server for 15 s',
      );
    const askedAt = clock.now();
    this.#asked.add(name);
    const holder = await store.claim(name, self, LEASE_MS).finally(() => this.#asked.delete(name));
    if (holder === self) this.#taken(name, askedAt);
    else this.#lose(name, TAKEN, 0);
    return holder;
  }

  /** Whether this gateway has the lease, or has asked for it, because others may see it in the store before this gateway does. */
  has(name: string): boolean {
    return this.#held.has(name) || this.#asked.has(name);
  }

  /** Calls the listener when the lease is lost, or at once if it is not here. The returned function removes the listener. */
  onLost(name: string, listener: OnLost): () => void {
    const lease = this.#held.get(name);
    if (lease === undefined) listener(0, LATE);
    lease?.listeners.add(listener);
    return () => lease?.listeners.delete(listener);
  }

  /** Gives back the leases that have no listener, and are not kept. */
  async releaseUnused(): Promise<void> {
    const { isKept } = this.#options;
    const unused = [...this.#held].filter(([name, { listeners }]) => listeners.size === 0 && !isKept(name));
    if (unused.length > 0) await this.release(...unused.map(([name]) => name));
  }

  /** Gives back these leases, or all if none is named. Call it when nothing that they protect is left. */
  async release(...names: readonly string[]): Promise<void> {
    const { store, self } = this.#options;
    const released = names.length === 0 ? [...this.#held.keys()] : names.filter((name) => this.#held.has(name));
    if (released.length === 0) return;
    for (const name of released) this.#held.delete(name);
    this.#releasing += 1;
    await store.release(released, self).catch(ignoreAbsence);
    this.#releasing -= 1;
    this.#tellIfNone();
  }

  /** Resolves when this gateway has no lease, and the store knows that. */
  async none(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      this.#tellIfNone();
    });
  }

  #tellIfNone(): void {
    if (this.#held.size + this.#releasing === 0) for (const none of this.#waiting.splice(0)) none();
  }

  #taken(name: string, askedAt: number): void {
    const endsAt = askedAt + LEASE_MS;
    const lease = this.#held.get(name);
    if (lease === undefined) this.#held.set(name, { endsAt, listeners: new Set() });
    else lease.endsAt = endsAt;
    if (this.#cancelRenewal === undefined) this.#scheduleRenewal();
  }

  #scheduleRenewal(): void {
    this.#cancelRenewal = this.#options.clock.schedule(RENEW_MS, () => {
      this.#cancelRenewal = undefined;
      const renewal = this.#renew().finally(() => this.#held.size > 0 && this.#scheduleRenewal());
      renewal.catch(this.#options.onInternalError);
    });
  }

  async #renew(): Promise<void> {
    const { store, self, clock } = this.#options;
    const askedAt = clock.now();
    // After a long pause of this process, another gateway may have the lease already.
    for (const [name, { endsAt }] of this.#held) if (askedAt >= endsAt) this.#lose(name, LATE);
    await this.releaseUnused();
    const names = [...this.#held.keys()];
    try {
      const lost = names.length === 0 ? [] : await store.renew(names, self, LEASE_MS);
      for (const name of lost) this.#lose(name, TAKEN, 0);
      for (const name of names) if (this.#held.has(name)) this.#taken(name, askedAt);
    } catch (error) {
      ignoreAbsence(error);
      for (const [name, { endsAt }] of this.#held) if (endsAt - clock.now() <= GIVE_UP_MS) this.#lose(name, AWAY);
    }
  }

  #lose(name: string, because: string, ms = Number.POSITIVE_INFINITY): void {
    const lease = this.#held.get(name);
    if (lease === undefined) return;
    this.#held.delete(name);
    const left = Math.max(0, lease.endsAt - SPARE_MS - this.#options.clock.now());
    for (const listener of lease.listeners) listener(Math.min(ms, left), because);
    this.#tellIfNone();
  }

  /**
   * Whether every lease of the cluster is in the store. A store that has lost its data gets a new mark. When the
   * mark is as old as a lease can be, every older lease has been renewed since, or has ended, so the store has all leases again.
   */
  async #isComplete(): Promise<boolean> {
    const { store, clock } = this.#options;
    const found = await store.read(MARK);
    if (found !== undefined && COMPLETE.equals(found)) return true;
    const now = clock.now();
    if (found === undefined) {
      const text = randomUUID();
      if (await store.replace(MARK, undefined, Buffer.from(text))) this.#mark = { text, seenAt: now };
      return false;
    }
    const text = Buffer.from(found).toString();
    if (this.#mark?.text !== text) this.#mark = { text, seenAt: now };
    return now - this.#mark.seenAt >= LEASE_MS && (await store.replace(MARK, found, COMPLETE));
  }
}

const LATE = 'this gateway could not renew its lease in time';
const TAKEN = 'another gateway has taken its lease';
const AWAY = 'the store of the cluster does not answer, and another gateway could start this server soon';
