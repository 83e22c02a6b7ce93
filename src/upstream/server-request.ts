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

/** The same as the client that is asked sees it. */
export interface InputRequest {
  readonly request: RequestEnvelope;
  /** What has to be replaced in the request before the client gets it. */
  readonly edits: readonly Edit[];
  /** Calling `outlive` makes progress go on after the answer, until the function it returns is called. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): void;
  fail(error: RpcError): void;
  progress(notification: NotificationEnvelope): void;
}

/** Takes a question back; the notice is the server's own, absent when nobody is there any more who could give one. */
export type WithdrawInput = (notice?: NotificationEnvelope, edits?: readonly Edit[]) => void;

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
