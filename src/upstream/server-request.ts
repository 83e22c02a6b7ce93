import type { Edit } from '../json/splice.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { StdioBridge } from './stdio/stdio-bridge.js';

/** One request of a child's to a client, while it is being answered. */
export interface ServerRequest {
  readonly request: RequestEnvelope;
  /** Answers with what the client answered, untouched but for the id and the edits. */
  relay(response: ResponseEnvelope, edits: readonly Edit[]): void;
  fail(error: RpcError): void;
  /** Passes on the client's progress under the child's own token, with the edits. */
  progress(notification: NotificationEnvelope, edits: readonly Edit[]): void;
}

/** A request that came through this bridge. */
export function toServerRequest(bridge: StdioBridge, request: RequestEnvelope): ServerRequest {
  const { requestProgressToken: token } = request.tokens;
  return {
    request,
    relay: (response, edits) => bridge.answer(request, response, edits),
    fail: (error) => bridge.refuse(request, error),
    progress: (notification, edits) => {
      const span = notification.tokens.progressToken;
      if (token === undefined || span === undefined) return;
      const text = request.bytes.subarray(token.start, token.end);
      bridge.forward(notification, [{ span, text }, ...edits]);
    },
  };
}
