/** What was found out about one long string. */
export interface CheckedString {
  /** Where it was begun to be checked in strides. */
  readonly at: number;
  /** All before it is right; it is outside of escapes, and may be where the string ends. */
  readonly end: number;
}

/** How far the long strings of a text are right, as far as somebody has looked. */
export class CheckedStrings {
  readonly #ends = new Map<number, number>();
  #latest: CheckedString | undefined;

  /** What is known of `bytes`. */
  static of(bytes: Uint8Array): CheckedStrings | undefined {
    return known.get(bytes);
  }

  /** The one that was looked at last. */
  get latest(): CheckedString | undefined {
    return this.#latest;
  }

  /** This is about `bytes`, which begin with all that was looked at so far. They must not be changed any more. */
  belongTo(bytes: Uint8Array): void {
    known.set(bytes, this);
  }

  /** The end for a string that was begun to be checked there. */
  endFor(at: number): number | undefined {
    return this.#ends.get(at);
  }

  note(at: number, end: number): void {
    this.#ends.set(at, end);
    this.#latest = { at, end };
  }
}

/** By the view itself and not by the memory behind it, which may hold something else later. */
const known = new WeakMap<Uint8Array, CheckedStrings>();
