import { LISTS, METHODS } from '../../wire/mcp/methods.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { UpstreamConnection } from '../upstream-connection.js';

export interface HealthEvents {
  /** Several requests in a row timed out, without a sign of life meanwhile. */
  silent(): void;
  /** The server writes too much useless output. Called once. */
  violated(reason: string): void;
}

/** The number of requests that time out in a row before a server counts as silent. */
const SILENT_AFTER = 3;
/** Time for which a message or a byte counts toward the limits, in milliseconds. */
const WINDOW_MS = 60_000;
/** Oversized and unfinished messages within the window. */
const MAX_EXCESSIVE = 3;
/** Bytes of stray output within the window. */
const MAX_STRAY_BYTES = 16 * 1024 * 1024;
/** Stray output is added up in slots of this length, in milliseconds. */
const SLOT_MS = 1_000;

const TOO_EXCESSIVE = `it sent ${MAX_EXCESSIVE} oversized or unfinished messages within a minute`;
const TOO_MUCH_STRAY = 'it wrote more than 16 MiB that is no message to stdout within a minute';

/**
 * Watches whether one server is silent, and whether it writes so much useless output that other servers suffer.
 *
 * A sign of life is an answer to a request of Trunkline's, in time or late, or progress of such a request. Logs and other
 * notifications prove nothing, because the thread that writes them may run while the thread that answers requests hangs.
 *
 * An excessive message exceeds the frame limit, or was dropped unfinished. Stray output is every line that is not a message,
 * malformed or a log. Only its amount counts, because a working server may write some.
 */
export class HealthMonitor {
  readonly #clock: Clock;
  readonly #events: HealthEvents;
  /** Requests that timed out since the last sign of life. */
  #timeouts = 0;
  /** Times of the last excessive messages, the oldest first. */
  #excessive: number[] = [];
  #stray: { readonly from: number; bytes: number }[] = [];
  #hasEnded = false;

  constructor(clock: Clock, events: HealthEvents) {
    this.#clock = clock;
    this.#events = events;
  }

  /** Whether several requests in a row timed out, and there was no sign of life since. */
  get isSilent(): boolean {
    return this.#timeouts >= SILENT_AFTER;
  }

  /** The server answered a request, or reported progress of one. */
  signOfLife(): void {
    this.#timeouts = 0;
  }

  timedOut(): void {
    this.#timeouts += 1;
    if (this.#timeouts === SILENT_AFTER) this.#events.silent();
  }

  excessiveMessage(): void {
    const now = this.#clock.now();
    this.#excessive = [...this.#excessive.filter((at) => now - at < WINDOW_MS), now];
    if (this.#excessive.length >= MAX_EXCESSIVE) this.#violated(TOO_EXCESSIVE);
  }

  strayOutput(byteLength: number): void {
    const now = this.#clock.now();
    this.#stray = this.#stray.filter(({ from }) => now - from < WINDOW_MS);
    const last = this.#stray.at(-1);
    if (last !== undefined && now - last.from < SLOT_MS) last.bytes += byteLength;
    else this.#stray.push({ from: now, bytes: byteLength });
    const sum = this.#stray.reduce((bytes, slot) => bytes + slot.bytes, 0);
    if (sum > MAX_STRAY_BYTES) this.#violated(TOO_MUCH_STRAY);
  }

  /** Stops reporting, because the connection is closed. */
  end(): void {
    this.#hasEnded = true;
  }

  #violated(reason: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#events.violated(reason);
  }
}

interface LivenessProbeOptions {
  readonly clock: Clock;
  /** `isSilent`: several requests in a row timed out, and there was no sign of life since. */
  readonly connection: { readonly inFlight: number; readonly isClosed: boolean; readonly isSilent: boolean };
  /** Sends a request in the form that the era of the connection requires. */
  readonly request: UpstreamConnection['request'];
  /** The probe starts. */
  readonly suspected: () => void;
  /** The server answers. */
  readonly cleared: () => void;
  /** The server answered none of the probe's requests. */
  readonly unresponsive: () => void;
}

/**
 * Requests that show whether a server answers, in the order in which they are sent. There are two, because some healthy
 * servers answer only one of them. `ping` is the first, because it costs a server nothing.
 */
export const PROBES = [METHODS.ping, LISTS.tools.method] as const;
/** Time limit for each answer, in milliseconds. */
const PROBE_MS = 10_000;
/** Interval of the checks for other requests in flight, in milliseconds. */
const CHECK_EVERY_MS = 250;

/**
 * Finds out whether a silent server is still alive.
 *
 * Silence alone proves nothing, because a server may be busy with one long call. The probe therefore waits until no
 * request is in flight. Any answer, and any progress of a request, ends the probe and clears the server.
 */
export class LivenessProbe {
  readonly #options: LivenessProbeOptions;
  #isRunning = false;

  constructor(options: LivenessProbeOptions) {
    this.#options = options;
  }

  /** Starts the probe if it is not running. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#options.suspected();
    this.#awaitIdle();
  }

  #awaitIdle(): void {
    const { connection, clock } = this.#options;
    if (this.#isOver()) return;
    if (connection.inFlight > 0) clock.schedule(CHECK_EVERY_MS, () => this.#awaitIdle());
    else void this.#probe();
  }

  async #probe(): Promise<void> {
    const { request, unresponsive } = this.#options;
    for (const method of PROBES) {
      await request(method, undefined, { idleMs: PROBE_MS, maxMs: PROBE_MS });
      if (this.#isOver()) return;
    }
    this.#isRunning = false;
    unresponsive();
  }

  #isOver(): boolean {
    const { connection, cleared } = this.#options;
    if (!connection.isClosed && connection.isSilent) return false;
    this.#isRunning = false;
    if (!connection.isClosed) cleared();
    return true;
  }
}
