import type { Edit } from '../json/splice.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, ResponseEnvelope } from './envelope.js';
import type { RelayedRequest } from './relayed-request.js';

/** A server request that a client has to answer: sampling, elicitation, roots, a task of the client's. */
export interface InputRequest {
  readonly request: RelayedRequest;
  /** What to replace in the request before the client gets it. */
  readonly edits: readonly Edit[];
  /** The client's response. Calling `keepProgress` relays progress after it, until the function it returns is called. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): void;
  /** The client cannot or will not answer. */
  fail(error: RpcError): void;
  progress(notification: NotificationEnvelope): void;
}

/** Withdraws an input request. `notification` is the server's own cancellation, absent when the server is gone. */
export type WithdrawInput = (notification?: NotificationEnvelope, edits?: readonly Edit[]) => void;
