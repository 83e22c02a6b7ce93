import { type ByteReader, copyInto } from '../../wire/io/byte-reader.js';

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const BOM = [0xef, 0xbb, 0xbf] as const;

/** Limit beyond which the name of a field is cut, in bytes, because every known name (such as `event`) is shorter. */
const MAX_NAME_BYTES = 8;
/** Longest value of a field, except for the data of messages, in bytes. A longer value is cut, so a server cannot fill memory with it. */
const MAX_VALUE_BYTES = 8 * 1024;

export interface EventStreamOptions {
  /** Receives the data of each event as one line that ends in 0x0A. Newlines inside the data become spaces. */
  readonly messages: ByteReader;
  /** An event named `endpoint` came. `url` is its data, the URL for POSTs (revision 2024-11-05). */
  readonly onEndpoint?: (url: string) => void;
}

/**
 * Reads a stream of server-sent events (HTML standard, section 9.2.6), cut anywhere.
 *
 * The data is not collected here. It goes on to the reader of messages as it comes, and that reader bounds it.
 */
export class EventStreamReader {
  readonly #options: EventStreamOptions;
  /** Bytes of the field that is being read: its name, then its value. */
  #name = '';
  #value: number[] = [];
  #part: 'name' | 'separator' | 'value' = 'name';
  #isAfterCarriageReturn = false;
  #bomAt = 0;
  #event = '';
  /** Whether the event has data that is not empty. Streams begin with an empty event that only has an id. */
  #hasData = false;
  #lastEventId: string | undefined;
  #retryMs: number | undefined;

  constructor(options: EventStreamOptions) {
    this.#options = options;
  }

  /** The id of the last event that had one, because the stream can be resumed after this event. */
  get lastEventId(): string | undefined {
    return this.#lastEventId;
  }

  /** Pause that the server wants before a reconnection, in milliseconds. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  push(chunk: Uint8Array): void {
    let at = this.#skipBom(chunk);
    while (at < chunk.length) at = this.#part === 'value' ? this.#readValue(chunk, at) : this.#readByte(chunk, at);
  }

  #skipBom(chunk: Uint8Array): number {
    let at = 0;
    while (this.#bomAt < BOM.length && at < chunk.length) {
      if (chunk[at] !== BOM[this.#bomAt]) {
        this.#bomAt = BOM.length;
        return at;
      }
      at += 1;
      this.#bomAt += 1;
    }
    return at;
  }

  #readByte(chunk: Uint8Array, at: number): number {
    const byte = chunk[at] ?? 0;
    if (this.#isAfterCarriageReturn) {
      this.#isAfterCarriageReturn = false;
      if (byte === LF) return at + 1;
    }
    if (byte === LF || byte === CR) {
      this.#endLine(byte);
      return at + 1;
    }
    if (this.#part === 'separator') {
      this.#beginValue();
      return byte === SPACE ? at + 1 : at;
    }
    if (byte === COLON) this.#part = 'separator';
    else if (this.#name.length <= MAX_NAME_BYTES) this.#name += String.fromCharCode(byte);
    return at + 1;
  }

  #beginValue(): void {
    this.#part = 'value';
    if (this.#hasData && this.#isMessageData()) copyInto(this.#options.messages, Uint8Array.of(SPACE));
  }

  #readValue(chunk: Uint8Array, from: number): number {
    const lineFeed = chunk.indexOf(LF, from);
    const line = chunk.subarray(from, lineFeed < 0 ? chunk.length : lineFeed);
    const carriageReturn = line.indexOf(CR);
    const piece = carriageReturn < 0 ? line : line.subarray(0, carriageReturn);
    const at = from + piece.length;
    if (piece.length > 0) {
      if (this.#isMessageData()) {
        copyInto(this.#options.messages, piece);
        this.#hasData = true;
      } else for (const byte of piece.subarray(0, MAX_VALUE_BYTES - this.#value.length)) this.#value.push(byte);
    }
    const end = chunk[at];
    if (end === undefined) return at;
    this.#endLine(end);
    return at + 1;
  }

  /** An event of another type than `message` must name its type before its data, as all known servers do. */
  #isMessageData(): boolean {
    return this.#name === 'data' && (this.#event === '' || this.#event === 'message');
  }

  #endLine(end: number): void {
    this.#isAfterCarriageReturn = end === CR;
    const isBlank = this.#part === 'name' && this.#name === '';
    if (isBlank) this.#endEvent();
    else this.#endField(Buffer.from(this.#value).toString());
    this.#part = 'name';
    this.#name = '';
    this.#value = [];
  }

  #endField(value: string): void {
    switch (this.#name) {
      case 'event':
        this.#event = value;
        return;
      case 'id':
        if (!value.includes('\0')) this.#lastEventId = value;
        return;
      case 'retry':
        if (/^\d{1,9}$/.test(value)) this.#retryMs = Number(value);
        return;
      case 'data':
        if (this.#event === 'endpoint') this.#options.onEndpoint?.(value);
    }
  }

  #endEvent(): void {
    if (this.#hasData) copyInto(this.#options.messages, Uint8Array.of(LF));
    this.#hasData = false;
    this.#event = '';
  }
}
