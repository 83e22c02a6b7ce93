import type { NotificationEnvelope } from '../mcp/envelope.js';
import { type ClientProfile, declares, type InitializeResult } from '../mcp/handshake.js';
import type {
  CloseReason,
  DialOutcome,
  EndedBecause,
  Outcome,
  RequestFailure,
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
  /** Tells the transport the revision that the handshake agreed on. Call it before the next message. */
  negotiated(revision: string): void;
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

/** The failure of a dial whose first request failed. A failure of the network or of the credentials tells nothing of the server. */
export function failedDial(
  method: string,
  { reason, because }: Extract<Outcome, { kind: 'failed' }>,
): Extract<DialOutcome, { kind: 'failed' }> {
  const fault = FAULTS[reason];
  const isOverHttp = fault !== undefined || reason === 'refused';
  const text = isOverHttp && because !== undefined ? because : reason;
  return { kind: 'failed', reason: `${method}: ${text}`, ...(fault && { fault }) };
}

const FAULTS: Partial<Readonly<Record<RequestFailure, 'network' | 'trouble' | 'blocked'>>> = {
  unreachable: 'network',
  connection_lost: 'trouble',
  unavailable: 'trouble',
  login_required: 'blocked',
};

/** The part of a connection that is the same in all eras. */
export abstract class EraConnection implements Omit<UpstreamConnection, 'send' | 'notify' | 'request'> {
  readonly generation: number;
  readonly requestedRevision: string;
  revision: string;
  readonly initializeResult: Uint8Array;
  readonly capabilities: InitializeResult['capabilities'];
  readonly instructions: string | undefined;
  readonly serverInfo: InitializeResult['serverInfo'];
  protected readonly channel: Channel;

  constructor(channel: Channel, generation: number, requestedRevision: string, result: InitializeResult) {
    this.channel = channel;
    this.generation = generation;
    this.requestedRevision = requestedRevision;
    this.revision = result.protocolVersion;
    this.initializeResult = result.raw;
    this.capabilities = result.capabilities;
    this.instructions = result.instructions;
    this.serverInfo = result.serverInfo;
  }

  get counters(): UpstreamConnection['counters'] {
    return this.channel.counters;
  }

  get inFlight(): number {
    return this.channel.inFlight;
  }

  get pausedMs(): number {
    return this.channel.pausedMs;
  }

  get isClosed(): boolean {
    return this.channel.isClosed;
  }

  offers(capability: string): boolean {
    return declares(this.capabilities, capability);
  }

  close(reason: CloseReason, because?: EndedBecause): void {
    this.channel.close(reason, because);
  }
}
