import type { Exchange, Handling } from '../../downstream/exchange.js';
import type { DownstreamClient } from '../../downstream/port.js';
import type { Due } from '../../timing/deadlines.js';
import type { Slot } from './concurrency-limit.js';

/** How far an earlier process got with a call. Times are milliseconds on the clock. */
export interface EarlierAttempt {
  readonly startedAt: number;
  /** When the call was sent, or its latest progress came. */
  readonly lastSignAt: number;
  /** The progress that the client was told. */
  readonly progressed: number;
}

/** What a call waits for. */
export type Stage = 'none' | 'slot' | 'exclusive-client' | 'connection';

/** One request of a client on its way to a server: what to do with it, and what it holds of the server's admission. */
export class Call implements Due {
  readonly exchange: Exchange;
  readonly handling: Handling;
  /** Present when a process ended while it worked on the call, and the next one gets it. */
  earlier: EarlierAttempt | undefined;

  // The rest belongs to `Admission`.
  stage: Stage = 'none';
  /** `'direct'` when the call found a free slot. */
  slot: Slot | 'direct' | undefined;
  isExclusive = false;
  isTaskResultWait = false;
  dueAt = 0;
  place: number | undefined;

  constructor(exchange: Exchange, handling: Handling) {
    this.exchange = exchange;
    this.handling = handling;
  }

  get client(): DownstreamClient {
    return this.exchange.client;
  }
}
