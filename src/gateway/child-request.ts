import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';

/** One request of a child's to a client, while it is being answered. */
export interface ChildRequest {
  readonly request: RequestEnvelope;
  /** Answers with what the client answered, untouched but for the id. */
  relay(response: ResponseEnvelope): void;
  fail(error: RpcError): void;
  /** Passes on the client's progress under the child's own token. */
  progress(notification: NotificationEnvelope): void;
}
