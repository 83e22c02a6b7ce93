import type { ClientProfile } from '../mcp/client-profile.js';
import type { DialOutcome, ServerRequest, UpstreamConnection } from './port.js';

/** JSON-RPC with one server before and below any protocol era: what a transport offers to a dialect. */
export interface Channel
  extends Pick<UpstreamConnection, 'send' | 'notify' | 'request' | 'close' | 'counters' | 'inFlight' | 'isClosed'> {
  /** Sends a notification of the gateway's own. Does nothing once the channel is closed. */
  sendNotification(method: string, params?: unknown): void;
}

export interface OpenOptions {
  readonly generation: number;
  readonly profile: ClientProfile;
  /** How long the server may take to answer, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * What a protocol era adds to a channel: how a connection is opened, and which requests of a server need no client.
 *
 * The composition gives a dialect to each transport, so a transport knows no era by name.
 */
export interface Dialect {
  open(channel: Channel, options: OpenOptions): Promise<DialOutcome>;
  /** Answers a request of the server if no client is needed for that. Returns whether it did. */
  answer(request: ServerRequest): boolean;
}
