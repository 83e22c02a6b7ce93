/*
 * The room of the hub, the background process that all clients of one configuration share. `attach` is the small process that each client
 * starts, `server` the hub, `hub-folder.ts` how the two find each other. `app` and `cli` use it.
 *
 * Begin here, at the messages between an attach process and a hub over the hub's socket.
 *
 * The attach process writes a line with a nonce, and the hub answers with a line that proves that it knows the token. The attach process
 * writes a second line, the hello, with a proof of its own, and the hub answers with a line, the welcome. Then the attach process writes
 * the bytes of the client, and after the last one the byte `END_OF_INPUT`. The hub writes frames. A frame is a header of eight bytes and a
 * payload. The header consists of two big-endian integers of 32 bits. The first has the kind of the frame (upper 4 bits) and the length of
 * the payload in bytes (lower 28 bits). The second is the number of the client's line that the frame is about. Lines of white space have no
 * number. The hub *settles* a line with the answer to it, or with an empty message if the line gets no answer.
 *
 * A process of another version may be at the other end. A change that an older process would not understand needs another `WIRE`, because
 * processes with different numbers do not meet.
 */

import { type ByteReader, copyInto } from '../wire/io/byte-reader.js';

/** The number of this protocol. Hubs with different numbers have different folders. */
export const WIRE = 2;

/** The first line of an attach process. */
export interface HubChallenge {
  readonly wire: number;
  readonly nonce: string;
}

/** The first line of a hub. */
export interface Proof {
  readonly nonce: string;
  readonly proof: string;
}

/** The second line of an attach process. */
export interface Hello extends ClientHello {
  readonly wire: number;
  /** Proves that the attach process knows the token of the hub. */
  readonly proof: string;
}

/** The facts of a client about itself, without those about one connection. */
export interface ClientHello {
  /** Purpose of the connection: the messages of a client, or the commands of a user. */
  readonly role: 'client' | 'control';
  readonly version: string;
  readonly pid: number;
  /** The working folder of the client; empty for the role `control`. */
  readonly folder: string;
  /** The client's values of the variables that the configuration names. */
  readonly environment: Readonly<Record<string, string>>;
  /** The client's `PATH`, whose folders the hub adds to its own `PATH`. Older processes do not send it. */
  readonly path?: string;
  /** Name of the view that the client requests; '' for all servers. Absent if the configuration chooses the view. */
  readonly view?: string;
  /** Number of hubs that served this client before. If it is more than 0, the attach process replays the client's handshake. */
  readonly resumed: number;
}

/** The second line of a hub. */
export type Welcome =
  | { readonly ok: true; readonly version: string; readonly pid: number }
  | { readonly ok: false; readonly because: HubRefusal };

export type HubRefusal =
  /** The configuration turns the hub off. */
  | 'off'
  /** The hub has as many clients as it may have. */
  | 'full'
  /** The hub is about to end. The client has to find its successor. */
  | 'ending'
  /** The proof of the client is wrong. */
  | 'token'
  /** The line of the client is none of this protocol. */
  | 'malformed';

/**
 * Follows the last byte of a client, because a pipe of Windows cannot be closed in one direction. This byte is not part of any text in
 * UTF-8. A client that sends it nevertheless has sent a malformed message, and it becomes `NOT_THE_END`, which is as malformed.
 */
export const END_OF_INPUT = 0xff;
const NOT_THE_END = 0xfe;

/** Replaces each byte `END_OF_INPUT` in the bytes of a client. */
export function withoutMark(bytes: Uint8Array): Uint8Array {
  for (let at = bytes.indexOf(END_OF_INPUT); at !== -1; at = bytes.indexOf(END_OF_INPUT, at)) bytes[at] = NOT_THE_END;
  return bytes;
}

/** Passes the bytes of a client to a reader, up to `END_OF_INPUT`. */
export class MarkedInput implements ByteReader {
  readonly #reader: ByteReader;
  readonly #onEnd: () => void;

  constructor(reader: ByteReader, onEnd: () => void) {
    this.#reader = reader;
    this.#onEnd = onEnd;
  }

