import type { Edit, SplicedMessage } from '../json/splice.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { Outcome, UpstreamConnection } from '../upstream/port.js';
import type { DownstreamClient } from './port.js';

/**
 * What has to be replaced in what passes between an exchange's client and its server, beyond the id, the progress token
 * and what routing replaces. Asked just before a message is passed on.
 */
export interface Translation {
  /** Of the request itself, once it is known which process it goes to. */
  request?(connection: UpstreamConnection): readonly Edit[];
  /** Of the server's answer. Calling `outlive` makes progress go on after it, until the function it returns is called. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): readonly Edit[];
  /** Of the server's progress. */
  progress(notification: NotificationEnvelope): readonly Edit[];
  /** Of the client's notice that it gives up. */
  cancel(notice: NotificationEnvelope): readonly Edit[];
  /**
   * Where the answer is only the beginning: resolves with how the request really ended. `undefined` when this is it.
   */
  goOn?(
    response: ResponseEnvelope,
    connection: UpstreamConnection,
    keepProgress: () => () => void,
  ): Promise<Outcome> | undefined;
}

/** What has to be replaced in a server's answer before the client gets it; asked just before it is relayed. */
export type EditAnswer = (response: ResponseEnvelope) => readonly Edit[];

/** What the way through the gateway does to one request and its answer. */
export interface Handling {
  /** What is replaced in the request. */
  readonly edits: readonly Edit[];
  readonly editAnswer?: EditAnswer | undefined;
  /** Why it must not reach the process that is there now; asked when it is about to. */
  readonly refusal?: (() => string | undefined) | undefined;
  /** Whether it may be served twice: should its process end before the answer, the next one gets it. */
  readonly isRepeatable?: boolean | undefined;
  /** Present when the request has to do with a task. */
  readonly translation?: Translation | undefined;
  /** Told of the answer once it has left. */
  readonly onAnswered?: ((response: ResponseEnvelope) => void) | undefined;
}

/**
 * One request of a client while it is being served: where to answer, where to report progress, whether it was
 * cancelled.
 *
 * The core knows clients by their exchanges only. What a protocol era or a transport does differently is done by
 * whoever made the exchange. Of all attempts to settle one, the first counts and the rest do nothing, so a timer, an
 * exit and an answer may race for it freely.
 */
export interface Exchange {
  readonly request: RequestEnvelope;
  /** Who asks. */
  readonly client: DownstreamClient;
  /** Answered or cancelled: nothing more goes to the client. */
  readonly isSettled: boolean;
  /** Whether the client asked to be told of progress. */
  readonly wantsProgress: boolean;
  /** It goes to this backend, named by its id, whose messages to the client are to stay in their order. */
  goesTo(source: string): void;
  /**
   * Returns a lease for a message in which the request is written to a server. Call it only if the request is needed for
   * nothing but its id and tokens after the answer: the exchange then releases its own lease with the answer. Returns
   * `undefined` if the request has no leased memory.
   */
  leaseRequest(): SplicedMessage['lease'];
  /** Answers with what a child answered, untouched but for the id and the edits. */
  relay(response: ResponseEnvelope, edits?: readonly Edit[]): void;
  /** Answers with a result of the gateway's own, as JSON. */
  succeed(result: Uint8Array): void;
  /** Answers with a JSON-RPC error. */
  fail(error: RpcError): void;
  /** Passes on a child's progress notification under the client's own token. After the answer it goes along `via`. */
  progress(notification: NotificationEnvelope, edits?: readonly Edit[], via?: Exchange): void;
  /**
   * The request has become a task: its progress is reported after the answer as well, until the function that is
   * returned is called.
   */
  keepProgress(): () => void;
  /** Sends the client something else that this request has caused, the way its answer will go. */
  send(message: SplicedMessage): void;
  /**
   * What to do when the client gives up; replaces what was to be done before. The notice is the client's own
   * notification, absent when the client simply went away.
   */
  onCancel(listener: (notice?: NotificationEnvelope) => void): void;
}
