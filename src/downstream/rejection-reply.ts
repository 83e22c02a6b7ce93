import type { SplicedMessage } from '../json/splice.js';
import { errorMessage, NULL_ID } from '../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { Rejection } from '../mcp/envelope.js';

/** The JSON-RPC error that answers a message which cannot be read. */
export function rejectionReply({ reason, bytes, id }: Rejection): SplicedMessage {
  const code = reason === 'not-json' || reason === 'invalid-utf8' ? RPC_CODES.parseError : RPC_CODES.invalidRequest;
  const token = id === undefined ? NULL_ID : bytes.slice(id.start, id.end);
  return errorMessage(token, new RpcError(code, `Refused: ${reason}`));
}
