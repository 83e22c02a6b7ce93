import type { Edit } from '../json/splice.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import type { RelayedRequest } from '../mcp/relayed-request.js';
import type { BridgeCounters } from './counters.js';
import type { Outcome, RequestHandler, RequestTimeouts, SentRequest } from './request.js';

/** A request to send under an id of the upstream connection. */
export type OutgoingRequest = Pick<RelayedRequest, 'method' | 'message'>;

/**
 * One generation of a child that has shaken hands: what the gateway talks to, whatever protocol era the child speaks.
 *
 * The dialect behind it turns a client's request into the messages that this child understands.
 */
export interface UpstreamConnection {
  readonly generation: number;
  /** The revision agreed with the child. */
  readonly revision: string;
  /** What it answered to `initialize`, as JSON, verbatim. */
  readonly initializeResult: Uint8Array;
  /** `instructions` of the child, verbatim, for its part of ours. */
  readonly instructions: string | undefined;
  readonly counters: Readonly<BridgeCounters>;
  readonly inFlight: number;

  /** What it declared, verbatim. */
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** Whether the child declared this capability, such as `tools` or `resources.subscribe`. */
  offers(capability: string): boolean;
  /**
   * Passes a client's request on. `edits` carry what routing changed, the original name for one. `undefined` when
   * nothing could be sent; the handler has been told why by then.
   */
  relay(
    request: OutgoingRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined;
  /** Passes a client's notification on, untouched but for the edits. */
  forward(notification: NotificationEnvelope, edits?: readonly Edit[]): void;
  /** Asks the child something on the gateway's own behalf. */
  ask(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome>;
}
