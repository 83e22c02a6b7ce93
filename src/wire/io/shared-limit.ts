/** An amount that several holders share, with a limit. Counts the refused requests, for the status. */
export class SharedLimit {
  #max: number;
  #used = 0;
  #refusals = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get max(): number {
    return this.#max;
  }

  /** Amount in use; more than `max` after the limit became smaller. */
  get used(): number {
    return this.#used;
  }

  /** Number of calls of `tryAcquire` that returned `false`. */
  get refusals(): number {
    return this.#refusals;
  }

  /** Changes the limit. The amount in use stays, even if it exceeds the new limit. */
  limitTo(max: number): void {
    this.#max = max;
  }

  /** Acquires `amount` if that stays within the limit; otherwise acquires nothing and returns `false`. */
  tryAcquire(amount: number): boolean {
    const isWithinLimit = this.#used + amount <= this.#max;
    if (isWithinLimit) this.#used += amount;
    else this.#refusals += 1;
    return isWithinLimit;
  }

  release(amount: number): void {
    this.#used -= amount;
  }
}

/** One user of a `FairMemory`. Only the `FairMemory` changes `bytes`. */
export interface Holder {
  /** Bytes in use. */
  bytes: number;
  /**
   * Owners of the bytes, from the largest unit to the smallest: a token, then its session. All holders of one memory have the
   * same number of owners. Without owners, each holder counts for itself.
   */
  readonly owners: readonly string[];
  /** Called when the holder loses its bytes, which are not counted any more. */
  readonly evict: () => void;
}

/**
 * Memory that many holders use together up to a limit, for unfinished lines or incomplete bodies of HTTP requests.
 *
 * When the limit is passed, the owner with the most bytes loses its largest holding. So a holder with few bytes always gets
 * the memory that it needs, however much others use.
 */
export class FairMemory {
  readonly #exemptBytes: number;
  readonly #holders = new Set<Holder>();
  #max: number;
  #used = 0;
  #evictions = 0;

  /** A holder of at most `exemptBytes` bytes loses nothing and takes nothing from others, even beyond the limit. */
  constructor(max: number, exemptBytes = 0) {
    this.#max = max;
    this.#exemptBytes = exemptBytes;
  }

  get max(): number {
    return this.#max;
  }

  get used(): number {
    return this.#used;
  }

  /** Number of times that a holder lost its bytes. */
  get evictions(): number {
    return this.#evictions;
  }

  /** Changes the limit. No holder loses anything before one of them needs more. */
  limitTo(max: number): void {
    this.#max = max;
  }

  /** Adds a holder without bytes. */
  join({ owners = [], evict }: { readonly owners?: readonly string[]; readonly evict: () => void }): Holder {
    const holder: Holder = { bytes: 0, owners, evict };
    this.#holders.add(holder);
    return holder;
  }

  /**
   * Sets the total of bytes that the holder needs. Returns `false` if this holder loses its bytes. It then holds nothing, and
   * `evict` is not called.
   */
  grow(holder: Holder, bytes: number): boolean {
    this.#used += bytes - holder.bytes;
    holder.bytes = bytes;
    return this.#used <= this.#max || bytes <= this.#exemptBytes || this.#makeRoomFor(holder);
  }

  release(holder: Holder): void {
    this.#used -= holder.bytes;
    holder.bytes = 0;
  }

  /** Removes a holder and releases its bytes. May be called twice. */
  leave(holder: Holder): void {
    this.release(holder);
    this.#holders.delete(holder);
  }

  #makeRoomFor(grown: Holder): boolean {
    while (this.#used > this.#max) {
      const loser = this.#loser(grown.owners.length);
      if (loser === undefined) return true;
      this.release(loser);
      this.#evictions += 1;
      if (loser === grown) return false;
      loser.evict();
    }
    return true;
  }

  #loser(levels: number): Holder | undefined {
    let candidates = [...this.#holders].filter(({ bytes }) => bytes > this.#exemptBytes);
    for (let level = 0; level < levels; level += 1) candidates = ofLargestOwner(candidates, level);
    return candidates.sort((a, b) => b.bytes - a.bytes)[0];
  }
}

/** The holders of the owner that holds the most. */
function ofLargestOwner(holders: readonly Holder[], level: number): Holder[] {
  const byOwner = new Map<string | undefined, { bytes: number; readonly holders: Holder[] }>();
  for (const holder of holders) {
    const owner = holder.owners[level];
    const all = byOwner.get(owner) ?? { bytes: 0, holders: [] };
    all.bytes += holder.bytes;
    all.holders.push(holder);
    byOwner.set(owner, all);
  }
  let largest: { bytes: number; readonly holders: Holder[] } = { bytes: -1, holders: [] };
  for (const each of byOwner.values()) if (each.bytes > largest.bytes) largest = each;
  return largest.holders;
}
