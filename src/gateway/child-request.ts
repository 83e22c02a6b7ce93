import type { StdioBridge } from '../bridge/stdio-bridge.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { Edit } from '../jsonrpc/splice.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';

/** One request of a child's to a client, while it is being answered. */
export interface ChildRequest {
  readonly request: RequestEnvelope;
  /** What has to be replaced in the request before the client gets it. */
  readonly edits: readonly Edit[];
  /** Answers with what the client answered, untouched but for the id and the edits. */
  relay(response: ResponseEnvelope, edits?: readonly Edit[]): void;
  fail(error: RpcError): void;
  /** Passes on the client's progress under the child's own token. */
  progress(notification: NotificationEnvelope): void;
}

/** A request that came through this bridge. */
export function toChildRequest(bridge: StdioBridge, request: RequestEnvelope): ChildRequest {
  const { requestProgressToken: token } = request.tokens;
  return {
    request,
    edits: [],
    relay: (response, edits) => bridge.answer(request, response, edits),
    fail: (error) => bridge.refuse(request, error),
    progress: (notification) => {
      const span = notification.tokens.progressToken;
      if (token === undefined || span === undefined) return;
      bridge.forward(notification, [{ span, text: request.bytes.subarray(token.start, token.end) }]);
    },
  };
}
