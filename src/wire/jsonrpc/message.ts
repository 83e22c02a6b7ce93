import { toBytes } from '../json/json-text.js';
import { type Edit, type SplicedMessage, visitPieces } from '../json/splice.js';

/*
 * Wire: bytes and JSON-RPC, without the platform (`io/streams` alone has streams of Node). All rooms except `spec` may use it.
 *
 * A line comes out of `io/line-decoder.ts`, `jsonrpc/envelope-scanner.ts` finds its members without building values, and
 * `mcp/envelope.ts` says which members count in MCP. A message is relayed as its bytes with edits (`json/splice.ts`), and
 * written by `io/streams`. Begin with `MessageSink` here and `SplicedMessage` there.
 */

/** Receives messages and writes them, one a line. */
export interface MessageSink {
  /**
   * `source` is the id of the backend that the message is from. Messages of one source are written in the order of the
   * calls; a message of another source may overtake them. A message without a source keeps its place among all.
   */
  send(message: SplicedMessage, source?: string): void;
  /** Bytes that were sent here and that the other side has not read yet. */
  readonly unwrittenBytes: number;
}

/** A sink that knows which messages the other side cannot have read. */
export interface TrackedSink extends MessageSink {
  /** Bytes of all messages that were ever sent here. */
  readonly sentBytes: number;
  /**
   * Drops the bytes that were not written yet. Returns how many of `sentBytes` may have reached the other side. A sink that knows
   * this of each request fails the requests itself, with the reason.
   */
  close(reason?: 'exited' | 'stopped', because?: string): number;
  /** The handshake agreed on this revision. Over HTTP, every message names it from now on. */
  negotiated?(revision: string): void;
}

export interface Answer extends SplicedMessage {
  /** The code of the JSON-RPC error; absent if the answer is a result. */
  readonly errorCode?: number | undefined;
}

/** Makes a message of bytes that need no edits. */
export function unedited(bytes: Uint8Array): SplicedMessage {
  return { bytes, span: { start: 0, end: bytes.length }, edits: [] };
}

/** Makes a request of the gateway's own. `params` must be serializable, or bytes of JSON; `undefined` omits the member. */
export function requestMessage(id: number, method: string, params?: unknown): SplicedMessage {
  return withParams({ jsonrpc: '2.0', id, method }, params);
}

/** Makes a notification of the gateway's own, with `params` as in `requestMessage`. */
export function notificationMessage(method: string, params?: unknown): SplicedMessage {
  return withParams({ jsonrpc: '2.0', method }, params);
}

function withParams(members: object, params: unknown): SplicedMessage {
  if (!(params instanceof Uint8Array)) return unedited(toBytes(JSON.stringify({ ...members, params })));
  return unedited(join([toBytes(`${JSON.stringify(members).slice(0, -1)},"params":`), params, TAIL]));
}

/** Makes an answer whose result is JSON. `id` is the raw id of the request. */
export function resultMessage(id: Uint8Array, result: Uint8Array): SplicedMessage {
  const { length } = result;
  const head = { span: { start: 0, end: 0 }, text: join([RESULT_HEAD, id, RESULT_MEMBER]) };
  const tail = { span: { start: length, end: length }, text: TAIL };
  return { bytes: result, span: { start: 0, end: length }, edits: [head, tail] };
}

/** Makes an answer with an error. `id` is the raw id of the request, or `NULL_ID` if that could not be read. */
export function rpcErrorMessage(id: Uint8Array, error: RpcError): Answer {
  const message = unedited(join([RESULT_HEAD, id, ERROR_MEMBER, toBytes(JSON.stringify(error)), TAIL]));
  return { ...message, errorCode: error.code };
}

/** The id in the answer to a request whose id could not be read. */
export const NULL_ID = toBytes('null');

const RESULT_HEAD = toBytes('{"jsonrpc":"2.0","id":');
const RESULT_MEMBER = toBytes(',"result":');
const ERROR_MEMBER = toBytes(',"error":');
const TAIL = toBytes('}');

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

export function jsonArray(elements: readonly Uint8Array[]): Uint8Array {
  const parts = elements.flatMap((element, index) => (index === 0 ? [element] : [COMMA, element]));
  return join([OPEN, ...parts, CLOSE]);
}

export function jsonObject(members: readonly (readonly [name: string, value: Uint8Array])[]): Uint8Array {
  const parts = members.flatMap(([name, value], index) => {
    return [toBytes(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`), value];
  });
  return members.length === 0 ? EMPTY_RESULT : join([...parts, TAIL]);
}

/** The result of a request that is answered without content. */
export const EMPTY_RESULT = toBytes('{}');

/** The error codes of JSON-RPC 2.0 that the gateway uses. */
export const RPC_CODES = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
} as const;

/** The error that a JSON-RPC request was answered with, or is to be answered with. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }

  /** The `error` member of a response. */
  toJSON(): { code: number; message: string; data?: unknown } {
    return { code: this.code, message: this.message, ...(this.data === undefined ? {} : { data: this.data }) };
  }
}

/** Combines messages to one array, without copying their bytes. */
export function batchMessage(messages: readonly SplicedMessage[]): SplicedMessage {
  const pieces: Uint8Array[] = [OPEN];
  for (const message of messages) {
    if (pieces.length > 1) pieces.push(COMMA);
    visitPieces(message, (piece) => pieces.push(piece));
  }
  pieces.push(CLOSE);
  // The bytes are placeholders, one for each piece. An edit replaces each one by its piece.
  const edits = pieces.map((text, start): Edit => ({ span: { start, end: start + 1 }, text }));
  return { bytes: new Uint8Array(pieces.length), span: { start: 0, end: pieces.length }, edits };
}

const OPEN = toBytes('[');
const COMMA = toBytes(',');
const CLOSE = toBytes(']');
