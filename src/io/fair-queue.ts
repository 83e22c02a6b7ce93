/** One thing that waits, and whose it is. */
export interface Queued<T> {
  readonly item: T;
  readonly bytes: number;
  readonly source: string | undefined;
}

interface Entry<T> extends Queued<T> {
  /** Where its source's share of the way has come to before it. */
  readonly start: number;
  next: Entry<T> | undefined;
}

interface Lane<T> {
  first: Entry<T>;
  last: Entry<T>;
}

/** What may go in any order but for that of each source. */
type Stretch<T> = Map<string | undefined, Lane<T>>;

/**
 * Lets what several sources have to say take turns, by bytes: the one that has had least goes first, so that little
 * does not wait for much, nor much for ever.
 *
 * What comes from one source stays in its order. What has no source keeps its place among everything: all that came
 * before it goes first, and all that comes after it waits. This is start-time fair queueing, with a lane for each source.
 */
export class FairQueue<T> {
  /** Stretches with sources and without take turns. */
  #stretches: Stretch<T>[] = [];
  /** By source: where its share of the way ends, in bytes, as of what was added. Kept only while anything waits. */
  readonly #ends = new Map<string | undefined, number>();
  readonly #bytesOf = new Map<string | undefined, number>();
  /** The start of what was taken last. */
  #position = 0;
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#stretches.length === 0;
  }

  /** All that waits. */
  get bytes(): number {
    return this.#bytes;
  }

  bytesOf(source: string): number {
    return this.#bytesOf.get(source) ?? 0;
  }

  add(item: T, bytes: number, source: string | undefined): void {
    const start = Math.max(this.#position, this.#ends.get(source) ?? 0);
    this.#ends.set(source, start + bytes);
    this.#count(source, bytes);
    const entry: Entry<T> = { item, bytes, source, start, next: undefined };
    const stretch = this.#stretchFor(source);
    const lane = stretch.get(source);
    if (lane === undefined) {
      stretch.set(source, { first: entry, last: entry });
      return;
    }
    lane.last.next = entry;
    lane.last = entry;
  }

  /** Whose turn it is. */
  take(): Queued<T> | undefined {
    const [stretch] = this.#stretches;
    if (stretch === undefined) return undefined;
    let chosen: Lane<T> | undefined;
    for (const lane of stretch.values()) {
      if (chosen === undefined || lane.first.start < chosen.first.start) chosen = lane;
    }
    if (chosen === undefined) return undefined;
    const entry = chosen.first;
    if (entry.next !== undefined) chosen.first = entry.next;
    else stretch.delete(entry.source);
    if (stretch.size === 0) this.#stretches.shift();
    this.#position = Math.max(this.#position, entry.start);
    this.#count(entry.source, -entry.bytes);
    if (this.isEmpty) this.clear();
    return entry;
  }

  clear(): void {
    this.#stretches = [];
    this.#ends.clear();
    this.#bytesOf.clear();
    this.#position = 0;
    this.#bytes = 0;
  }

  #stretchFor(source: string | undefined): Stretch<T> {
    const last = this.#stretches.at(-1);
    if (last !== undefined && last.has(undefined) === (source === undefined)) return last;
    const stretch: Stretch<T> = new Map();
    this.#stretches.push(stretch);
    return stretch;
  }

  #count(source: string | undefined, bytes: number): void {
    this.#bytes += bytes;
    this.#bytesOf.set(source, (this.#bytesOf.get(source) ?? 0) + bytes);
  }
}
