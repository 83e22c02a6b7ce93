import { LISTS } from '../../mcp/lists.js';
import { METHODS } from '../../mcp/methods.js';
import type { Clock } from '../../timing/clock.js';
import type { StdioBridge } from '../stdio/stdio-bridge.js';

export interface LivenessProbeOptions {
  readonly clock: Clock;
  readonly bridge: StdioBridge;
  /** The child has gone silent, and it is being found out whether it still serves. */
  readonly suspected: () => void;
  /** It does. */
  readonly cleared: () => void;
  /** It does not. */
  readonly unresponsive: () => void;
}

/** Two different questions, since there are healthy servers that answer one of them and not the other. */
const PROBES = [METHODS.ping, LISTS.tools.method] as const;
/** How long each may take, in milliseconds. */
const PROBE_MS = 10_000;
/** How often it is looked whether the child has become free to be asked, in milliseconds. */
const LOOK_EVERY_MS = 250;

/**
 * Finds out whether a child that has gone silent still serves.
 *
 * Silence alone proves nothing: a server may be at work on one long call. So it is asked only when it has nothing else
 * to do, and any byte from it clears it.
 */
export class LivenessProbe {
  readonly #options: LivenessProbeOptions;
  #isUnderWay = false;

  constructor(options: LivenessProbeOptions) {
    this.#options = options;
  }

  begin(): void {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    this.#options.suspected();
    this.#look();
  }

  #look(): void {
    const { bridge, clock } = this.#options;
    if (this.#isOver()) return;
    if (bridge.inFlight > 0) clock.schedule(LOOK_EVERY_MS, () => this.#look());
    else void this.#probe();
  }

  async #probe(): Promise<void> {
    const { bridge, unresponsive } = this.#options;
    for (const method of PROBES) {
      await bridge.ask(method, undefined, { idleMs: PROBE_MS, maxMs: PROBE_MS });
      if (this.#isOver()) return;
    }
    this.#isUnderWay = false;
    unresponsive();
  }

  #isOver(): boolean {
    const { bridge, cleared } = this.#options;
    if (!bridge.isClosed && bridge.isSilent) return false;
    this.#isUnderWay = false;
    if (!bridge.isClosed) cleared();
    return true;
  }
}
