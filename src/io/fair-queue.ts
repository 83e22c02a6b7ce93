/** An item that waits, its size and its source. */
export interface Queued<T> {
  readonly item: T;
  readonly bytes: number;
  readonly source: string | undefined;
}

interface Entry<T> extends Queued<T> {
  /**
   * The start tag: the end tag of the item before it from the same source, or the virtual time it was added at if
   * later.
   */
  readonly start: number;
  next: Entry<T> | undefined;
}

interface Lane<T> {
  first: Entry<T>;
  last: Entry<T>;
}

/** The items that may overtake each other, apart from the order within each source. */
type Segment<T> = Map<string | undefined, Lane<T>>;

/**
 * A queue in which several sources take turns by bytes: the source that has had the fewest bytes goes first, so that a
 * small item does not wait for many large ones, and no item waits forever. This is start-time fair queueing, with a
 * lane for each source.
 *
 * Items of one source stay in order. An item without a source keeps its place among all items: everything added before
 * it goes first, and everything added after it waits.
 */
export class FairQueue<T> {
  /** Segments with sources alternate with segments without. */
  #segments: Segment<T>[] = [];
  /** The end tag of each source's last item. Emptied when the queue is empty. */
  readonly #ends = new Map<string | undefined, number>();
  readonly #bytesOf = new Map<string | undefined, number>();
  /** The virtual time: the start tag of the item taken last. */
  #position = 0;
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#segments.length === 0;
  }

  /** The size of all items that wait. */
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
    const segment = this.#segmentFor(source);
    const lane = segment.get(source);
    if (lane === undefined) {
      segment.set(source, { first: entry, last: entry });
      return;
    }
    lane.last.next = entry;
    lane.last = entry;
  }

  /** Removes the item whose turn it is. */
  take(): Queued<T> | undefined {
    const [segment] = this.#segments;
    if (segment === undefined) return undefined;
    let chosen: Lane<T> | undefined;
    for (const lane of segment.values()) {
      if (chosen === undefined || lane.first.start < chosen.first.start) chosen = lane;
    }
    if (chosen === undefined) return undefined;
    const entry = chosen.first;
    if (entry.next !== undefined) chosen.first = entry.next;
    else segment.delete(entry.source);
    if (segment.size === 0) this.#segments.shift();
    this.#position = Math.max(this.#position, entry.start);
    this.#count(entry.source, -entry.bytes);
    if (this.isEmpty) this.clear();
    return entry;
  }

  clear(): void {
    this.#segments = [];
    this.#ends.clear();
    this.#bytesOf.clear();
    this.#position = 0;
    this.#bytes = 0;
  }

  #segmentFor(source: string | undefined): Segment<T> {
    const last = this.#segments.at(-1);
    if (last !== undefined && last.has(undefined) === (source === undefined)) return last;
    const segment: Segment<T> = new Map();
    this.#segments.push(segment);
    return segment;
  }

  #count(source: string | undefined, bytes: number): void {
    this.#bytes += bytes;
    this.#bytesOf.set(source, (this.#bytesOf.get(source) ?? 0) + bytes);
  }
}
