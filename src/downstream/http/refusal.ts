import { splice } from '../../json/splice.js';
import { errorMessage, NULL_ID } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';

/** An HTTP error answer. The message never repeats what the client sent. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The JSON-RPC code, if the status does not decide it. */
  readonly code?: number;
  /** The id of the refused request as raw JSON, if it was read. */
  readonly id?: Uint8Array;
}

/** The body of a refusal: a JSON-RPC error. */
export function refusalBody({ status, message, id = NULL_ID, code = codeOf(status) }: Refusal): Buffer {
  return Buffer.from(splice(errorMessage(id, new RpcError(code, message))));
}

function codeOf(status: number): number {
  return status < 500 ? RPC_CODES.invalidRequest : RPC_CODES.internalError;
}

/** `Retry-After` in whole seconds, at least 1. */
export function retryAfter(waitMs: number): Readonly<Record<string, string>> {
  return { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1_000))) };
}
