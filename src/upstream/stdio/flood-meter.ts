import type { ByteReader } from '../../io/byte-reader.js';
import { READ_MS, READ_MS_PER_BYTE, type WorkAccount } from '../../io/work-budget.js';
import type { Clock } from '../../timing/clock.js';

/** The most bytes for one read, at first and at most. */
const SMALL_READ_BYTES = 4 * 1024;
const LARGE_READ_BYTES = 256 * 1024;

/** What a line costs besides its bytes, in bytes that cost as much. */
const LINE_WEIGHT = 64;
/** What a byte costs that clients get unasked: it is written to them, and they have to read it. */
const RELAY_MS_PER_BYTE = 0.008 / 1024;
/** Many reads of so few bytes cost more than the bytes. */
const TINY_READ_BYTES = 512;

/**
 * Measures the work on what a server writes to stdout, and charges the part of it that answered nothing.
 *
 * A line that has not ended costs nothing while a request waits for its answer, which the line may become. Otherwise it is
 * charged as it comes.
 */
export class FloodMeter {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #work: Pick<WorkAccount, 'charge' | 'pausedMs'> | undefined;
  /** The weights of the lines of this read: those that answered a request, and the others. */
  #usefulWeight = 0;
  #idleWeight = 0;
  /** Bytes of this read that clients may get unasked. */
  #relayedBytes = 0;
  /** White space that was charged already, in bytes. */
  #blankBytes = 0;
  /** What was charged already of the line that has not ended, in bytes. */
  #chargedBytes = 0;

  constructor(clock: Pick<Clock, 'now'>, work: Pick<WorkAccount, 'charge' | 'pausedMs'> | undefined) {
    this.#clock = clock;
    this.#work = work;
  }

  get pausedMs(): number {
    return this.#work?.pausedMs ?? 0;
  }

  line(byteLength: number, isAnswer: boolean): void {
    if (isAnswer) this.#usefulWeight += byteLength + LINE_WEIGHT;
    else this.#idleWeight += Math.max(0, byteLength - this.#chargedBytes) + LINE_WEIGHT;
    this.#chargedBytes = 0;
  }

  /**
   * Of a line that has not ended, so many bytes came in this read. Nobody waits for it. If it is kept, clients get it when
   * it has ended.
   */
  unfinished(byteLength: number, isKept: boolean): void {
    this.#idleWeight += byteLength;
    this.#chargedBytes += byteLength;
    if (isKept) this.#relayedBytes += byteLength;
  }

  /** Clients may get so many bytes that they did not ask for. Call it before `line`. */
  relayed(byteLength: number): void {
    this.#relayedBytes += Math.max(0, byteLength - this.#chargedBytes);
  }

  /** A read is done. `blankBytes` is all white space so far; `readAt` is when the read began. */
  read(byteLength: number, blankBytes: number, readAt: number): void {
    const [useful, idle] = [this.#usefulWeight, this.#idleWeight + blankBytes - this.#blankBytes];
    this.#usefulWeight = 0;
    this.#idleWeight = 0;
    this.#blankBytes = blankBytes;
    const relayMs = this.#relayedBytes * RELAY_MS_PER_BYTE;
    this.#relayedBytes = 0;
    const isTiny = byteLength < TINY_READ_BYTES && useful === 0;
    if (idle === 0 && !isTiny) return;
    const part = idle === 0 ? 1 : idle / (idle + useful);
    this.#work?.charge((this.#clock.now() - readAt + READ_MS) * part + idle * READ_MS_PER_BYTE + relayMs);
  }

  /** Bytes were read and not looked at, because the server was given up. */
  ignored(byteLength: number): void {
    this.#work?.charge(READ_MS + byteLength * READ_MS_PER_BYTE);
  }
}

/** Passes bytes to a reader and charges all the work, because nothing on this pipe answers a call. */
export class MeteredReader implements ByteReader {
  readonly #reader: ByteReader;
  readonly #work: Pick<WorkAccount, 'charge'>;
  readonly #clock: Pick<Clock, 'now'>;

  constructor(reader: ByteReader, work: Pick<WorkAccount, 'charge'>, clock: Pick<Clock, 'now'>) {
    this.#reader = reader;
    this.#work = work;
    this.#clock = clock;
  }

  get freeSpace(): Uint8Array {
    return this.#reader.freeSpace;
  }

  filled(byteLength: number): void {
    const startedAt = this.#clock.now();
    this.#reader.filled(byteLength);
    this.#work.charge(this.#clock.now() - startedAt + READ_MS + byteLength * READ_MS_PER_BYTE);
  }
}

/**
 * Passes bytes to a reader, in pieces that grow with what they bring. Thousands of tiny lines in one piece would hold up
 * every other server, so the first pieces are small. After a piece that cost the account nothing, the next one may be
 * twice as large: it belongs to answers, or to a line that has not ended.
 */
export class PacedReader implements ByteReader {
  readonly #reader: ByteReader;
  readonly #work: Pick<WorkAccount, 'isTroubled' | 'isWaiting' | 'chargedMs'>;
  #maxBytes = SMALL_READ_BYTES;

  constructor(reader: ByteReader, work: Pick<WorkAccount, 'isTroubled' | 'isWaiting' | 'chargedMs'>) {
    this.#reader = reader;
    this.#work = work;
  }

  get freeSpace(): Uint8Array {
    const { freeSpace } = this.#reader;
    return freeSpace.length > this.#maxBytes ? freeSpace.subarray(0, this.#maxBytes) : freeSpace;
  }

  filled(byteLength: number): void {
    const { chargedMs } = this.#work;
    this.#reader.filled(byteLength);
    const isPaid = this.#work.chargedMs === chargedMs && !this.#work.isTroubled && !this.#work.isWaiting;
    // Twice what came: a pipe holds less than the largest read.
    const next = isPaid ? Math.min(byteLength * 2, LARGE_READ_BYTES) : 0;
    this.#maxBytes = Math.max(next, SMALL_READ_BYTES);
  }

  whenMoved(listener: () => void): void {
    this.#reader.whenMoved?.(listener);
  }
}
