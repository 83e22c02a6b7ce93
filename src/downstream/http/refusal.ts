import { splice } from '../../json/splice.js';
import { errorMessage, NULL_ID } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';

/** Why a request is not served, and how HTTP says so. The message never repeats what the client sent. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The body of a refusal: an error that answers no request in particular. */
export function refusalBody({ status, message }: Refusal): Buffer {
  const code = status < 500 ? RPC_CODES.invalidRequest : RPC_CODES.internalError;
  return Buffer.from(splice(errorMessage(NULL_ID, new RpcError(code, message))));
}

/** `Retry-After` counts whole seconds, and 0 would be no wait at all. */
export function retryAfter(waitMs: number): Readonly<Record<string, string>> {
  return { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1_000))) };
}
