/*
 * Messages between an attach process and a hub over the hub's socket.
 *
 * The attach process writes one line, the hello, and the hub answers with one line. After that, bytes from the client
 * follow unchanged, and the hub writes frames: eight bytes of header, then the payload. The header is the length of the
 * payload in bytes (28 bits) with the kind of the frame (4 bits above them), and the number of the client's line that the
 * frame is about, both as big-endian integers of 32 bits. Lines that hold nothing but white space have no number.
 *
 * A process of another version may be at the other end. A change that an older process would not understand needs another
 * `WIRE`, which keeps the two apart.
 */

import { type ByteReader, copyInto } from '../io/byte-reader.js';

/** The number of this protocol. Hubs with different numbers have different folders. */
export const WIRE = 1;

/** The first line of an attach process. */
export interface Hello {
  readonly wire: number;
  readonly token: string;
  /** Purpose of the connection: a client's messages, or commands of a person. */
  readonly role: 'client' | 'control';
  readonly version: string;
  readonly pid: number;
  readonly folder: string;
  /** The variables that the configuration names. */
  readonly environment: Readonly<Record<string, string>>;
  /** Search path for programs, which the hub uses, too. Older processes do not send it. */
  readonly path?: string;
  /** The view of the configuration that the client asks for; '' asks for everything. Absent if it asks for nothing. */
  readonly view?: string;
  /** Number of hubs that served this client before. More than 0: the client's handshake is replayed. */
  readonly resumed: number;
}

/** The first line of a hub. */
export type Welcome =
  | { readonly ok: true; readonly version: string; readonly pid: number }
  | { readonly ok: false; readonly because: Refusal };

/** Reason for which a hub does not take a client. */
export type Refusal =
  /** The configuration does not say `gateway: { hub: auto }`. */
  | 'off'
  /** The hub has as many clients as it may have. */
  | 'full'
  /** The hub is about to end: look for its successor. */
  | 'ending'
  | 'token'
  | 'malformed';

export const FRAME_HEADER_BYTES = 8;

export const FRAME = {
  /** A message for the client, with its newline. It settles the line if that is not 0. A lone newline only settles. */
  message: 0,
  /** The payload names a slot: the line must be sent again to the next hub. Line 0 empties the slot. */
  keep: 1,
  /** Another hub serves from now on: attach to it as soon as nothing is in flight. */
  moved: 2,
  /** The hub has closed the session: the payload is a `Closing`. */
  closed: 3,
} as const;

/** Reason for which a hub closes the session of a client that is there. */
export type Closing =
  /** A person has stopped the hub. The next one is started when the client needs it. */
  | 'stopped'
  /** The configuration does not want a hub. */
  | 'off'
  /** The client has closed its end, and its last requests were not answered in time. */
  | 'drained';

export type FrameKind = (typeof FRAME)[keyof typeof FRAME];

const LENGTH_BITS = 28;
const MAX_LENGTH = 2 ** LENGTH_BITS - 1;

/** Writes the header of a frame to `target` from `at` on. Throws a `RangeError` for a payload of 256 MiB or more. */
export function writeFrameHeader(target: Buffer, at: number, kind: FrameKind, line: number, length: number): void {
  if (length > MAX_LENGTH) throw new RangeError(`A frame of ${length} bytes is too large`);
  target.writeUInt32BE(kind * 2 ** LENGTH_BITS + length, at);
  target.writeUInt32BE(line, at + 4);
}

/** The kind of a frame, given the first 32 bits of its header. */
export function kindOf(first: number): number {
  return first >>> LENGTH_BITS;
}

export function lengthOf(first: number): number {
  return first & MAX_LENGTH;
}

/** Frames up to this size reach the client whole or not at all. Larger ones are passed on as they come. */
const BUFFER_BYTES = 64 * 1024;

/** Learns what the frames say. */
export interface FrameSink {
  /** The bytes for the client from one read. They are valid until the next read, unless they are lent: see `lend`. */
  write(bytes: Uint8Array): void;
  /** A frame for the client has begun that settles this line; 0 for a message that settles none. Returns whether to drop it. */
  message(line: number): boolean;
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
      const next = Buffer.allocUnsafeSlow(BUFFER_BYTES);
      next.set(this.#buffer.subarray(read, end));
      this.#buffer = next;
      this.#isLent = false;
    } else if (rest > 0 && read > 0) {
      this.#buffer.copyWithin(0, read, end);
    }
    this.#begun = rest;
  }

  /** Leaves the bytes of this `write` as they are, because they stay in use. The next ones go to other memory. */
  lend(): void {
    this.#isLent = true;
  }
}

/** Line numbers start again after this one, since a header has 32 bits for them. 0 is no line. */
const LAST_LINE = 2 ** 32 - 1;

export function lineAfter(line: number): number {
  return line === LAST_LINE ? 1 : line + 1;
}

/** The size limit of a first line: a thousand variables of ordinary length. */
export const MAX_HELLO_BYTES = 256 * 1024;
const FIRST_BYTES = 8 * 1024;
const NEWLINE = 0x0a;

/** Reads the first line of a connection, and then passes everything to the reader that takes over. */
export class FirstLineReader implements ByteReader {
  readonly #onLine: (line: string | undefined) => void;
  #buffer = new Uint8Array(FIRST_BYTES);
  #filled = 0;
  #isOver = false;
  #next: ByteReader | undefined;
  /** The memory that was last handed out, if it is ours. */
  #space: Uint8Array | undefined;
  #onMoved: () => void = () => {};

  /** `onLine` gets `undefined` if the line is too long. */
  constructor(onLine: (line: string | undefined) => void) {
    this.#onLine = onLine;
  }

  get freeSpace(): Uint8Array {
    this.#space = this.#next === undefined ? this.#buffer.subarray(this.#filled) : undefined;
    return this.#next?.freeSpace ?? this.#buffer.subarray(this.#filled);
  }

  whenMoved(listener: () => void): void {
    this.#onMoved = listener;
    this.#next?.whenMoved?.(listener);
  }

  filled(byteLength: number): void {
    if (this.#next !== undefined) {
      // Node asks for memory ahead, so the first bytes after the change may be in ours.
      if (this.#space === undefined) this.#next.filled(byteLength);
      else copyInto(this.#next, this.#space.subarray(0, byteLength));
      return;
    }
    const before = this.#filled;
    this.#filled += byteLength;
    const end = this.#isOver ? -1 : this.#buffer.subarray(0, this.#filled).indexOf(NEWLINE, before);
    if (end !== -1) {
      const line = new TextDecoder().decode(this.#buffer.subarray(0, end));
      this.#buffer.copyWithin(0, end + 1, this.#filled);
      this.#filled -= end + 1;
      this.#end(line);
    } else if (!this.#isOver && this.#filled >= MAX_HELLO_BYTES) {
      this.#filled = 0;
      this.#end(undefined);
    } else if (this.#filled === this.#buffer.length) {
      const larger = new Uint8Array(this.#buffer.length * 2);
      larger.set(this.#buffer);
      this.#buffer = larger;
    }
  }

  /** Passes the bytes after the first line, and everything that is read from now on, to `next`. */
  handOver(next: ByteReader): void {
    const rest = this.#buffer.subarray(0, this.#filled);
    this.#next = next;
    this.#buffer = new Uint8Array(0);
    next.whenMoved?.(this.#onMoved);
    copyInto(next, rest);
  }

  #end(line: string | undefined): void {
    this.#isOver = true;
    this.#onLine(line);
  }
}
