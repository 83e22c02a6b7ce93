import type { IncomingHttpHeaders } from 'node:http';
import { isString, readString, type Span } from '../../json/json-text.js';
import { RPC_CODES, type RpcError } from '../../jsonrpc/rpc-error.js';
import type { Envelope, NotificationEnvelope, Rejection, RequestEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { Refusal } from './refusal.js';

/*
 * The headers that repeat parts of the body, from revision 2026-07-28 on, so that a proxy can route a request without
 * reading it. A header that says something else than the body is refused: the proxy has decided about another request
 * than the one that would be served. See "Request Metadata" on the page basic/transports/streamable-http.
 */

/** The error codes of revision 2026-07-28 that go with the status 400. */
export const MODERN_CODES = { headerMismatch: -32020, missingCapability: -32021, unsupportedRevision: -32022 } as const;

/** Why a body without a session is refused before its headers are compared. */
export function refuseKind(message: Envelope | Rejection): Refusal | undefined {
  if (message.kind === 'request' || message.kind === 'notification') return undefined;
  const isRejected = message.kind === 'rejected';
  if (isRejected && message.reason === 'invalid-utf8') return NOT_JSON;
  if (isRejected && message.reason === 'not-json') return NOT_JSON;
  return NO_MESSAGE;
}

const NOT_JSON: Refusal = { status: 400, code: RPC_CODES.parseError, message: 'The body is not JSON in UTF-8' };
const NO_MESSAGE: Refusal = {
  status: 400,
  message: 'From revision 2026-07-28 on, a POST brings one JSON-RPC request or notification',
};

/** Refuses a request that names no revision in `_meta`, or another one in its header. */
export function refuseRevisionHeader(
  message: RequestEnvelope | NotificationEnvelope,
  headers: IncomingHttpHeaders,
): Refusal | undefined {
  const { bytes, tokens } = message;
  if (tokens.eraVersion === undefined || !isString(bytes, tokens.eraVersion)) {
    return message.kind === 'request' ? { ...NO_REVISION, ...idOf(message) } : undefined;
  }
  return refuseHeader(message, headers, 'MCP-Protocol-Version', tokens.eraVersion);
}

const NO_REVISION: Refusal = {
  status: 400,
  code: RPC_CODES.invalidParams,
  message: '_meta["io.modelcontextprotocol/protocolVersion"] must be a string, as MCP-Protocol-Version says',
};

/** Refuses headers that name another method, or another tool, prompt, resource or task, than the body. */
export function refuseNameHeaders(
  message: RequestEnvelope | NotificationEnvelope,
  headers: IncomingHttpHeaders,
): Refusal | undefined {
  const { method } = message;
  const named = headers['mcp-method'];
  if (named !== method && (named !== undefined || message.kind === 'request')) return mismatch(message, 'Mcp-Method');
  const token = NAME_TOKENS.get(method);
  return token === undefined ? undefined : refuseHeader(message, headers, 'Mcp-Name', message.tokens[token]);
}

/** The member of `params` that `Mcp-Name` repeats. */
const NAME_TOKENS: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = new Map([
  [METHODS.callTool, 'name'],
  [METHODS.getPrompt, 'name'],
  [METHODS.readResource, 'uri'],
  [METHODS.getTask, 'taskId'],
  [METHODS.updateTask, 'taskId'],
  [METHODS.cancelTask, 'taskId'],
]);

function refuseHeader(
  message: RequestEnvelope | NotificationEnvelope,
  headers: IncomingHttpHeaders,
  name: string,
  span: Span | undefined,
): Refusal | undefined {
  const header = headers[name.toLowerCase()];
  if (header === undefined && message.kind === 'notification') return undefined;
  const { bytes } = message;
  const value = span !== undefined && isString(bytes, span) ? readString(bytes, span) : undefined;
  const claimed = typeof header === 'string' && name === 'Mcp-Name' ? decodeHeader(header) : header;
  const isSame = header === undefined ? value === undefined : claimed !== undefined && claimed === value;
  return isSame ? undefined : mismatch(message, name);
}

/** The refusal of a request because of this header. */
export function mismatch(message: RequestEnvelope | NotificationEnvelope, header: string): Refusal {
  const text = `The header ${header} must be present and equal to what the body says`;
  return { status: 400, code: MODERN_CODES.headerMismatch, message: text, ...idOf(message) };
}

/** The refusal of a request that its era cannot serve. */
export function refusedBy({ code, message, data }: RpcError, request: RequestEnvelope): Refusal {
  return { status: 400, code, message, data, ...idOf(request) };
}

function idOf(message: RequestEnvelope | NotificationEnvelope): { readonly id?: Uint8Array } {
  if (message.kind === 'notification') return {};
  const { bytes, id } = message;
  return { id: bytes.slice(id.start, id.end) };
}

/** The value of a header, which may be written as Base64; `undefined` if it has other characters than visible ASCII and spaces. */
export function decodeHeader(header: string): string | undefined {
  if (!/^[\t\x20-\x7e]*$/.test(header)) return undefined;
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(header) ?? [];
  if (base64 === undefined) return header;
  const bytes = Buffer.from(base64, 'base64');
  // Node ignores what is not Base64, and accepts it without padding.
  if (bytes.toString('base64') !== base64) return undefined;
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes) ? text : undefined;
}
