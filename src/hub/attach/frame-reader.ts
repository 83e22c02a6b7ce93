import type { ByteReader } from '../../io/byte-reader.js';
import { FRAME, FRAME_HEADER_BYTES, kindOf, lengthOf } from '../wire.js';

/** Frames up to this size reach the client whole or not at all. Larger ones are passed on as they come. */
const BUFFER_BYTES = 64 * 1024;
/** Number of released buffers that are kept for later reads. */
const MAX_SPARE = 4;

/** Learns what the frames say. */
export interface FrameSink {
  /** The bytes for the client from one read. They are valid until the next read, or until they are given back: see `lend`. */
  write(bytes: Uint8Array): void;
  /** A frame for the client has begun that settles this line; 0 for a message that settles none. Returns whether to drop it. */
  message(line: number): boolean;
  /** A frame has come that is not for the client. */
  control(kind: number, line: number, payload: string): void;
}

/**
 * Cuts what a hub writes into frames. Reads into a buffer of its own and moves the payloads together there, so that what is
 * for the client is written in one go and nothing else is copied.
 */
export class FrameReader implements ByteReader {
  readonly #sink: FrameSink;
  #buffer: Buffer<ArrayBuffer> = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** The bytes at the beginning of the buffer that are the beginning of a frame. */
  #begun = 0;
  /** The bytes that are missing of a frame which is passed on as it comes, and whether it is dropped. */
  #missing = 0;
  #isDropped = false;
  #isLent = false;
  readonly #spare: Buffer<ArrayBuffer>[] = [];

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  get freeSpace(): Uint8Array {
    return this.#buffer.subarray(this.#begun);
  }

  /** Whether the client got the beginning of a message without its end. */
  get isWithinMessage(): boolean {
    return this.#missing > 0 && !this.#isDropped;
  }

  /** Whether a frame has begun and not ended. */
  get isWithinFrame(): boolean {
    return this.#missing > 0 || this.#begun > 0;
  }

  /** Reads the bytes that were written to `freeSpace`. */
  filled(byteLength: number): void {
    const end = this.#begun + byteLength;
    let read = 0;
    let written = 0;
    if (this.#missing > 0) {
      read = Math.min(this.#missing, end);
      this.#missing -= read;
      written = this.#isDropped ? 0 : read;
    }
    while (end - read >= FRAME_HEADER_BYTES) {
      const first = this.#buffer.readUInt32BE(read);
      const line = this.#buffer.readUInt32BE(read + 4);
      const length = lengthOf(first);
      const start = read + FRAME_HEADER_BYTES;
      const isWhole = end - start >= length;
      if (!isWhole && length <= BUFFER_BYTES - FRAME_HEADER_BYTES) break;
      if (kindOf(first) !== FRAME.message) {
        // Frames of control are small. A newline ends their payload, too.
        this.#sink.control(kindOf(first), line, this.#buffer.toString('utf8', start, start + length - 1));
        read = start + length;
        continue;
      }
      const isDropped = this.#sink.message(line) || length <= 1;
      const next = Math.min(start + length, end);
      if (!isDropped) {
        this.#buffer.copyWithin(written, start, next);
        written += next - start;
      }
      this.#missing = start + length - next;
      this.#isDropped = isDropped;
      read = next;
    }
    const rest = end - read;
    if (written > 0) this.#sink.write(this.#buffer.subarray(0, written));
    if (this.#isLent) {
      const next = this.#spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
      next.set(this.#buffer.subarray(read, end));
      this.#buffer = next;
      this.#isLent = false;
    } else if (rest > 0 && read > 0) {
      this.#buffer.copyWithin(0, read, end);
    }
    this.#begun = rest;
  }

  /**
   * The bytes of this `write` stay in use: the next ones go to other memory. Returns what to call when they are not in use
   * any more.
   */
  lend(): () => void {
    this.#isLent = true;
    const lent = this.#buffer;
    return () => {
      if (this.#spare.length < MAX_SPARE) this.#spare.push(lent);
    };
  }
}
