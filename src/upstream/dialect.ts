import { type ClientProfile, declares, type InitializeResult } from '../wire/mcp/handshake.js';
import { LIST_KINDS, LISTS } from '../wire/mcp/methods.js';
import type { CloseReason, EndedBecause, Outcome, RequestFailure } from '../wire/mcp/outcome.js';
import type { ServerEra } from './server-era.js';
import type {
  ConnectionListener,
  DialOutcome,
  DialTarget,
  SentRequest,
  ServerMessages,
  Traffic,
  UpstreamConnection,
  UpstreamListener,
} from './upstream-connection.js';

/*
 * The interfaces between transports and protocol eras. A transport makes a `Channel` for each connection. It gets the `Dialect`
 * from the code that composes the gateway, so it knows no era by name.
 */

/** JSON-RPC with one server, without the rules of any protocol era. */
export interface Channel extends Traffic {
  /** Sends a notification of the gateway's own. Does nothing once the channel is closed. */
  sendNotification(method: string, params?: unknown): void;
  /** Tells the transport the revision that the handshake agreed on. Call it before the next message. */
  negotiated(revision: string): void;
  /** Passes the server's requests and notifications to `receiver`. Before this call, the listener of `dial` gets them. */
  receive(receiver: ChannelReceiver): void;
}

/** Receives the server's requests and notifications before the gateway does. */
export interface ChannelReceiver extends ServerMessages {
  /** The channel is closed, and its requests are settled. */
  closed(reason: CloseReason, because?: EndedBecause): void;
}

export interface HandshakeOptions {
  readonly generation: number;
  readonly profile: ClientProfile;
  /** Time limit for the server's answer, in milliseconds. */
  readonly timeoutMs: number;
}

export interface OpenOptions extends HandshakeOptions {
  readonly era: ServerEra;
  /** Receives the server's requests and notifications, and the reason if the connection becomes unusable. */
  readonly listener: ConnectionListener;
}

/** Opens connections of one protocol era over a channel. */
export interface Dialect {
  open(channel: Channel, options: OpenOptions): Promise<DialOutcome>;
}

/** Opens the connection as soon as the profile of the client is known. */
export async function openConnection(
  dialect: Dialect,
  channel: Channel,
  { generation, spec, profile: known, era }: DialTarget,
  listener: UpstreamListener,
): Promise<DialOutcome> {
  const profile = await known;
  if (!channel.isClosed) listener.handshakeStarted();
  return await dialect.open(channel, { generation, profile, timeoutMs: spec.timeouts.startMs, era, listener });
}

/**
 * Returns the failure of a dial whose first request failed. Sets `fault`, as `LaunchFault` describes it, for a failure of the
 * network, of a remote server that cannot serve now, or of the credentials.
 */
export function failedDial(
  method: string,
  { reason, because }: Extract<Outcome, { kind: 'failed' }>,
): Extract<DialOutcome, { kind: 'failed' }> {
  const fault = FAULT_OF_FAILURE[reason];
  const isOverHttp = fault !== undefined || reason === 'refused';
  const text = isOverHttp && because !== undefined ? because : reason;
  return { kind: 'failed', reason: `${method}: ${text}`, ...(fault && { fault }) };
}

const FAULT_OF_FAILURE: Partial<Readonly<Record<RequestFailure, 'network' | 'trouble' | 'blocked'>>> = {
  unreachable: 'network',
  connection_lost: 'trouble',
  unavailable: 'trouble',
  login_required: 'blocked',
};

export abstract class EraConnection implements UpstreamConnection {
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

  abstract send(...sent: Parameters<UpstreamConnection['send']>): SentRequest | undefined;
  abstract notify(...sent: Parameters<UpstreamConnection['notify']>): void;
  abstract request(...sent: Parameters<UpstreamConnection['request']>): Promise<Outcome>;

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

  /** A server that declares nothing at all counts as one with all lists, because it may have them, and official clients ask it for them. */
  offers(capability: string): boolean {
    const isSilent = Object.values(this.capabilities).every((value) => value === null);
    const isOfLists = LIST_KINDS.some((kind) => LISTS[kind].capability === capability);
    return declares(this.capabilities, capability) || (isSilent && isOfLists);
  }

  close(reason: CloseReason, because?: EndedBecause): void {
    this.channel.close(reason, because);
  }
}
