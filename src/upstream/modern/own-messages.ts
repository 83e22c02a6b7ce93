import { toBytes } from '../../json/json-text.js';
import { join } from '../../jsonrpc/message.js';
import type { RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, ResponseEnvelope, ScanEnvelope } from '../../mcp/envelope.js';
import { EnvelopeRequest } from '../../mcp/relayed-request.js';

// Messages that the gateway makes up in the place of the server or of a client.

/** A request without an id of its own. `params` is JSON; `undefined` omits the member. */
export function ownRequest(scan: ScanEnvelope, method: string, params?: Uint8Array): EnvelopeRequest {
  const head = `{"jsonrpc":"2.0","id":0,"method":${JSON.stringify(method)}`;
  const more = params === undefined ? [] : [toBytes(',"params":'), params];
  const envelope = scan(join([toBytes(head), ...more, CLOSE]));
  if (envelope.kind !== 'request') throw new Error(`Not a request: ${method}`);
  return new EnvelopeRequest(envelope);
}

/** A notification. `params` must be serializable; `undefined` omits the member. */
export function ownNotification(scan: ScanEnvelope, method: string, params?: object): NotificationEnvelope {
  const envelope = notificationWith(scan, method, params && toBytes(JSON.stringify(params)));
  if (envelope === undefined) throw new Error(`Not a notification: ${method}`);
  return envelope;
}

/** A notification with params that a server has written, as JSON; `undefined` if no client could read it. */
export function notificationWith(
  scan: ScanEnvelope,
  method: string,
  params: Uint8Array | undefined,
): NotificationEnvelope | undefined {
  const head = toBytes(`{"jsonrpc":"2.0","method":${JSON.stringify(method)}`);
  const envelope = scan(join([head, ...(params === undefined ? [] : [toBytes(',"params":'), params]), CLOSE]));
  return envelope.kind === 'notification' ? envelope : undefined;
}

/** A response with a result or an error, as JSON. */
export function ownResponse(scan: ScanEnvelope, member: 'result' | 'error', value: Uint8Array): ResponseEnvelope {
  const envelope = scan(join([toBytes(`{"jsonrpc":"2.0","id":0,"${member}":`), value, CLOSE]));
  if (envelope.kind !== 'response') throw new Error(`Not a ${member}`);
  return envelope;
}

export function errorText(error: RpcError): Uint8Array {
  return toBytes(JSON.stringify(error));
}

export const EMPTY_RESULT = toBytes('{}');
const CLOSE = toBytes('}');
