import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';

/** What a client is told of a request that failed because of an error in Trunkline; what it was is in the log only. */
export function internalError(): RpcError {
  const message =
    'Trunkline failed at this request because of a bug of its own; its log tells more. Whether the request took effect is unknown: check before repeating it.';
  return new RpcError(RPC_CODES.internalError, message, { reason: 'internal', outcome: 'unknown' });
}
