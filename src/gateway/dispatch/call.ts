import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { Edit } from '../../json/splice.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import type { Due } from '../../timing/deadlines.js';
import type { EndedBecause, Outcome, RequestTimeouts, UpstreamConnection } from '../../upstream/port.js';
import type { Slot } from './concurrency-limit.js';

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

/** How far an earlier process got with a call. Times are milliseconds on the clock. */
interface EarlierAttempt {
  readonly startedAt: number;
  /** When the call was sent or, if later, when its latest progress arrived. */
  readonly lastSignAt: number;
  /** The latest progress value that the client received. Later progress must exceed it. */
  readonly progressed: number;
  /** Reason for which the gateway ended the earlier process, if it did. */
  readonly because?: EndedBecause | undefined;
}

/** The event that a call waits for. */
export type Stage = 'none' | 'slot' | 'exclusive-client' | 'connection';

/** How one request is sent to its server and how the response is treated. */
export interface Handling {
  /** Edits of the request. */
  readonly edits: readonly Edit[];
  readonly editAnswer?: EditAnswer | undefined;
  /** Why the request must not reach the present process; evaluated just before it is sent. */
  readonly refusal?: (() => string | undefined) | undefined;
  /** Whether the request may be sent again to the next process if its process exits before the response. */
  readonly isRepeatable?: boolean | undefined;
  /** Present when the request concerns a task. */
  readonly translation?: Translation | undefined;
  /** Called with the response after it was relayed. */
  readonly onAnswered?: ((response: ResponseEnvelope) => void) | undefined;
}

/** Edits of a server's response, computed just before it is relayed. The connection is the one that it came over. */
export type EditAnswer = (
  response: ResponseEnvelope,
  connection: Pick<UpstreamConnection, 'revision'>,
) => readonly Edit[];

/**
 * Replaces the task ids in the messages between a client and a server, beyond the id, the progress token and what
 * routing replaces. Each method is called just before its message is relayed.
 */
export interface Translation {
  /** Edits of the request, once it is known which process it goes to. */
  request?(connection: UpstreamConnection): readonly Edit[];
  /** Edits of the response. Calling `keepProgress` relays progress after it, until the function it returns is called. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): readonly Edit[];
  /** Edits of the server's progress. */
  progress(notification: NotificationEnvelope): readonly Edit[];
  /** Edits of the client's cancellation. */
  cancel(notification: NotificationEnvelope): readonly Edit[];
  /** Resolves with the real outcome where the response only started a task. `undefined` when the response is final. */
  goOn?(
    response: ResponseEnvelope,
    connection: UpstreamConnection,
    keepProgress: () => () => void,
  ): Promise<Outcome> | undefined;
}

/** Limits of the calls to one server. Times are milliseconds. */
export interface CallLimits {
  /** Longest time without an answer or progress. */
  readonly timeoutMs: number;
  /** Longest time until the answer, whatever progress comes. */
  readonly maxTimeoutMs: number;
  /** Longest time until the answer to a request for a list. */
  readonly listTimeoutMs: number;
  /** Calls that may be in flight at the same time. */
  readonly concurrency: number;
  /** Calls that may wait for a slot. */
  readonly maxQueued: number;
  /** Longest wait for a slot, and longest wait until the calls of another client are done. */
  readonly maxWaitMs: number;
}

/** Timeouts of a request that waits for a task result. No message comes until the task is done. */
export function taskTimeouts({ maxTimeoutMs }: CallLimits): RequestTimeouts {
  return { idleMs: maxTimeoutMs, maxMs: maxTimeoutMs };
}

/** Timeouts of every other request. */
export function callTimeouts({ timeoutMs, maxTimeoutMs }: CallLimits): RequestTimeouts {
  return { idleMs: timeoutMs, maxMs: maxTimeoutMs };
}

/** Counters of the calls to one server. They only grow. */
export interface CallCounters {
  calls: number;
  /** Calls that the server answered with a JSON-RPC error or with a tool result that has `isError`. */
  errors: number;
  /** Calls that the gateway answered because the server could not. */
  failures: number;
  cancelled: number;
  /** Calls that were sent to a second process because the first one ended. */
  repeated: number;
}

export function newCallCounters(): CallCounters {
  return { calls: 0, errors: 0, failures: 0, cancelled: 0, repeated: 0 };
}

const MAX_SAMPLES = 512;

/** Durations of the latest 512 calls to one server, in milliseconds. */
export class Latencies {
  readonly #samples: number[] = [];
  #next = 0;

  add(ms: number): void {
    this.#samples[this.#next] = ms;
    this.#next = (this.#next + 1) % MAX_SAMPLES;
  }

  /**
   * Returns the latency that the share `quantile` (0 to 1) of the calls did not exceed, or `undefined` without calls.
   */
  quantile(quantile: number): number | undefined {
    const sorted = this.#samples.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))];
  }
}
