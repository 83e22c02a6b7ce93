import type { ByteReader } from '../byte-reader.js';

/** A read that takes longer makes the next one smaller, in milliseconds. */
const LONG_READ_MS = 0.5;
/** Limits of one read, in bytes. */
const MIN_READ_BYTES = 4 * 1024;
const MAX_READ_BYTES = 256 * 1024;

/** A read that is done. The work on it began and ended at these times, in milliseconds on the clock. */
export interface TimedRead {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly byteLength: number;
}

/** Decides after each read whether the reader has to wait. Returns `false` if not; otherwise calls `proceed` once, later. */
export type Pace = (read: TimedRead, proceed: () => void) => boolean;

export interface TurnReaderOptions {
  /** Source of the bytes. */
  readonly stream: () => { pause(): void; resume(): void };
  readonly clock: { now(): number };
  readonly pace: Pace;
}

/**
 * Passes bytes to a reader, and pauses the stream when `pace` says so. The reads are small at first, and grow while the
 * work on them is short.
 *
 * In one turn of the event loop, the system hands over up to 32 reads of a stream that is never empty, each with thousands
 * of short messages. So one client or server that writes without a pause would hold up all others for seconds.
 */
export class TurnReader implements ByteReader {
  readonly #reader: ByteReader;
  readonly #options: TurnReaderOptions;
  #waitsForTurn = false;
  #isPaused = false;
  #isFree = false;
  /** Limit of the next read. */
  #readBytes = MIN_READ_BYTES;

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
    const { clock, stream, pace } = this.#options;
    const startedAt = clock.now();
    this.#reader.filled(byteLength);
    const endedAt = clock.now();
    const isLong = endedAt - startedAt > LONG_READ_MS;
    // Relative to the bytes that came, because a pipe may hold less than the limit.
    this.#readBytes = Math.min(Math.max(isLong ? byteLength >> 1 : byteLength * 2, MIN_READ_BYTES), MAX_READ_BYTES);
    if (this.#isFree || this.#waitsForTurn) return;
    this.#waitsForTurn = pace({ startedAt, endedAt, byteLength }, () => {
      this.#waitsForTurn = false;
      this.#flow();
    });
    if (this.#waitsForTurn) stream().pause();
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

  /** Reads the rest of the stream without waiting for turns, because its writer has ended. */
  drain(): void {
    this.#isFree = true;
    this.#waitsForTurn = false;
    this.#flow();
  }

  #flow(): void {
    if (!this.#isPaused && !this.#waitsForTurn) this.#options.stream().resume();
  }
}

/** After so much work on one read, everybody else has a turn, in milliseconds. */
const TURN_MS = 1;

/** The pace of a client: after a long read, everybody else has a turn. `nextTurn` runs a task in the next turn. */
export function clientPace(nextTurn: (task: () => void) => void): Pace {
  return ({ startedAt, endedAt }, proceed) => {
    if (endedAt - startedAt < TURN_MS) return false;
    nextTurn(proceed);
    return true;
  };
}
