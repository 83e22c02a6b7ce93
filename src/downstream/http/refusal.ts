import { splice } from '../../json/splice.js';
import { errorMessage, NULL_ID } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';

/** An HTTP error answer. The message never repeats what the client sent. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The body of a refusal: a JSON-RPC error with the id `null`. */
export function refusalBody({ status, message }: Refusal): Buffer {
  const code = status < 500 ? RPC_CODES.invalidRequest : RPC_CODES.internalError;
  return Buffer.from(splice(errorMessage(NULL_ID, new RpcError(code, message))));
}

/** `Retry-After` in whole seconds, at least 1. */
export function retryAfter(waitMs: number): Readonly<Record<string, string>> {
  return { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1_000))) };
}
