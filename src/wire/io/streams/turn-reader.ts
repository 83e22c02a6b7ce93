import type { Clock } from '../../timing/clock.js';
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

/** Decides after each read whether the reader has to wait. If so, returns `true`, and calls `proceed` once, later. */
export type Pace = (read: TimedRead, proceed: () => void) => boolean;

export interface TurnReaderOptions {
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

/** Work on one read after which all other streams have a turn, in milliseconds. */
const TURN_MS = 1;

/** The pace of a client: after a long read, all other streams have a turn. `nextTurn` runs a task in the next turn. */
export function clientPace(nextTurn: (task: () => void) => void): Pace {
  return ({ startedAt, endedAt }, proceed) => {
    if (endedAt - startedAt < TURN_MS) return false;
    nextTurn(proceed);
    return true;
  };
}

/** Work that a server may cause at once, after it was quiet, in milliseconds. */
const BURST_MS = 10;
/** Pause after a read of a flooding server, in multiples of the work on the read. Leaves 8 % of the time for floods. */
const REST_FACTOR = 12;
/** Shortest pause, because a shorter one costs more than it saves. */
const MIN_REST_MS = 4;
/** Longest pause, because another process may have interrupted the measured work. */
const MAX_REST_MS = 250;
/** Added per read, in milliseconds, for waking up and reading. */
const READ_MS = 0.01;
/** Added per byte, in milliseconds, because a notification also costs the clients that receive it. */
const BYTE_MS = 0.008 / 1024;
/** Length of a flood that is reported. */
const ENDLESS_MS = 60_000;
/** Time without a pause after which a flood is over. */
const QUIET_MS = 1_000;

/**
 * The queue of all servers that flood the gateway with output that answers nothing. One of them is read at a time, and after
 * each read the queue rests. So several floods take no more time than one.
 */
export class FloodQueue {
  readonly #clock: Clock;
  readonly #waiting: { readonly restMs: number; readonly proceed: () => void }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get clock(): Clock {
    return this.#clock;
  }

  /** Calls `proceed` when it is this server's turn. Its last read took `workMs`. */
  wait(workMs: number, proceed: () => void): void {
    const restMs = Math.min(Math.max(workMs * REST_FACTOR, MIN_REST_MS), MAX_REST_MS);
    this.#waiting.push({ restMs, proceed });
    if (this.#waiting.length === 1) this.#rest(restMs);
  }

  #rest(restMs: number): void {
    this.#clock.schedule(restMs, () => {
      this.#waiting.shift()?.proceed();
      const [next] = this.#waiting;
      if (next !== undefined) this.#rest(next.restMs);
    });
  }
}

/**
 * Bounds the time for the output of one server that answers nothing: blank lines, log lines, notifications, stderr.
 *
 * The work on each read is measured. A server that causes more than a burst of it, and more than 8 % of the time after that,
 * waits in the queue of the floods after each read. So a flood waits in the pipe and in the server instead of delaying other
 * servers. A flood of a minute is reported, because such a server will not stop.
 */
export class FloodBound {
  readonly #queue: FloodQueue;
  readonly #onEndless: () => void;
  /** Level of a leaky bucket, in milliseconds. Work raises it, and a twelfth of the time that passes lowers it. */
  #levelMs = 0;
  #countedAt = 0;
  /** Streams of the server that wait. */
  #waiting = 0;
  #pausedAt = 0;
  #pausedMs = 0;
  /** Beginning of the flood, in milliseconds on the clock. */
  #floodSince = 0;
  /** End of the last pause, in milliseconds on the clock. */
  #resumedAt = Number.NEGATIVE_INFINITY;
  #isReported = false;

  /** `onEndless` is called once, after a minute of pauses without a second between them. */
  constructor(queue: FloodQueue, onEndless: () => void) {
    this.#queue = queue;
    this.#onEndless = onEndless;
  }

  /** Total time in which the server was not read because of its floods, in milliseconds. */
  get pausedMs(): number {
    return this.#pausedMs + (this.#waiting === 0 ? 0 : this.#queue.clock.now() - this.#pausedAt);
  }

  /** The pace of one stream of the server. `wasUseful` is whether its last read answered a request. */
  pace(reader: { readonly wasUseful: boolean }): Pace {
    return ({ startedAt, endedAt, byteLength }, proceed) => {
      if (reader.wasUseful) return false;
      const workMs = endedAt - startedAt + READ_MS + byteLength * BYTE_MS;
      this.#levelMs = Math.max(0, this.#levelMs - (startedAt - this.#countedAt) / REST_FACTOR) + workMs;
      this.#countedAt = endedAt;
      if (this.#levelMs <= BURST_MS) return false;
      this.#levelMs = BURST_MS;
      this.#pause(endedAt);
      this.#queue.wait(workMs, () => {
        // The wait makes up for this read only, so it does not drain the bucket.
        this.#countedAt = this.#queue.clock.now();
        this.#resume();
        proceed();
      });
      return true;
    };
  }

  #pause(now: number): void {
    this.#waiting += 1;
    if (this.#waiting > 1) return;
    this.#pausedAt = now;
    if (now - this.#resumedAt > QUIET_MS) this.#floodSince = now;
    if (this.#isReported || now - this.#floodSince < ENDLESS_MS) return;
    this.#isReported = true;
    this.#onEndless();
  }

  #resume(): void {
    this.#waiting -= 1;
    if (this.#waiting > 0) return;
    this.#resumedAt = this.#queue.clock.now();
    this.#pausedMs += this.#resumedAt - this.#pausedAt;
  }
}
