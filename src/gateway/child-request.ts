import type { StdioBridge } from '../bridge/stdio-bridge.js';
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

/** A request that came through this bridge. */
export function toChildRequest(bridge: StdioBridge, request: RequestEnvelope): ChildRequest {
  const { requestProgressToken: token } = request.tokens;
  return {
    request,
    relay: (response) => bridge.answer(request, response),
    fail: (error) => bridge.refuse(request, error),
    progress: (notification) => {
      const span = notification.tokens.progressToken;
      if (token === undefined || span === undefined) return;
      bridge.forward(notification, [{ span, text: request.bytes.subarray(token.start, token.end) }]);
    },
  };
}