  get freeSpace(): Uint8Array {
    return this.#reader.freeSpace;
  }

  whenMoved(listener: () => void): void {
    this.#reader.whenMoved?.(listener);
  }

  filled(byteLength: number): void {
    const hasEnded = this.#reader.freeSpace[byteLength - 1] === END_OF_INPUT;
    const left = hasEnded ? byteLength - 1 : byteLength;
    if (left > 0) this.#reader.filled(left);
    if (hasEnded) this.#onEnd();
  }
}

export const FRAME_HEADER_BYTES = 8;

export const FRAME = {
  /** A message for the client, with its newline, which settles the line unless that is 0. A lone newline only settles. */
  message: 0,
  /** The line must be sent again to the next hub, in the slot that the payload names. Line 0 empties the slot. */
  keep: 1,
  /** Another hub serves from now on. The client attaches to it as soon as nothing is in flight. */
  moved: 2,
  /** The hub has closed the session. The payload is a `Closing`. */
  closed: 3,
} as const;

/** Reason for which a hub closes the session of a connected client. */
export type Closing =
  /** A user has stopped the hub. The client starts the next one when it has a message to send. */
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
export function kindOfFrame(first: number): number {
  return first >>> LENGTH_BITS;
}

export function lengthOfFrame(first: number): number {
  return first & MAX_LENGTH;
}

/** Frames up to this size reach the client whole or not at all. The parts of larger frames are passed on as they come. */
const BUFFER_BYTES = 64 * 1024;

export interface FrameSink {
  /** The bytes for the client from one read. They are valid until the next read, unless `FrameReader.lend` is called. */
  write(bytes: Uint8Array): void;
  /** A message for the client begins, and settles the line `line` if that is not 0. Returns whether to drop the message. */
  message(line: number): boolean;
  control(kind: number, line: number, payload: string): void;
}

/**
 * Cuts the bytes of a hub into frames. Reads into a buffer of its own, and moves the payloads together there, so that one
 * write passes all bytes for the client on.
 */
export class FrameReader implements ByteReader {
  readonly #sink: FrameSink;
  #buffer: Buffer<ArrayBuffer> = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  /** Number of bytes of an unfinished frame at the beginning of the buffer. */
  #begun = 0;
  /** Number of bytes that have not come yet, of a frame that is passed on as it comes. */
  #missing = 0;
  #isDropped = false;
  #isLent = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  get freeSpace(): Uint8Array {
    return this.#buffer.subarray(this.#begun);
  }

  /** Whether the client has the beginning of a message whose end has not come. */
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
      const length = lengthOfFrame(first);
      const start = read + FRAME_HEADER_BYTES;
      const isWhole = end - start >= length;
      if (!isWhole && length <= BUFFER_BYTES - FRAME_HEADER_BYTES) break;
      if (kindOfFrame(first) !== FRAME.message) {
        // Control frames are small, so they are whole. Their payload also ends with a newline.
        this.#sink.control(kindOfFrame(first), line, this.#buffer.toString('utf8', start, start + length - 1));
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

  /** Call this within `write` if the bytes stay in use. The reader then continues in other memory. */
  lend(): void {
    this.#isLent = true;
  }
}

/** The largest line number, because a header has 32 bits for it. After it comes 1, because 0 means no line. */
const LAST_LINE = 2 ** 32 - 1;

export function lineAfter(line: number): number {
  return line === LAST_LINE ? 1 : line + 1;
}

/** Size limit of a first line. Enough for a thousand variables of ordinary length. */
export const MAX_HELLO_BYTES = 256 * 1024;
const FIRST_BYTES = 8 * 1024;
const NEWLINE = 0x0a;

/** Reads the first line of a connection, and then passes all bytes to the next reader. */
export class FirstLineReader implements ByteReader {
  readonly #onLine: (line: string | undefined) => void;
  #buffer = new Uint8Array(FIRST_BYTES);
  #filled = 0;
  #isOver = false;
  #next: ByteReader | undefined;
  /** The latest result of `freeSpace` if it is memory of this reader, and not of the next one. */
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
      // Node requests memory ahead, so the first bytes after the change may be in the memory of this reader.
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
