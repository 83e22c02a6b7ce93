import type { Readable } from 'node:stream';

/**
 * Holds back what many streams have to say while the one who listens cannot keep up.
 *
 * Bytes then wait where they are produced, and not in our memory.
 */
export class Flow {
  readonly #streams = new Set<Readable>();
  #isHeld = false;

  /** The stream takes part until it closes or is released. */
  add(stream: Readable): void {
    this.#streams.add(stream);
    stream.once('close', () => this.#streams.delete(stream));
    if (this.#isHeld) stream.pause();
  }

  /** Lets this stream run from now on, whatever the others do. */
  release(stream: Readable): void {
    this.#streams.delete(stream);
    stream.resume();
  }

  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    for (const stream of this.#streams) stream.pause();
  }

  resume(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    for (const stream of this.#streams) stream.resume();
  }
}
