import { HeldBytes } from './held-bytes.js';
import { SharedLimit } from './shared-limit.js';

const NEWLINE = 0x0a;
/** One who hoards must not keep others from what comes in two pieces by chance: as much as this may always be held. */
const ALWAYS_GIVEN_BYTES = 64 * 1024;
/** No larger line is expected: room is made for it before it is there. */
const MAX_EXPECTED_BYTES = 16 * 1024 * 1024;
/** The part of what all may still hold that one may take for what it merely expects. */
const EXPECTED_SHARE = 0.25;
/** How much of a dropped line is kept at either end: enough to find the id of the request it would have answered. */
const FRAGMENT_BYTES = 512;

/** What came out of the stream. */
export interface LineSink {
  /** From `start` to `end` in bytes that other lines may share. Whoever keeps them longer than the call keeps all of them. */
  line(bytes: Uint8Array, start: number, end: number): void;
  /** A line passed a limit and was dropped; reading went on after its newline. */
  oversized(fragment: OversizedLine): void;
}

export interface OversizedLine {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  readonly byteLength: number;
}

export interface LineDecoderOptions {
  readonly maxLineBytes: number;
  /** What all decoders together may hold of unfinished lines; a line that would be beyond that is dropped. */
  readonly held?: SharedLimit;
}

/**
 * Cuts a byte stream into lines at 0x0A and nowhere else, so that text split inside a character stays whole.
 *
 * A lone carriage return is not a line end: JSON takes it as white space. Only new bytes are searched, and the
 * pieces of a line are put together when it ends, or as they come where its length is as expected, so that neither a
 * large line in small chunks nor many lines in a large chunk costs more than their length. Memory stays below twice
 * `maxLineBytes` and a few KiB.
 */
export class LineDecoder {
  readonly #maxLineBytes: number;
  readonly #room: SharedLimit;
  readonly #held = new HeldBytes();
  /** What was taken of the room for what is held, or is expected to be. */
  #taken = 0;
  /** Of the last large lines, the shorter of two. Those of a kind come one after the other; of several, none is expected. */
  #expected = 0;
  #lastLarge = 0;
  #skipped: { head: Uint8Array; tail: Uint8Array; byteLength: number } | undefined;
  #droppedLines = 0;
  #droppedBytes = 0;
  #excessBytes = 0;

  constructor({ maxLineBytes, held = new SharedLimit(Number.POSITIVE_INFINITY) }: LineDecoderOptions) {
    this.#maxLineBytes = maxLineBytes;
    this.#room = held;
  }

  /** Lines dropped because they passed a limit, a last one without a newline included. */
  get droppedLines(): number {
    return this.#droppedLines;
  }

  get droppedBytes(): number {
    return this.#droppedBytes;
  }

  /** Bytes that lines were beyond the limit, those of one that still goes on included. */
  get excessBytes(): number {
    return this.#excessBytes + this.#excessOf(this.#skipped);
  }

  /** Bytes of an unfinished line that are held at the moment. */
  get heldBytes(): number {
    return this.#held.length;
  }

  push(chunk: Uint8Array, sink: LineSink): void {
    // A plain array of bytes: the platform's own kind takes its time to be cut.
    const bytes = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length);
    let start = 0;
    while (start < bytes.length) {
      const newline = chunk.indexOf(NEWLINE, start);
      if (newline < 0) {
        this.#keep(bytes.subarray(start));
        return;
      }
      // A view of each line would cost about as much as to find it.
      if (this.#isWhole(newline - start)) sink.line(bytes, start, newline);
      else this.#finish(bytes.subarray(start, newline), sink);
      start = newline + 1;
    }
  }

  /** The stream ended: an unfinished line is dropped, because half a message is no message. Returns its length. */
  end(): number {
    const lost = this.#skipped?.byteLength ?? this.#held.length;
    if (lost > 0) this.#countDropped(lost);
    this.#reset();
    return lost;
  }

