import type { SplicedMessage } from '../../json/splice.js';
import type { MessageSink } from '../../jsonrpc/message.js';

/** Where the messages caused by one POST go. */
export interface ReplyChannel {
  /** Something on the way to the answer: progress, a log message, a request of the server. */
  send(message: SplicedMessage): void;
  /** The answer to one request of this POST; the last one ends it. */
  answer(message: SplicedMessage): void;
  /** One request of this POST gets no answer, since its client cancelled it. Counts as an answer does. */
  withdraw(): void;
  readonly unwrittenBytes: number;
  /** Whether the client left before it could be told how to resume: nobody will hear what goes this way. */
  readonly isUnheard: boolean;
}

/** A client's session as the HTTP front sees it. */
export interface HttpClientSession {
  /**
   * Feeds one JSON body: a message, or a batch for 2025-03-26. The reply channel may be used before this returns.
   *
   * Returns how many answers the channel will be given; none means that the body is accepted with nothing to say.
   * A body that is no JSON-RPC is refused with an error to send instead.
   */
  receive(body: Uint8Array, reply: ReplyChannel): Received;
  /** Where unsolicited messages go from now on; `undefined` when nobody listens. */
  attach(stream: MessageSink | undefined): void;
  /** The negotiated revision, once known. */
  readonly revision: string | undefined;
  /** The client is gone: what it asked for is cancelled. Called once. */
  close(): void;
}

/** The answers to a batch, even a single one, are an array where they are sent as one JSON text. */
export type Received = { readonly answers: number; readonly isBatch?: boolean } | { readonly refused: SplicedMessage };

/** What the HTTP front needs of whatever it is the front of. */
export interface HttpFrontPort {
  /**
   * Called for a POST whose body is an `initialize` request. `endpoint` is `undefined` for `/mcp`, or the server's key
   * for `/mcp/<key>`; `principal` is who asks, by the hash of the token. Returns `undefined` when there is no such server.
   * `onGone` is called, perhaps much later, when there is none any more.
   */
  openSession(endpoint: string | undefined, principal: string, onGone: () => void): HttpClientSession | undefined;
  isReady(): boolean;
}
