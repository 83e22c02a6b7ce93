import type { Writable } from 'node:stream';
import { copySpliced, type SplicedMessage, splicedLength, visitPieces } from '../../json/splice.js';
import type { MessageSink } from '../../jsonrpc/message.js';

const SLAB_BYTES = 64 * 1024;
/** Messages from this size on are passed to the stream in pieces instead of being copied. */
export const LARGE_BYTES = 16 * 1024;
/**
 * Small messages are written before the deferred flush once 20 of them have 2 KiB together, or any number has 8 KiB. So the
 * other side can start on them early.
 */
const FULL_MESSAGES = 20;
const FULL_BYTES = 2 * 1024;
const MAX_BYTES = 8 * 1024;
const NEWLINE = Buffer.from('\n');

/** Runs a task after the code that is running now. */
type Defer = (task: () => void) => void;

/** Runs a task in a microtask. `queueMicrotask` makes an async resource each time, which costs more than the task. */
export const inMicrotask: Defer = (task) => void SETTLED.then(task);
const SETTLED = Promise.resolve();

/**
 * Writes messages to a stream, one a line.
 *
 * All messages until the deferred flush are one write, because a write is a system call and costs more than the rest of the
 * work on a small message. By default, one write has the messages that one chunk of input causes. With `setImmediate`, for many
 * connections, one write has the messages of one turn of the event loop. The first of many messages are written before the
 * rest is handled, so that both sides work at the same time. Errors of the stream are left to its owner.
 *
 * The writer counts the bytes of all messages (`sentBytes`), and the bytes that the stream may have handed to the operating
 * system (`close`). So a message whose bytes cannot have reached the other side is known to be unsent.
 */
export class LineWriter implements MessageSink {
  readonly #stream: Writable;
  readonly #defer: Defer;
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  /** End of the bytes in the slab that were passed to the stream. */
  #flushed = 0;
  /** End of the messages that were copied into the slab. */
  #filled = 0;
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #leases: NonNullable<SplicedMessage['lease']>[] = [];
  #unwritten = 0;
  #isFlushDue = false;
  #sentBytes = 0;
  /** Sent bytes that were passed to the stream. */
  #passedBytes = 0;
  /** Passed bytes that the stream may have handed to the system. */
  #takenBytes = 0;
  readonly #flushLater = (): void => this.flush();

  /**
   * When Node calls back for a write, it has already handed the next buffered writes to the system. After a failure it hands
   * over nothing more, but a destroyed socket reports no error for the write that it cut off.
   */
  readonly #onWritten = (error?: Error | null): void => {
    if (!error && !this.#stream.destroyed) this.#takenBytes = this.#passedBytes;
  };

  constructor(stream: Writable, defer: Defer = inMicrotask) {
    this.#stream = stream;
    this.#defer = defer;
  }

  get unwrittenBytes(): number {
    return this.#stream.writableLength + this.#pieceBytes + (this.#filled - this.#flushed);
  }

  /** Bytes of all messages that were ever sent here. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  send(message: SplicedMessage): void {
    const length = splicedLength(message) + 1;
    this.#sentBytes += length;
    if (length < LARGE_BYTES) this.#copy(message, length);
    else this.#reference(message, length);
    this.#unwritten += 1;
    const bytes = this.#filled - this.#flushed;
    if (bytes >= FULL_BYTES && (this.#unwritten >= FULL_MESSAGES || bytes >= MAX_BYTES)) this.#write();
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    this.#defer(this.#flushLater);
  }

  /**
   * Passes everything to the stream now. Does nothing if the stream has ended. Calls `onTaken` when the stream has written
   * the bytes or has failed. Never calls it if there is nothing to pass on.
   */
  flush(onTaken?: () => void): void {
    this.#isFlushDue = false;
    this.#write(onTaken);
  }

  /**
   * Drops the bytes that the system has not taken. Returns how many of `sentBytes` may have reached the other side. A message
   * that begins after these bytes never reaches it.
   */
  close(): number {
    this.#dropPieces();
    // Destroys the stream, because it would still write its buffer.
    if (this.#takenBytes < this.#passedBytes) this.#stream.destroy();
    return this.#takenBytes;
  }

  #write(onTaken?: () => void): void {
    const stream = this.#stream;
    if (!stream.writable) {
      this.#dropPieces();
      return;
    }
    this.#endPiece();
    this.#unwritten = 0;
    const pieces = this.#pieces;
    const leases = this.#leases;
    const last = pieces.pop();
    if (last === undefined) return;
    this.#pieces = [];
    this.#pieceBytes = 0;
    if (leases.length > 0) this.#leases = [];
    const wasIdle = stream.writableLength === 0;
    if (pieces.length > 0) stream.cork();
    for (const piece of pieces) stream.write(piece);
    stream.write(
      last,
      leases.length === 0 && onTaken === undefined
        ? this.#onWritten
        : (error) => {
            for (const lease of leases) lease.release();
            this.#onWritten(error);
            onTaken?.();
          },
    );
    if (pieces.length > 0) stream.uncork();
    this.#passedBytes = this.#sentBytes;
    // A write that fails at once, because the reader has gone, has passed on nothing.
    if (wasIdle && !stream.errored) this.#takenBytes = this.#passedBytes;
  }

  #dropPieces(): void {
    this.#flushed = this.#filled;
    this.#pieces = [];
    this.#pieceBytes = 0;
    for (const lease of this.#leases.splice(0)) lease.release();
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