  /** Whether so many bytes are a line by themselves. */
  #isWhole(byteLength: number): boolean {
    return this.#held.length === 0 && this.#skipped === undefined && byteLength <= this.#maxLineBytes;
  }

  #finish(rest: Uint8Array, sink: LineSink): void {
    if (this.#skipped === undefined && this.#held.length + rest.length > this.#maxLineBytes) this.#startSkipping();
    if (this.#skipped !== undefined) {
      this.#skip(rest);
      const skipped = this.#skipped;
      this.#countDropped(skipped.byteLength);
      this.#excessBytes += this.#excessOf(skipped);
      this.#reset();
      sink.oversized(skipped);
      return;
    }
    if (!this.#append(rest)) {
      this.#startSkipping();
      this.#finish(rest, sink);
      return;
    }
    const line = this.#takeHeld();
    if (line.length > ALWAYS_GIVEN_BYTES) this.#learn(line.length);
    sink.line(line, 0, line.length);
  }

  #keep(rest: Uint8Array): void {
    if (this.#skipped === undefined && this.#held.length + rest.length > this.#maxLineBytes) this.#startSkipping();
    if (this.#skipped === undefined && !this.#append(rest)) this.#startSkipping();
    if (this.#skipped !== undefined) this.#skip(rest);
  }

  /** Returns false, and does nothing, when there is no room for it among what all hold. */
  #append(rest: Uint8Array): boolean {
    const length = this.#held.length + rest.length;
    const isLarge = length > ALWAYS_GIVEN_BYTES;
    if (length > this.#taken) {
      const more = length - this.#taken;
      if (!isLarge) this.#room.takeAnyway(more);
      else if (!this.#room.take(more)) return false;
      this.#taken = length;
    }
    if (isLarge && this.#held.length <= ALWAYS_GIVEN_BYTES) this.#expect();
    this.#held.add(rest);
    return true;
  }

  #learn(length: number): void {
    // Lines of a kind differ a little in length.
    const spacious = Math.min(length + (length >> 4), this.#maxLineBytes, MAX_EXPECTED_BYTES);
    this.#expected = Math.min(spacious, this.#lastLarge);
    this.#lastLarge = spacious;
  }

  /** Makes room for a line as large as is expected, if that is little of what there is. */
  #expect(): void {
    const more = this.#expected - this.#taken;
    if (more <= 0 || more > (this.#room.max - this.#room.taken) * EXPECTED_SHARE) return;
    this.#room.takeAnyway(more);
    this.#taken = this.#expected;
    this.#held.reserve(this.#expected);
  }

  #takeHeld(): Uint8Array {
    this.#giveBack();
    return this.#held.take();
  }

  #giveBack(): void {
    this.#room.give(this.#taken);
    this.#taken = 0;
  }

  #startSkipping(): void {
    const held = this.#takeHeld();
    this.#skipped = {
      head: held.slice(0, FRAGMENT_BYTES),
      tail: held.slice(-FRAGMENT_BYTES),
      byteLength: held.length,
    };
  }

  #skip(rest: Uint8Array): void {
    const skipped = this.#skipped;
    if (skipped === undefined) return;
    skipped.byteLength += rest.length;
    if (skipped.head.length < FRAGMENT_BYTES) skipped.head = joinFragments(skipped.head, rest).slice(0, FRAGMENT_BYTES);
    skipped.tail = joinFragments(skipped.tail, rest).slice(-FRAGMENT_BYTES);
  }

  #excessOf(skipped: { readonly byteLength: number } | undefined): number {
    return skipped === undefined ? 0 : Math.max(0, skipped.byteLength - this.#maxLineBytes);
  }

  #countDropped(byteLength: number): void {
    this.#droppedLines += 1;
    this.#droppedBytes += byteLength;
  }

  #reset(): void {
    this.#giveBack();
    this.#held.clear();
    this.#skipped = undefined;
  }
}

/** `held` and the two ends of `rest`, which is all that either end of a fragment can come from. */
function joinFragments(held: Uint8Array, rest: Uint8Array): Uint8Array {
  const first = rest.subarray(0, FRAGMENT_BYTES);
  const last = rest.subarray(Math.max(FRAGMENT_BYTES, rest.length - FRAGMENT_BYTES));
  const joined = new Uint8Array(held.length + first.length + last.length);
  joined.set(held);
  joined.set(first, held.length);
  joined.set(last, held.length + first.length);
  return joined;
}
