import type { Writable } from 'node:stream';
import { type SplicedMessage, splice, splicedLength } from '../../json/splice.js';
import { type MessageSink, whole } from '../../jsonrpc/message.js';
import { FairQueue, type Queued } from '../fair-queue.js';
import type { Backpressure } from './backpressure.js';
import { inMicrotask, LARGE_BYTES, LineWriter } from './line-writer.js';

/** Above this, what the other side has not taken yet stays with all who write. */
const HIGH_WATER_BYTES = 4 * 1024 * 1024;
/** Above this, it stays with the source that it is from. */
const SOURCE_HIGH_WATER_BYTES = 2 * 1024 * 1024;
/**
 * The same where another source has just said something: to read the next large message while one is being taken would
 * keep both of us, and what is small would wait for it. Alone, it saves time.
 */
const SHARED_HIGH_WATER_BYTES = 128 * 1024;

/**
 * Writes the messages of many to one who listens to all of them, so that none has to wait long because of another.
 *
 * A large message is given to the stream once the one before it was taken. What waits meanwhile takes turns: a small
 * message of one source goes before large ones of another that have not begun. A source of which much waits is held
 * back. As long as nothing large is sent, messages go to the stream as they come. Errors of the stream are its owner's
 * to hear.
 */
export class FairWriter implements MessageSink {
  readonly #stream: Writable;
  readonly #backpressure: Backpressure;
  readonly #writer: LineWriter;
  readonly #waiting = new FairQueue<SplicedMessage>();
  /** Whether messages have to wait: a large one is on its way, or is about to be. */
  #isBusy = false;
  /** The large message that was given to the stream and not taken yet. */
  #begun: Queued<SplicedMessage> | undefined;
  /** Of the last message. */
  #latest: string | undefined;
  /** Sources that are held back, each until no more than this of it waits. */
  readonly #held = new Map<string, number>();
  readonly #goOnLater = (): void => this.#goOn();
  readonly #onTaken = (): void => {
    this.#begun = undefined;
    this.#goOn();
  };

  constructor(stream: Writable, backpressure: Backpressure) {
    this.#stream = stream;
    this.#backpressure = backpressure;
    this.#writer = new LineWriter(stream);
    stream.on('drain', () => this.#relax());
    // Not every stream tells what it had begun to write that it will not.
    stream.once('close', this.#onTaken);
  }

  get unwrittenBytes(): number {
    return this.#writer.unwrittenBytes + this.#waiting.bytes;
  }

  send(message: SplicedMessage, source?: string): void {
    const isLarge = message.span.end - message.span.start >= LARGE_BYTES;
    if (isLarge || this.#isBusy) this.#enqueue(message, isLarge, source);
    else this.#writer.send(message);
    this.#latest = source;
    if (this.unwrittenBytes > HIGH_WATER_BYTES) this.#backpressure.hold();
  }

  #enqueue(message: SplicedMessage, isLarge: boolean, source: string | undefined): void {
    if (!this.#stream.writable) return;
    // A small one is copied, since it may be a view of far more bytes than it counts for.
    this.#waiting.add(isLarge ? message : whole(splice(message)), splicedLength(message) + 1, source);
    if (source !== undefined) this.#holdBack(source);
    if (this.#isBusy) return;
    this.#isBusy = true;
    inMicrotask(this.#goOnLater);
  }

  #holdBack(source: string): void {
    const highWater = source === this.#latest ? SOURCE_HIGH_WATER_BYTES : SHARED_HIGH_WATER_BYTES;
    if (this.#unwrittenOf(source) <= highWater) return;
    this.#held.set(source, highWater);
    this.#backpressure.hold(source);
  }

  /** Gives out what waits, until the next large message has begun. */
  #goOn(): void {
    while (this.#stream.writable) {
      const next = this.#waiting.take();
      if (next === undefined) {
        this.#isBusy = false;
        break;
      }
      this.#writer.send(next.item);
      if (next.bytes >= LARGE_BYTES) {
        this.#begun = next;
        this.#writer.flush(this.#onTaken);
        break;
      }
    }
    if (!this.#stream.writable) this.#waiting.clear();
    this.#relax();
  }

  /** Lets those run again of whom little waits by now. */
  #relax(): void {
    for (const [source, highWater] of this.#held) {
      if (this.#unwrittenOf(source) > highWater) continue;
      this.#held.delete(source);
      this.#backpressure.resume(source);
    }
    if (this.unwrittenBytes <= HIGH_WATER_BYTES / 2) this.#backpressure.resume();
  }

  #unwrittenOf(source: string): number {
    return this.#waiting.bytesOf(source) + (this.#begun?.source === source ? this.#begun.bytes : 0);
  }
}
