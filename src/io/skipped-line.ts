import type { EvictionReason } from './unfinished-lines.js';

/** How many bytes of a dropped line are kept at either end: enough to find the id of the request that it answers. */
const FRAGMENT_BYTES = 512;

/** Both ends of a dropped line. */
export interface OversizedLine {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  readonly byteLength: number;
  /** Why the line was dropped before it was finished; `undefined` if it passed the limit for one line. */
  readonly evicted: EvictionReason | undefined;
  /** Whether the line was dropped because it begins like none that can be of use. */
  readonly isText: boolean;
}

/** A line that is not stored as it comes, but for its ends. */
export class SkippedLine implements OversizedLine {
  evicted: EvictionReason | undefined;
  isText = false;
  #head = NOTHING;
  #tail = NOTHING;
  #byteLength = 0;

  get head(): Uint8Array {
    return this.#head;
  }

  get tail(): Uint8Array {
    return this.#tail;
  }

  get byteLength(): number {
    return this.#byteLength;
  }

  /** The line goes on with these bytes. */
  add(bytes: Uint8Array, start: number, end: number): void {
    this.#byteLength += end - start;
    const missing = FRAGMENT_BYTES - this.#head.length;
    if (missing > 0) this.#head = joined(this.#head, bytes.slice(start, Math.min(end, start + missing)));
    this.#tail = joined(this.#tail, bytes.slice(Math.max(start, end - FRAGMENT_BYTES), end)).slice(-FRAGMENT_BYTES);
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) return second;
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
