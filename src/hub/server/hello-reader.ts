import { type ByteReader, copyInto } from '../../io/byte-reader.js';
import { isRecord } from '../../json/json-value.js';
import { type Hello, MAX_HELLO_BYTES, WIRE } from '../wire.js';

const NEWLINE = 0x0a;
const FIRST_BYTES = 8 * 1024;

/** Reads the hello of a connection, and then passes everything to the reader that takes over. */
export class HelloReader implements ByteReader {
  readonly #onHello: (hello: Hello | undefined) => void;
  #buffer = new Uint8Array(FIRST_BYTES);
  #filled = 0;
  #isOver = false;
  #next: ByteReader | undefined;
  #onMoved: () => void = () => {};

  /** `onHello` gets `undefined` if the first line is no hello, and must call `handOver` otherwise. */
  constructor(onHello: (hello: Hello | undefined) => void) {
    this.#onHello = onHello;
  }

  get freeSpace(): Uint8Array {
    return this.#next?.freeSpace ?? this.#buffer.subarray(this.#filled);
  }

  whenMoved(listener: () => void): void {
    this.#onMoved = listener;
    this.#next?.whenMoved?.(listener);
  }

  filled(byteLength: number): void {
    if (this.#next !== undefined) {
      this.#next.filled(byteLength);
      return;
    }
    const before = this.#filled;
    this.#filled += byteLength;
    if (this.#isOver) {
      // The bytes after the hello wait for the reader that takes over.
      if (this.#filled === this.#buffer.length) this.#grow();
      return;
    }
    const end = this.#buffer.subarray(0, this.#filled).indexOf(NEWLINE, before);
    if (end !== -1) this.#ended(end);
    else if (this.#filled >= MAX_HELLO_BYTES) this.#refuse();
    else if (this.#filled === this.#buffer.length) this.#grow();
  }

  /** Passes what was read after the hello, and everything that is read from now on, to `next`. */
  handOver(next: ByteReader): void {
    const rest = this.#buffer.subarray(0, this.#filled);
    this.#next = next;
    this.#buffer = new Uint8Array(0);
    next.whenMoved?.(this.#onMoved);
    copyInto(next, rest);
  }

  #ended(end: number): void {
    const hello = readHello(new TextDecoder().decode(this.#buffer.subarray(0, end)));
    this.#buffer.copyWithin(0, end + 1, this.#filled);
    this.#filled -= end + 1;
    this.#isOver = true;
    this.#onHello(hello);
  }

  #refuse(): void {
    this.#isOver = true;
    this.#filled = 0;
    this.#onHello(undefined);
  }

  #grow(): void {
    const larger = new Uint8Array(this.#buffer.length * 2);
    larger.set(this.#buffer);
    this.#buffer = larger;
  }
}

function readHello(line: string): Hello | undefined {
  let hello: unknown;
  try {
    hello = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isRecord(hello) || hello.wire !== WIRE) return undefined;
  const { token, role, version, pid, folder, environment, path, view, resumed } = hello;
  const isSound =
    typeof token === 'string' &&
    (role === 'client' || role === 'control') &&
    typeof version === 'string' &&
    typeof pid === 'number' &&
    typeof folder === 'string' &&
    typeof resumed === 'number' &&
    [path, view].every((optional) => optional === undefined || typeof optional === 'string') &&
    isRecord(environment) &&
    Object.values(environment).every((value) => typeof value === 'string');
  return isSound ? (hello as unknown as Hello) : undefined;
}
