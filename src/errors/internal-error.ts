import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { Code } from './codes.js';

/** The error that answers a request that failed because of an internal error. The error itself is only in the log. */
export function internalError(): RpcError {
  const message =
    'Trunkline failed at this request because of a bug of its own; its log tells more. Whether the request took effect is unknown: check before repeating it.';
  const code: Code = 'TL-CALL-INTERNAL';
  return new RpcError(RPC_CODES.internalError, message, { reason: 'internal', code, outcome: 'unknown' });
}
