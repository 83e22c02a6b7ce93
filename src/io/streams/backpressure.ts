import type { Readable } from 'node:stream';

/**
 * Holds back what many streams have to say while the one who listens cannot keep up: all of them, or those of a source
 * that says more than its share.
 *
 * Bytes then wait where they are produced, and not in our memory.
 */
export class Backpressure {
  /** Each with its source. */
  readonly #streams = new Map<Readable, string | undefined>();
  readonly #heldSources = new Set<string>();
  #isHeld = false;

  /** The stream takes part until it closes or is released. */
  add(stream: Readable, source?: string): void {
    this.#streams.set(stream, source);
    stream.once('close', () => this.#streams.delete(stream));
    if (this.#isHeld || this.#isSourceHeld(source)) stream.pause();
  }

  /** Lets this stream run from now on, whatever the others do. */
  release(stream: Readable): void {
    this.#streams.delete(stream);
    stream.resume();
  }

  /** All streams, or those of a source. */
  hold(source?: string): void {
    if (source === undefined ? this.#isHeld : this.#heldSources.has(source)) return;
    if (source === undefined) this.#isHeld = true;
    else this.#heldSources.add(source);
    for (const [stream, itsSource] of this.#streams) {
      if (source === undefined || source === itsSource) stream.pause();
    }
  }

  /** The same that was held; what is held for the other reason as well stays so. */
  resume(source?: string): void {
    if (source === undefined ? !this.#isHeld : !this.#heldSources.delete(source)) return;
    if (source === undefined) this.#isHeld = false;
    for (const [stream, itsSource] of this.#streams) {
      const isMeant = source === undefined || source === itsSource;
      if (isMeant && !this.#isHeld && !this.#isSourceHeld(itsSource)) stream.resume();
    }
  }

  #isSourceHeld(source: string | undefined): boolean {
    return source !== undefined && this.#heldSources.has(source);
  }
}
