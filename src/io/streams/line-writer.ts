import type { Writable } from 'node:stream';
import { copySpliced, type SplicedMessage, splicedLength, visitPieces } from '../../json/splice.js';
import type { MessageSink } from '../../jsonrpc/message.js';

const SLAB_BYTES = 64 * 1024;
/** Messages from this size on are handed to the stream in pieces instead of being copied. */
export const LARGE_BYTES = 16 * 1024;
/** When small messages have come to this, they are written at once: the other side works on them meanwhile. */
const FULL_BYTES = 2 * 1024;
const NEWLINE = Buffer.from('\n');

/** Runs a task soon. */
type Defer = (task: () => void) => void;

/** A microtask. Node's own `queueMicrotask` makes an async resource for each, which costs more than the task. */
export const inMicrotask: Defer = (task) => void SETTLED.then(task);
const SETTLED = Promise.resolve();

/**
 * Writes messages to a stream, one a line.
 *
 * What comes until the deferred flush goes out in one write: a write is a system call, and costs more than everything
 * else that happens to a small message. By default that is what one chunk of input gives rise to; where messages come
 * from many connections, `setImmediate` makes it what was read from all of them. Of many messages, those that have come
 * first go out before the rest is looked at, or the two sides would work in turns. Errors of the stream are its owner's
 * to hear.
 */
export class LineWriter implements MessageSink {
  readonly #stream: Writable;
  readonly #defer: Defer;
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  /** Of the slab, what was given to the stream already and what was filled since. */
  #flushed = 0;
  #filled = 0;
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  /** Of messages among the pieces: to be called when those are written. */
  #onWritten: (() => void)[] = [];
  #isFlushDue = false;
  readonly #flushLater = (): void => this.flush();

  constructor(stream: Writable, defer: Defer = inMicrotask) {
    this.#stream = stream;
    this.#defer = defer;
  }

  get unwrittenBytes(): number {
    return this.#stream.writableLength + this.#pieceBytes + (this.#filled - this.#flushed);
  }

  send(message: SplicedMessage): void {
    const length = splicedLength(message) + 1;
    if (length < LARGE_BYTES) this.#copy(message, length);
    else this.#reference(message, length);
    if (this.#filled - this.#flushed >= FULL_BYTES) this.#write();
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    this.#defer(this.#flushLater);
  }

  /**
   * Gives everything to the stream now. A stream that has ended takes nothing more, and nothing is said. `onTaken` is
   * called when the other side has taken all of it, or it is known that it will not; never if there is nothing to be
   * given, as after small messages that were written as they came.
   */
  flush(onTaken?: () => void): void {
    this.#isFlushDue = false;
    this.#write(onTaken);
  }

  #write(onTaken?: () => void): void {
    this.#endPiece();
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#pieceBytes = 0;
    const whenWritten = this.#whenWritten(onTaken);
    if (!this.#stream.writable) return;
    const last = pieces.pop();
    if (last === undefined) return;
    if (pieces.length > 0) this.#stream.cork();
    for (const piece of pieces) this.#stream.write(piece);
    this.#stream.write(last, whenWritten);
    if (pieces.length > 0) this.#stream.uncork();
  }

  #whenWritten(onTaken: (() => void) | undefined): (() => void) | undefined {
    if (this.#onWritten.length === 0) return onTaken;
    const all = this.#onWritten;
    this.#onWritten = [];
    return () => {
      for (const onWritten of all) onWritten();
      onTaken?.();
    };
  }

  #copy(message: SplicedMessage, length: number): void {
    if (this.#filled + length > SLAB_BYTES) this.#nextSlab();
    const end = copySpliced(message, this.#slab, this.#filled);
    this.#slab[end] = 0x0a;
    this.#filled = end + 1;
    message.onWritten?.();
  }

  #reference(message: SplicedMessage, length: number): void {
    this.#endPiece();
    visitPieces(message, (piece) => this.#pieces.push(piece));
    this.#pieces.push(NEWLINE);
    this.#pieceBytes += length;
    if (message.onWritten !== undefined) this.#onWritten.push(message.onWritten);
  }

  #endPiece(): void {
    if (this.#filled === this.#flushed) return;
    this.#pieces.push(this.#slab.subarray(this.#flushed, this.#filled));
    this.#pieceBytes += this.#filled - this.#flushed;
    this.#flushed = this.#filled;
  }

  /** The stream may still hold the old slab; it goes when the stream is done with it. */
  #nextSlab(): void {
    this.#endPiece();
    this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    this.#flushed = 0;
    this.#filled = 0;
  }
}
