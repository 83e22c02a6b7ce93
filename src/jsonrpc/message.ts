import { toBytes } from '../json/json-text.js';
import type { SplicedMessage } from '../json/splice.js';
import type { RpcError } from './rpc-error.js';

/** Somewhere that messages are written to, one a line. */
export interface MessageSink {
  /**
   * `source` says whose message it is, by the id of a backend. Those of one source are written in the order of the
   * calls; one of another source may overtake them. A message without a source keeps its place among all.
   */
  send(message: SplicedMessage, source?: string): void;
  /** Bytes accepted that the other side has not taken yet. */
  readonly unwrittenBytes: number;
}

/** A message that is complete as it stands. */
export function whole(bytes: Uint8Array): SplicedMessage {
  return { bytes, span: { start: 0, end: bytes.length }, edits: [] };
}

/**
 * A request of our own. `params` must be serialisable, `undefined` leaves the member out, and bytes are JSON already.
 */
export function requestMessage(id: number, method: string, params?: unknown): SplicedMessage {
  if (!(params instanceof Uint8Array)) return whole(toBytes(JSON.stringify({ jsonrpc: '2.0', id, method, params })));
  const head = JSON.stringify({ jsonrpc: '2.0', id, method }).slice(0, -1);
  return whole(join([toBytes(`${head},"params":`), params, TAIL]));
}

export function notificationMessage(method: string, params?: unknown): SplicedMessage {
  return whole(toBytes(JSON.stringify({ jsonrpc: '2.0', method, params })));
}

/** Answers with a result that is JSON already. `id` is the raw token of the request. */
export function resultMessage(id: Uint8Array, result: Uint8Array): SplicedMessage {
  const { length } = result;
  const head = { span: { start: 0, end: 0 }, text: join([RESULT_HEAD, id, RESULT_MEMBER]) };
  const tail = { span: { start: length, end: length }, text: TAIL };
  return { bytes: result, span: { start: 0, end: length }, edits: [head, tail] };
}

/** Answers with an error. `id` is the raw token of the request, or `null` as JSON where it could not be read. */
export function errorMessage(id: Uint8Array, error: RpcError): SplicedMessage {
  return whole(join([RESULT_HEAD, id, ERROR_MEMBER, toBytes(JSON.stringify(error)), TAIL]));
}

/** The id of a message that has none that could be read. */
export const NULL_ID = toBytes('null');

const RESULT_HEAD = toBytes('{"jsonrpc":"2.0","id":');
const RESULT_MEMBER = toBytes(',"result":');
const ERROR_MEMBER = toBytes(',"error":');
const TAIL = toBytes('}');

/** The parts one after the other in a new array. */
export function join(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const joined = new Uint8Array(length);
  let position = 0;
  for (const part of parts) {
    joined.set(part, position);
    position += part.length;
  }
  return joined;
}
