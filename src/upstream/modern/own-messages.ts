import { toBytes } from '../../json/json-text.js';
import { join, notificationMessage, requestMessage } from '../../jsonrpc/message.js';
import type { RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, ResponseEnvelope, ScanEnvelope } from '../../mcp/envelope.js';
import { EnvelopeRequest } from '../../mcp/relayed-request.js';

// Messages that the gateway makes up in the place of the server or of a client.

/** A request without an id of its own. `params` is JSON; `undefined` omits the member. */
export function ownRequest(scan: ScanEnvelope, method: string, params?: Uint8Array): EnvelopeRequest {
  const envelope = scan(requestMessage(0, method, params).bytes);
  if (envelope.kind !== 'request') throw new Error(`Not a request: ${method}`);
  return new EnvelopeRequest(envelope);
}

/**
 * A notification, `undefined` if no client could read it. `params` must be serializable, or bytes of JSON; `undefined` omits
 * the member.
 */
export function ownNotification(scan: ScanEnvelope, method: string, params?: object): NotificationEnvelope | undefined {
  const envelope = scan(notificationMessage(method, params).bytes);
  return envelope.kind === 'notification' ? envelope : undefined;
}

/** A response with a result or an error, as JSON. */
export function ownResponse(scan: ScanEnvelope, member: 'result' | 'error', value: Uint8Array): ResponseEnvelope {
  const envelope = scan(join([toBytes(`{"jsonrpc":"2.0","id":0,"${member}":`), value, toBytes('}')]));
  if (envelope.kind !== 'response') throw new Error(`Not a ${member}`);
  return envelope;
}

export function errorText(error: RpcError): Uint8Array {
  return toBytes(JSON.stringify(error));
}

export const EMPTY_RESULT = toBytes('{}');
