import type { Clock } from '../../timing/clock.js';
import type { Pace } from './turn-reader.js';

/** Work that a server may cause at once, after it was quiet, in milliseconds. */
const BURST_MS = 10;
/** Pause after a read of a flooding server, in multiples of the work on the read. Leaves 8 % of the time for floods. */
const REST_FACTOR = 12;
/** Limits of one pause: shorter ones cost more than they save, and another process may have interrupted the work. */
const MIN_REST_MS = 4;
const MAX_REST_MS = 250;
/** Cost of a read besides the work on its content, in milliseconds: to wake up, to read and to be called. */
const READ_MS = 0.01;
/** Cost of a byte besides that: clients may get it unasked, so that it is written to them, and they have to read it. */
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
  /** Work that is not paid by the time that has passed since, in milliseconds. */
  #debtMs = 0;
  #countedAt = 0;
  /** Streams of the server that wait. */
  #waiting = 0;
  #pausedAt = 0;
  #pausedMs = 0;
  /** Beginning of the flood, and end of its last pause, in milliseconds on the clock. */
  #floodSince = 0;
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

  /** The pace of one stream of the server. `isUseful` tells whether its last read answered a request. */
  pace(isUseful: () => boolean): Pace {
    return ({ startedAt, endedAt, byteLength }, proceed) => {
      if (isUseful()) return false;
      const workMs = endedAt - startedAt + READ_MS + byteLength * BYTE_MS;
      this.#debtMs = Math.max(0, this.#debtMs - (startedAt - this.#countedAt) / REST_FACTOR) + workMs;
      this.#countedAt = endedAt;
      if (this.#debtMs <= BURST_MS) return false;
      this.#debtMs = BURST_MS;
      this.#pause(endedAt);
      this.#queue.wait(workMs, () => {
        // The wait pays for this read only.
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
