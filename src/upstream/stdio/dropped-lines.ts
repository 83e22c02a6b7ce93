import type { DroppedLineSink, OversizedLine } from '../../io/line-decoder.js';
import type { HealthMonitor } from '../health/health-monitor.js';
import type { DropCounters } from '../port.js';
import type { OutgoingRequests } from './outgoing-requests.js';

export interface DroppedLinesOptions {
  readonly counters: DropCounters;
  readonly outgoing: OutgoingRequests;
  readonly health: HealthMonitor;
  /** Receives the beginning of each dropped line, for the log of the server. */
  readonly log: (head: Uint8Array, reason: 'too-large' | 'not-json' | 'memory-limit') => void;
  /** Whether Trunkline reads nothing from the server at the moment. */
  readonly isPaused: () => boolean;
}

/** What follows from a line of a server that was dropped: its request fails, and the server has violated the protocol. */
export class DroppedLines implements DroppedLineSink {
  readonly #options: DroppedLinesOptions;

  constructor(options: DroppedLinesOptions) {
    this.#options = options;
  }

  evicted(head: Uint8Array): void {
    const { counters, outgoing, health, log, isPaused } = this.#options;
    counters.evicted += 1;
    log(head, 'memory-limit');
    outgoing.dropped({ head, tail: NOTHING }, 'response_dropped');
    // A server that Trunkline does not read cannot finish its line.
    if (!isPaused()) health.brokenFrame();
  }

  text(head: Uint8Array): void {
    const { counters, log } = this.#options;
    counters.junk += 1;
    log(head, 'not-json');
  }

  oversized(line: OversizedLine): void {
    const { counters, outgoing, health, log } = this.#options;
    if (line.isText) return;
    if (line.isEvicted) {
      // It is counted already, but perhaps only its end shows the id.
      outgoing.dropped(line, 'response_dropped');
      return;
    }
    counters.oversized += 1;
    log(line.head, 'too-large');
    outgoing.dropped(line, 'response_too_large');
    health.brokenFrame();
  }
}

const NOTHING = new Uint8Array(0);
