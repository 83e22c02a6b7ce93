import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { Due } from '../../timing/deadlines.js';
import type { EndedBecause } from '../../upstream/port.js';
import type { Slot } from './concurrency-limit.js';
import type { Handling } from './handling.js';

/** How far an earlier process got with a call. Times are milliseconds on the clock. */
export interface EarlierAttempt {
  readonly startedAt: number;
  /** When the call was sent or, if later, when its latest progress arrived. */
  readonly lastSignAt: number;
  /** The latest progress value that the client received. Later progress must exceed it. */
  readonly progressed: number;
  /** What the earlier process did, if the gateway ended it for that. */
  readonly because?: EndedBecause | undefined;
}

/** What a call waits for. */
export type Stage = 'none' | 'slot' | 'exclusive-client' | 'connection';

/** One client request on its way to a server: its handling, and what it holds of the server's admission. */
export class Call implements Due {
  readonly exchange: Exchange;
  readonly handling: Handling;
  /** Present when a process ended while it worked on the call and the call is repeated. */
  earlier: EarlierAttempt | undefined;

  // `Admission` owns the members below.
  stage: Stage = 'none';
  /** `'direct'` when the call took a free slot without waiting. */
  slot: Slot | 'direct' | undefined;
  isExclusive = false;
  isWithoutSlot = false;
  /** Its place among what waits, of calls and notifications. */
  arrival = 0;
  dueAt = 0;
  index: number | undefined;

  constructor(exchange: Exchange, handling: Handling) {
    this.exchange = exchange;
    this.handling = handling;
  }

  get client(): DownstreamClient {
    return this.exchange.client;
  }
}
