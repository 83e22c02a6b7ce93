import { CheckedStrings } from './checked-strings.js';
import { skipLongString } from './json-string.js';
import { skipValue, skipWhitespace } from './json-text.js';

/** Below this, a text is looked at fast enough when all of it is there. */
const WORTHWHILE_BYTES = 64 * 1024;
/** By how much it has to grow to be looked at from the beginning once more: that must not take most of the time. */
const GROWTH = 2;
const MAX_DEPTH = 32;
/** How much of an escape may be there without the rest. */
const PARTIAL_ESCAPE_BYTES = 5;

/**
 * Looks at a large JSON text while it comes, when the bytes are still in the processor's caches and whoever sends them
 * takes time for the rest.
 *
 * Nearly all of what is large is one long string, so those are followed: whoever reads the text when it is complete gets
 * to know how far they are right. Of a text that is made of other things nothing is found out, at the cost of one look at
 * its beginning, and of a broken one neither.
 */
export class GrowingText {
  #strings: CheckedStrings | undefined;
  /** Where the search in the string began that goes on to the end of what there is. */
  #open: number | undefined;
  /** From which length on it is worth a look from the beginning. */
  #worthwhileFrom = WORTHWHILE_BYTES;

  /** More has come. `bytes` are all that there is, from the beginning. */
  grown(bytes: Uint8Array): void {
    if (this.#open === undefined && bytes.length < this.#worthwhileFrom) return;
    this.#strings ??= new CheckedStrings();
    this.#strings.belongTo(bytes);
    const hasEnded = this.#open !== undefined && skipLongString(bytes, this.#open) >= 0;
    if (this.#open === undefined) skipValue(bytes, skipWhitespace(bytes, 0), MAX_DEPTH);
    const { latest } = this.#strings;
    const isOpen = !hasEnded && latest !== undefined && bytes.length - latest.end <= PARTIAL_ESCAPE_BYTES;
    this.#open = isOpen ? latest.at : undefined;
    this.#worthwhileFrom = hasEnded ? bytes.length * GROWTH : Number.POSITIVE_INFINITY;
  }

  /** All has come, which is `bytes`: what was found out is known of them from now on. The next text begins. */
  completed(bytes: Uint8Array): void {
    this.#strings?.belongTo(bytes);
    this.forget();
  }

  /** The next text begins. */
  forget(): void {
    this.#strings = undefined;
    this.#open = undefined;
    this.#worthwhileFrom = WORTHWHILE_BYTES;
  }
}
