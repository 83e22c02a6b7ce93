import type { Writable } from 'node:stream';
import { copySpliced, type SplicedMessage, splicedLength, visitPieces } from '../../json/splice.js';
import type { MessageSink } from '../../jsonrpc/message.js';

const SLAB_BYTES = 64 * 1024;
/** Messages from this size on are passed to the stream in pieces instead of being copied. */
export const LARGE_BYTES = 16 * 1024;
/** Small messages are written at once when they add up to this, so that the other side can work on them meanwhile. */
const FULL_BYTES = 2 * 1024;
const NEWLINE = Buffer.from('\n');

/** Runs a task soon. */
type Defer = (task: () => void) => void;

/**
 * Runs a task in a microtask. Node's own `queueMicrotask` makes an async resource each time, which costs more than the
 * task.
 */
export const inMicrotask: Defer = (task) => void SETTLED.then(task);
const SETTLED = Promise.resolve();

/**
 * Writes messages to a stream, one a line.
 *
 * All messages until the deferred flush leave in one write, because a write is a system call and costs more than
 * everything else that happens to a small message. By default, that is the messages that one chunk of input causes;
 * with `setImmediate`, where messages come from many connections, it is those that one turn of the event loop reads.
 * The first of many messages leave before the rest is handled, so that both sides work at the same time. Errors of the
 * stream are left to its owner.
 */
export class LineWriter implements MessageSink {
  readonly #stream: Writable;
  readonly #defer: Defer;
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  /** The end of what was passed to the stream, and of what was copied, in the slab. */
  #flushed = 0;
  #filled = 0;
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  /** Of the messages among the pieces. */
  #leases: NonNullable<SplicedMessage['lease']>[] = [];
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
   * Passes everything to the stream now. Does nothing if the stream has ended. Calls `onTaken` when the other side has
   * read all of it, or is known not to; never calls it if there is nothing to pass on.
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
    const leases = this.#leases;
    if (leases.length > 0) this.#leases = [];
    if (!this.#stream.writable) {
      for (const lease of leases) lease.release();
      return;
    }
    const last = pieces.pop();
    if (last === undefined) return;
    if (pieces.length > 0) this.#stream.cork();
    for (const piece of pieces) this.#stream.write(piece);
    this.#stream.write(
      last,
      leases.length === 0
        ? onTaken
        : () => {
            for (const lease of leases) lease.release();
            onTaken?.();
          },
    );
    if (pieces.length > 0) this.#stream.uncork();
  }

  #copy(message: SplicedMessage, length: number): void {
    if (this.#filled + length > SLAB_BYTES) this.#nextSlab();
    const end = copySpliced(message, this.#slab, this.#filled);
    this.#slab[end] = 0x0a;
    this.#filled = end + 1;
    message.lease?.release();
  }

  #reference(message: SplicedMessage, length: number): void {
    this.#endPiece();
    visitPieces(message, (piece) => this.#pieces.push(piece));
    this.#pieces.push(NEWLINE);
    this.#pieceBytes += length;
    if (message.lease !== undefined) this.#leases.push(message.lease);
  }

  #endPiece(): void {
    if (this.#filled === this.#flushed) return;
    this.#pieces.push(this.#slab.subarray(this.#flushed, this.#filled));
    this.#pieceBytes += this.#filled - this.#flushed;
    this.#flushed = this.#filled;
  }

  /** Allocates a new slab, because the stream may still use the old one. */
  #nextSlab(): void {
    this.#endPiece();
    this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    this.#flushed = 0;
    this.#filled = 0;
  }
}
