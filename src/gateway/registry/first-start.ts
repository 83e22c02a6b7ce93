import type { ServerState } from '../../spec/server-state.js';
import type { HandshakeAnswer } from '../../upstream/upstream-connection.js';

/** The start of a server until a process is ready. Uses the record of the last run, and writes one for the next. */
export class FirstStart {
  /** The handshake in the catalogue of an earlier run, until a process is ready. */
  catalogue: HandshakeAnswer | undefined;
  /** Whether the catalogue was read for another client, and may be another one for this client. */
  isOfOthers = false;
  /** Whether no list waits for the server, because the last run or a list of this run went on without it. */
  isLate = false;
  readonly #onStartMissed: (() => void) | undefined;
  /** Whether nothing more is to be recorded, because a process was ready, the start is recorded, or the run has ended. */
  #isOver = false;

  constructor(onStartMissed: (() => void) | undefined) {
    this.#onStartMissed = onStartMissed;
  }

  get isEnough(): boolean {
    return this.#isKnown || this.isLate;
  }

  /** Position among the starting servers, smallest first. Servers without any record start first, because lists wait for them. */
  get startOrder(): number {
    if (this.#isKnown) return 2;
    return this.isLate ? 1 : 0;
  }

  get #isKnown(): boolean {
    return this.catalogue !== undefined && !this.isOfOthers;
  }

  /** Records that the start is slow although the machine is not. Records it now, because Trunkline may be killed at any time. */
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
    // A cached catalogue is worth more than the record of one start.
    if (this.#isOver || this.#isKnown) return;
    this.#isOver = true;
    this.#onStartMissed?.();
  }
}
