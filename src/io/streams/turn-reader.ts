import type { ByteReader } from '../byte-reader.js';

/** After so much work on one read, everybody else has a turn, in milliseconds. */
const TURN_MS = 1;
/** Reads become no smaller than this, in bytes. */
const MIN_READ_BYTES = 4 * 1024;
/** Fewer bytes cause little work, and reading the clock would add to each call. */
const MIN_BYTES = 1024;

export interface TurnReaderOptions {
  /** Where the bytes come from. */
  readonly stream: () => { pause(): void; resume(): void };
  readonly clock: { now(): number };
  /** Runs a task when everything else that is ready has had its turn. */
  readonly nextTurn: (task: () => void) => void;
}

/**
 * Passes bytes to a reader, and reads nothing more in this turn of the event loop after a read that took long. The next reads
 * are smaller, until they take less time.
 *
 * In one turn, the system hands over up to 32 reads of a stream that is never empty, each with thousands of short messages.
 * So one client that writes without a pause would hold up all others for seconds. With turns, they wait for one small read.
 */
export class TurnReader implements ByteReader {
  readonly #reader: ByteReader;
  readonly #options: TurnReaderOptions;
  #waitsForTurn = false;
  #isPaused = false;
  /** Limit of the next read, in bytes. */
  #readBytes = Number.POSITIVE_INFINITY;

  constructor(reader: ByteReader, options: TurnReaderOptions) {
    this.#reader = reader;
    this.#options = options;
  }

  get freeSpace(): Uint8Array {
    const space = this.#reader.freeSpace;
    return space.length <= this.#readBytes ? space : space.subarray(0, this.#readBytes);
  }

  whenMoved(listener: () => void): void {
    this.#reader.whenMoved?.(listener);
  }

  filled(byteLength: number): void {
    if (byteLength < MIN_BYTES) {
      this.#reader.filled(byteLength);
      return;
    }
    const { clock, stream, nextTurn } = this.#options;
    const startedAt = clock.now();
    this.#reader.filled(byteLength);
    if (clock.now() - startedAt < TURN_MS) {
      this.#readBytes *= 2;
      return;
    }
    this.#readBytes = Math.max(MIN_READ_BYTES, byteLength >> 1);
    if (this.#waitsForTurn) return;
    this.#waitsForTurn = true;
    stream().pause();
    nextTurn(() => {
      this.#waitsForTurn = false;
      this.#flow();
    });
  }

  /** Pauses the stream for a reason of the caller's, until `resume` is called. */
  pause(): void {
    this.#isPaused = true;
    this.#options.stream().pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#flow();
  }

  #flow(): void {
    if (!this.#isPaused && !this.#waitsForTurn) this.#options.stream().resume();
  }
}
