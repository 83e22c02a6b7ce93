import type { SplicedMessage } from '../../json/splice.js';
import type { MessageSink } from '../../jsonrpc/message.js';
import type { RpcError } from '../../jsonrpc/rpc-error.js';
import type { Envelope, Rejection, RequestEnvelope } from '../../mcp/envelope.js';
import type { MirroredParam } from '../port.js';
import type { ReplyChannel } from '../transport.js';

/** A client's session as the HTTP streams see it. */
export interface HttpClientSession {
  /**
   * Takes the message or the batch of one body. The reply channel may be used before this returns.
   *
   * Returns how many answers the channel will get; with none, the body is accepted without a response body. A body that
   * is not JSON-RPC is refused with an error to send instead.
   */
  receive(message: Envelope | Rejection, reply: ReplyChannel): Received;
  /** What this call must repeat in its headers. */
  mirroredParams(call: RequestEnvelope): readonly MirroredParam[];
  /** Sets the stream for unsolicited messages; `undefined` when the client closed it. */
  attach(stream: MessageSink | undefined): void;
  /** The negotiated revision, once known. */
  readonly revision: string | undefined;
  /** The client has left: its requests are cancelled. Called once. */
  close(): void;
}

/** The answers to a batch, even a single one, are an array where they are sent as one JSON text. */
export type Received = { readonly answers: number; readonly isBatch?: boolean } | { readonly refused: SplicedMessage };

/** What the HTTP transport needs to open sessions. */
export interface HttpSessionPort {
  /** Whether this message, sent without a session id, opens a session. */
  beginsSession(message: Envelope): boolean;
  /** Whether messages like this one belong to no session, so that a session id says nothing about them. */
  isSessionless(message: Envelope | Rejection): boolean;
  /** The error for a request that opens no session and belongs to none; `undefined` if it can be served without. */
  refusalWithoutSession(request: RequestEnvelope): RpcError | undefined;
  /**
   * Opens a session. `endpoint` is `undefined` for `/mcp`, the server's key for `/mcp/<key>`, or `endpointOfView` for
   * `/mcp/v/<name>`; `principal` is the authenticated subject. Returns `undefined` when there is no such server or view.
   * `onGone` is called when it is removed from the configuration.
   */
  openSession(endpoint: string | undefined, principal: string, onGone: () => void): HttpClientSession | undefined;
  isReady(): boolean;
}

/** No key of a server contains a slash. */
const VIEWS = 'v/';

export function endpointOfView(name: string): string {
  return `${VIEWS}${name}`;
}

/** The name of the view, if this is the endpoint of one. */
export function viewAt(endpoint: string | undefined): string | undefined {
  return endpoint?.startsWith(VIEWS) === true ? endpoint.slice(VIEWS.length) : undefined;
}
