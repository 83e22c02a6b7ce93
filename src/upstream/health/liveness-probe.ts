import { LISTS } from '../../mcp/lists.js';
import { METHODS } from '../../mcp/methods.js';
import type { Clock } from '../../timing/clock.js';
import type { UpstreamConnection } from '../port.js';

/** The connection that is probed. */
export interface ProbedConnection extends Pick<UpstreamConnection, 'inFlight' | 'isClosed'> {
  /** Whether several requests in a row timed out, and there was no sign of life since. */
  readonly isSilent: boolean;
}

export interface LivenessProbeOptions {
  readonly clock: Clock;
  readonly connection: ProbedConnection;
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
 * Requests that show whether a server answers, in the order in which they are sent. They are two, because some healthy
 * servers answer only one of them. The first costs a server nothing.
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
