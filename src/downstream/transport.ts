import type { OnInternalError } from '../host/errors/internal-error.js';
import type { SplicedMessage } from '../wire/json/splice.js';
import type { Answer, MessageSink, RpcError } from '../wire/jsonrpc/message.js';
import {
  type Envelope,
  type Rejection,
  type RequestEnvelope,
  rejectionReply,
  type ScanEnvelope,
} from '../wire/mcp/envelope.js';
import type { ClientProfile } from '../wire/mcp/handshake.js';
import type { MirroredParam } from '../wire/mcp/mirrored-params.js';
import type { Clock } from '../wire/timing/clock.js';
import type { ServerInfo } from './declared-capabilities.js';
import type { ClientPlace, GatewayPort, HttpFacts } from './port.js';

/*
 * The port between transports and protocol eras. A transport (stdio, HTTP) reads messages and passes each one to `EraSessions`, which
 * chooses the era and passes the message to the session of that era. Transports and eras import this file, but not each other.
 */

export interface TransportClient extends ClientPlace {
  readonly principal: string;
  /** Id of the first server request; 1 if absent. Larger if another process has served the client before. */
  readonly firstRequestId?: number | undefined;
}

/** One client at the other end of a transport: a pipe, a socket, an HTTP session. Implemented by transports. */
export interface TransportSession extends TransportClient {
  /** Whether the client can receive a message now that belongs to none of its requests. */
  readonly isListening: boolean;
  /** Sends a message that belongs to no request of the client. `source` is the id of its backend, as for a `MessageSink`. */
  send(message: SplicedMessage, source?: string): void;
  /** Ends the session, because the gateway has nothing left to serve. */
  gone(): void;
}

/**
 * Carries the messages that one client request causes: the pipe, or the response to the POST with the request. `send` takes the messages
 * before the answer, which are progress, log messages and server requests. Implemented by transports.
 */
export interface ReplyChannel extends MessageSink {
  /** Whether all requests of the session share this channel, so that no two in flight may have the same id. */
  readonly isShared: boolean;
  /** Whether the client has disconnected and cannot receive anything on this channel. */
  readonly isDisconnected: boolean;
  /** The HTTP request that this channel answers. Absent for other transports. */
  readonly http?: HttpFacts | undefined;
  answer(message: Answer, source?: string): void;
  /** Ends the channel without an answer, because the client cancelled the request. */
  withdraw(): void;
  /**
   * Sets the listener for a client that cancels its request by closing this channel, and replaces the previous listener (page
   * basic/transports/streamable-http of 2026-07-28). Pipes and responses that a client may resume never call the listener.
   */
  onAbandoned(listener: () => void): void;
}

/** One client's session in one protocol era. Implemented by eras. */
export interface EraSession {
  /** Negotiated revision; `undefined` before the handshake ends. */
  readonly revision: string | undefined;
  /** Name, version and capabilities of the client; `undefined` before the client stated them. */
  readonly profile: ClientProfile | undefined;
  /** Number of requests that were not answered yet. */
  readonly inFlight: number;
  /** Parameters that a call repeats in headers. Absent in revisions without such headers. */
  mirroredParams?(call: RequestEnvelope): readonly MirroredParam[];
  /** Takes one message. A request is answered or withdrawn on `reply`, perhaps before this returns. */
  receive(message: Envelope, reply: ReplyChannel): void;
  /**
   * Takes a batch, and opens the channel for its answers, each of which may be withdrawn. If the whole batch is refused, returns the error.
   */
  receiveBatch(batch: Rejection, openReply: (answers: number) => ReplyChannel): Answer | undefined;
  /** Cancels all requests, because the client has left. May be called twice. */
  close(): void;
}

export interface EraOptions {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly gateway: GatewayPort;
  readonly serverInfo: ServerInfo;
  /** Reports internal errors, each of which fails one request. Without this function, errors are thrown to the caller. */
  readonly onInternalError?: OnInternalError | undefined;
}

/** A group of protocol revisions that share one session model. */
export interface Era {
  /** Whether clients have to begin a session before their requests are served. */
  readonly needsSession: boolean;
  /** Whether a client that has no session yet begins one with this message. */
  beginsSession(message: Envelope): boolean;
  /** Returns the error for a request before the client has a session; `undefined` if the request needs none. */
  refusalWithoutSession(request: RequestEnvelope): RpcError | undefined;
  /** Returns the name of the gateway process in the message, if messages of the era can have one. The name is not verified. */
  instanceIn?(message: Envelope | Rejection): string | undefined;
  /** Opens a session, which lasts until its `close` is called. */
  open(transport: TransportSession): EraSession;
}

/** Chooses the era of one message. `isUsed` says whether the client, which may use several eras, has used an era before. */
export type ChooseEra = (message: Envelope | Rejection, isUsed: (era: Era) => boolean) => Era;

/**
 * Chooses the era of a message. A request belongs to the modern era if it names its revision in `_meta`. A notification may
 * name none, so it belongs to the era that the client already uses.
 */
export function eraChooser({ legacy, modern }: { readonly legacy: Era; readonly modern: Era }): ChooseEra {
  return (message, isUsed) => {
    if (message.kind === 'rejected' || message.kind === 'response') return legacy;
    if (message.tokens.eraVersion !== undefined) return modern;
    return message.kind === 'notification' && !isUsed(legacy) && isUsed(modern) ? modern : legacy;
  };
}

/** Opens the channel for a number of answers. The answers to a batch, even a single one, are an array in one JSON text. */
export type OpenReply = (answers: number, isBatch: boolean) => ReplyChannel;

/** One client's sessions, one for each era that it uses. A session opens with the first message of its era. */
export class EraSessions {
  readonly #chooseEra: ChooseEra;
  readonly #transport: TransportSession;
  readonly #sessions = new Map<Era, EraSession>();
  #isClosed = false;
  readonly #isUsed = (era: Era) => this.#sessions.has(era);

  constructor(chooseEra: ChooseEra, transport: TransportSession) {
    this.#chooseEra = chooseEra;
    this.#transport = transport;
  }

  get revision(): string | undefined {
    for (const { revision } of this.#sessions.values()) if (revision !== undefined) return revision;
    return undefined;
  }

  get profile(): ClientProfile | undefined {
    for (const { profile } of this.#sessions.values()) if (profile !== undefined) return profile;
    return undefined;
  }

  get inFlight(): number {
    let inFlight = 0;
    for (const session of this.#sessions.values()) inFlight += session.inFlight;
    return inFlight;
  }

  /**
   * Passes a message or a batch to the session of its era. `openReply` opens the channel for the answers. Without an answer, the channel is
   * withdrawn in the end. Returns the error for a message that cannot be read, or for a refused batch.
   */
  receive(message: Envelope | Rejection, openReply: OpenReply): Answer | undefined {
    if (message.kind === 'rejected') {
      if (message.reason !== 'batch') return rejectionReply(message);
      return this.of(message).receiveBatch(message, (answers) => openReply(answers, true));
    }
    const isRequest = message.kind === 'request';
    const reply = openReply(isRequest ? 1 : 0, false);
    this.of(message).receive(message, reply);
    if (!isRequest) reply.withdraw();
    return undefined;
  }

  of(message: Envelope | Rejection): EraSession {
    const era = this.#chooseEra(message, this.#isUsed);
    const known = this.#sessions.get(era);
    if (known !== undefined) return known;
    const session = era.open(this.#transport);
    this.#sessions.set(era, session);
    return session;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const session of this.#sessions.values()) session.close();
  }
}
