import type { CachedCatalogue } from '../catalog/cached-catalogue.js';
import type { ServerState } from '../dispatch/availability.js';

export interface FirstStartOptions {
  /** Called at most once: when the start has failed or is slow, and the last run has cached no catalogue. */
  readonly onStartMissed?: () => void;
}

/**
 * The start of a server until a process of this run is ready: what the last run tells about the server, and what the next
 * run has to know if no process becomes ready.
 */
export class FirstStart {
  /** The catalogue that the last run cached. */
  catalogue: CachedCatalogue | undefined;
  /** Whether the server was not ready in the last run, or a list of this run was shown without it. No list waits for it. */
  isLate = false;
  readonly #options: FirstStartOptions;
  /** Whether nothing more is to be recorded: a process was ready, the start is recorded, or the run has ended. */
  #isOver = false;

  constructor(options: FirstStartOptions) {
    this.#options = options;
  }

  /** Whether no list has to wait for the server. */
  get isEnough(): boolean {
    return this.catalogue !== undefined || this.isLate;
  }

  /**
   * Servers with a smaller number start first: those of which nothing is known, because lists wait for them; then those
   * that were not ready in the last run; then those whose cached lists are shown already.
   */
  get startOrder(): number {
    if (this.catalogue !== undefined) return 2;
    return this.isLate ? 1 : 0;
  }

  /**
   * The start is slow, and not because the machine is. This is recorded at once and not at the end of the run, because the
   * client may leave and Trunkline may be killed at any time. A server that becomes ready later replaces the record.
   */
  turnedOutSlow(): void {
    this.#record();
  }

  stateChanged(state: ServerState): void {
    if (state === 'backoff' || state === 'parked') this.#record();
    if (state !== 'ready') return;
    this.#isOver = true;
    this.catalogue = undefined;
  }

  close(): void {
    this.#isOver = true;
  }

  #record(): void {
    // The cached catalogue is worth more than what became of one start.
    if (this.#isOver || this.catalogue !== undefined) return;
    this.#isOver = true;
    this.#options.onStartMissed?.();
  }
}
