import type { Cancel, Clock } from '../../timing/clock.js';
import type { CachedCatalogue } from '../catalog/cached-catalogue.js';
import type { ServerState } from '../dispatch/availability.js';

export interface FirstStartOptions {
  readonly clock: Clock;
  /** Called at most once: when the start has failed or takes long, and the last run has cached no catalogue. */
  readonly onStartMissed?: () => void;
}

/**
 * A slow start is recorded after this time. It cannot be recorded at the end of the run, because the client may leave and
 * Trunkline may be killed at any time. A run that is over sooner says nothing about the server.
 */
const SLOW_AFTER_MS = 500;

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
  #cancelRecord: Cancel = () => {};

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

  /** The start waits for something else than the processor, or has used the processor for long. */
  turnedOutSlow(): void {
    this.#cancelRecord();
    if (this.#isOver || this.catalogue !== undefined) return;
    this.#cancelRecord = this.#options.clock.schedule(SLOW_AFTER_MS, () => this.#record());
  }

  stateChanged(state: ServerState): void {
    if (state === 'installing' || state === 'starting') return;
    this.#cancelRecord();
    if (state === 'backoff' || state === 'parked') this.#record();
    if (state !== 'ready') return;
    this.#isOver = true;
    this.catalogue = undefined;
  }

  close(): void {
    this.#isOver = true;
    this.#cancelRecord();
  }

  #record(): void {
    // The cached catalogue is worth more than what became of one start.
    if (this.#isOver || this.catalogue !== undefined) return;
    this.#isOver = true;
    this.#options.onStartMissed?.();
  }
}
