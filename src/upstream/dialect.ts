import type { ClientProfile } from '../mcp/client-profile.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import type {
  CloseReason,
  DialOutcome,
  EndedBecause,
  ServerRequest,
  UpstreamConnection,
  UpstreamListener,
} from './port.js';
import type { ServerEra } from './server-era.js';

/*
 * The port between transports and protocol eras. A transport makes a `Channel` for each connection, and the composition
 * gives it a `Dialect`, so a transport knows no era by name.
 */

/** JSON-RPC with one server before and below any protocol era: what a transport offers to a dialect. */
export interface Channel
  extends Pick<
    UpstreamConnection,
    'send' | 'notify' | 'request' | 'close' | 'counters' | 'inFlight' | 'pausedMs' | 'isClosed'
  > {
  /** Sends a notification of the gateway's own. Does nothing once the channel is closed. */
  sendNotification(method: string, params?: unknown): void;
  /** From now on, `receiver` gets what the server sends by itself; until then, the listener of the dial got it. */
  receive(receiver: ChannelReceiver): void;
}

/** A connection of an era that reads what the server sends by itself, before the gateway gets it. */
export interface ChannelReceiver {
  request(request: ServerRequest): void;
  notification(notification: NotificationEnvelope): void;
  /** The channel is closed, and the requests that were sent over it are settled. */
  closed(reason: CloseReason, because?: EndedBecause): void;
}

export interface OpenOptions {
  readonly generation: number;
  readonly profile: ClientProfile;
  /** Time limit for the server's answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly era: ServerEra;
  /** Gets what the server sends by itself, and what makes the connection unusable. */
  readonly listener: Pick<UpstreamListener, 'request' | 'notification' | 'unfit'>;
}

/** Opens connections of one protocol era over a channel. */
export interface Dialect {
  open(channel: Channel, options: OpenOptions): Promise<DialOutcome>;
}
