import type { SplicedMessage } from '../json/splice.js';
import type { Answer, MessageSink } from '../jsonrpc/message.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../mcp/client-profile.js';
import type { Envelope, Rejection, RequestEnvelope } from '../mcp/envelope.js';
import type { ClientOrigin, MirroredParam } from './port.js';

/*
 * The port between transports and protocol eras. A transport (stdio, HTTP) reads messages and hands each one to
 * `EraSessions`, which chooses the era and hands the message to that era's session. Transports and eras know this file
 * and not each other.
 */

/** One client at the other end of a transport: a pipe, a socket, an HTTP session. Implemented by transports. */
export interface TransportSession {
  /** The subject that the transport authenticated. */
  readonly principal: string;
  /** The key of the one server that the client wants to see unchanged. Absent: all servers, merged. */
  readonly server?: string | undefined;
  /** The view of the configuration that the client asks for by name. */
  readonly view?: string | undefined;
  /** Where the client's process runs. Absent for clients whose environment is the gateway's own. */
  readonly origin?: ClientOrigin | undefined;
  /** The id of the first server request; 1 if absent. Larger if another process has served the client before. */
  readonly firstRequestId?: number | undefined;
  /** Whether a message that belongs to no request reaches the client now. */
  readonly isListening: boolean;
  /**
   * Sends a message that belongs to no request of the client. `source` is the id of the backend it comes from, as for a
   * `MessageSink`.
   */
  send(message: SplicedMessage, source?: string): void;
  /** The gateway has nothing left to serve. The transport ends the session. */
  gone(): void;
}

/**
 * Carries the messages that one client request causes: the pipe, or the response to the POST that brought the request.
 * `send` takes the messages that precede the answer: progress, log messages, server requests. Implemented by transports.
 */
export interface ReplyChannel extends MessageSink {
  /** Whether all requests of the session share this channel, so that no two in flight may have the same id. */
  readonly isShared: boolean;
  /** Whether the client has disconnected and cannot receive anything on this channel. */
  readonly isUnheard: boolean;
  /** Sends the answer. `source` is the same as for `send`. */
  answer(message: Answer, source?: string): void;
  /** Reports that the request gets no answer, because the client cancelled it. */
  withdraw(): void;
  /**
   * Registers what to do when the client gives the request up by closing this channel; replaces the previous listener.
   * Never called by channels of which a loss does not mean that: pipes, and responses that a client may resume.
   */
  onAbandoned(listener: () => void): void;
}

/** One client's session in one protocol era. Implemented by eras. */
export interface EraSession {
  /** The negotiated revision; `undefined` before the handshake ends. */
  readonly revision: string | undefined;
  /** What the client told about itself; `undefined` before it did. */
  readonly profile: ClientProfile | undefined;
  /** Requests that were not answered yet. */
  readonly inFlight: number;
  /** What a call repeats in headers, in revisions where calls do that. */
  mirroredParams?(call: RequestEnvelope): readonly MirroredParam[];
  /** Takes one message. Returns whether `reply` gets an answer; `reply` may be used before this returns. */
  receive(message: Envelope, reply: ReplyChannel): boolean;
  /** Takes a JSON-RPC batch. `openReply` is called with the number of answers, unless the batch is refused. */
  receiveBatch(batch: Rejection, openReply: (answers: number) => ReplyChannel): ReceivedBatch;
  /** The client has left: cancels its requests. May be called twice. */
  close(): void;
}

/** How many answers a batch gets, each of which may be withdrawn, or the error that refuses the whole batch. */
export type ReceivedBatch = { readonly answers: number; readonly isBatch: true } | { readonly refused: SplicedMessage };

/** A group of protocol revisions that share one session model. */
export interface Era {
  /** Whether clients have to begin a session before their requests are served. */
  readonly needsSession: boolean;
  /** Whether a client that has no session yet begins one with this message. */
  beginsSession(message: Envelope): boolean;
  /** The error for a request of a client that has no session yet; `undefined` if the request can be served without. */
  refusalWithoutSession(request: RequestEnvelope): RpcError | undefined;
  /** Opens a session, which lasts until its `close` is called. */
  open(transport: TransportSession): EraSession;
}

/** Chooses the era of one message. One client may use several eras; `isUsed` tells whether it has used one before. */
export type ChooseEra = (message: Envelope | Rejection, isUsed: (era: Era) => boolean) => Era;
