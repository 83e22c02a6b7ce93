import type { IncomingHttpHeaders } from 'node:http';
import { isNumber, isString, readString, readText, type Span, stringAt, valuesAt } from '../../wire/json/json-text.js';
import { RPC_CODES, type RpcError } from '../../wire/jsonrpc/message.js';
import type { Envelope, NotificationEnvelope, Rejection, RequestEnvelope } from '../../wire/mcp/envelope.js';
import { isDefinedNotification } from '../../wire/mcp/methods.js';
import { MIRRORED_NAMES, type MirroredParam } from '../../wire/mcp/mirrored-params.js';
import { MODERN_CODES } from '../../wire/mcp/revisions.js';
import type { HttpRefusal } from './http-refusal.js';

/*
 * From revision 2026-07-28 on, headers repeat parts of the body, so that a proxy can route a request without reading
 * the body. A request whose headers and body differ is refused, because the proxy has decided about another request.
 * See "Request Metadata" on the page basic/transports/streamable-http.
 */

type Message = RequestEnvelope | NotificationEnvelope;

/**
 * Refuses a POST without a session. Checks the body first, then the revision, and then the headers that depend on the
 * revision. `refusalOf` returns the error of a request that its revision does not allow.
 */
export function refuseMetadata(
  message: Envelope | Rejection,
  headers: IncomingHttpHeaders,
  refusalOf: (request: RequestEnvelope) => RpcError | undefined,
): HttpRefusal | undefined {
  if (message.kind === 'rejected') return refuseUnreadable(message) ?? NO_MESSAGE;
  if (message.kind === 'response') return NO_MESSAGE;
  const refusal = refuseRevision(message, headers);
  if (refusal !== undefined) return refusal;
  const error = message.kind === 'request' ? refusalOf(message) : undefined;
  return error === undefined ? refuseNames(message, headers) : refusedBy(error, message);
}

/** Refuses a body without a session that is not a message. Returns `undefined` for a batch, because it contains messages. */
export function refuseUnreadable(rejection: Rejection): HttpRefusal | undefined {
  return rejection.reason === 'batch' ? undefined : { ...NO_JSON_RPC, ...codeOf(rejection) };
}

/**
 * Whether a notification without a session goes to servers. It must describe its client as requests do, and MCP must not define
 * its method. Notifications that MCP defines name an id or a token, which may belong to a request of another program.
 */
export function isForServers(message: Envelope | Rejection): message is NotificationEnvelope {
  const { kind } = message;
  return kind === 'notification' && !isDefinedNotification(message.method) && message.tokens.eraVersion !== undefined;
}

/** Refuses `Mcp-Param-` headers that differ from the arguments of the call. */
export function refuseParams(
  call: RequestEnvelope,
  headers: IncomingHttpHeaders,
  params: readonly MirroredParam[],
): HttpRefusal | undefined {
  for (const { header, path } of params) {
    const name = `Mcp-Param-${header}`;
    const values = call.params === undefined ? [] : valuesAt(call.bytes, call.params, ['arguments', ...path]);
    const present = values.filter((value) => isPrimitive(call.bytes, value));
    const claimed = headers[name.toLowerCase()];
    if (claimed === undefined && present.length === 0) continue;
    const decoded = typeof claimed === 'string' ? decodeHeader(claimed) : undefined;
    const isSame = present.every((value) => decoded !== undefined && saysSame(decoded, call.bytes, value));
    if (!isSame || present.length === 0) return mismatch(call, name);
  }
  return undefined;
}

export function refusedBy({ code, message, data }: RpcError, request: Message): HttpRefusal {
  return { status: 400, code, message, data, ...idOf(request) };
}

const NO_JSON_RPC: HttpRefusal = { status: 400, message: 'The body is not a JSON-RPC message' };
const NO_MESSAGE: HttpRefusal = {
  status: 400,
  message: 'From revision 2026-07-28 on, a POST brings one JSON-RPC request or notification',
};
const NO_REVISION: HttpRefusal = {
  status: 400,
  code: RPC_CODES.invalidParams,
  message: '_meta["io.modelcontextprotocol/protocolVersion"] must be the revision that MCP-Protocol-Version names',
};

function codeOf({ reason }: Rejection): { readonly code: number } {
  return { code: reason === 'not-json' ? RPC_CODES.parseError : RPC_CODES.invalidRequest };
}

/** Refuses a request that names no revision in `_meta`, or a different one in its header. */
function refuseRevision(message: Message, headers: IncomingHttpHeaders): HttpRefusal | undefined {
  const { kind, bytes, tokens } = message;
  const version = stringAt(bytes, tokens.eraVersion);
  if (version !== undefined) return refuseHeader(message, headers, 'MCP-Protocol-Version', version);
  return kind === 'request' ? { ...NO_REVISION, ...idOf(message) } : undefined;
}

/** Refuses headers that name another method, tool, prompt, resource or task than the body. */
function refuseNames(message: Message, headers: IncomingHttpHeaders): HttpRefusal | undefined {
  const { method, bytes, tokens } = message;
  const token = MIRRORED_NAMES.get(method);
  const name = token && stringAt(bytes, tokens[token]);
  return (
    refuseHeader(message, headers, 'Mcp-Method', method) ??
    (token === undefined ? undefined : refuseHeader(message, headers, 'Mcp-Name', name))
  );
}

/** Refuses a header that differs from the body. Notifications need no headers. */
function refuseHeader(
  message: Message,
  headers: IncomingHttpHeaders,
  name: 'MCP-Protocol-Version' | 'Mcp-Method' | 'Mcp-Name',
  value: string | undefined,
): HttpRefusal | undefined {
  const header = headers[name.toLowerCase()];
  if (header === undefined)
    return value === undefined || message.kind === 'notification' ? undefined : mismatch(message, name);
  const claimed = typeof header === 'string' && name === 'Mcp-Name' ? decodeHeader(header) : header;
  return claimed !== undefined && claimed === value ? undefined : mismatch(message, name);
}

function mismatch(message: Message, header: string): HttpRefusal {
  const text = `The header ${header} must say the same as the body`;
  return { status: 400, code: MODERN_CODES.headerMismatch, message: text, ...idOf(message) };
}

function idOf(message: Message): { readonly id?: Uint8Array } {
  if (message.kind === 'notification') return {};
  const { bytes, id } = message;
  return { id: bytes.slice(id.start, id.end) };
}

/**
 * Returns the value of a header that may be written as Base64. `undefined` if the Base64 is not valid UTF-8, or if the
 * header has other characters than visible ASCII and white space.
 */
function decodeHeader(header: string): string | undefined {
  if (!/^[\t\x20-\x7e]*$/.test(header)) return undefined;
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(header) ?? [];
  if (base64 === undefined) return header;
  const bytes = Buffer.from(base64, 'base64');
  // Node ignores characters that are not Base64 and accepts Base64 without padding, so the value is encoded again.
  if (bytes.toString('base64') !== base64) return undefined;
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes) ? text : undefined;
}

const TRUE = 0x74;
const FALSE = 0x66;

/** Whether the value can be repeated in a header. Null counts as no value. */
function isPrimitive(bytes: Uint8Array, value: Span): boolean {
  const first = bytes[value.start];
  return isString(bytes, value) || isNumber(bytes, value) || first === TRUE || first === FALSE;
}

function saysSame(claimed: string, bytes: Uint8Array, value: Span): boolean {
  if (isString(bytes, value)) return claimed === readString(bytes, value);
  const text = readText(bytes, value);
  return claimed === text || (isNumber(bytes, value) && isSameNumber(claimed, text));
}

/** Whether two decimal numbers are equal, such as 42 and 42.0. */
function isSameNumber(one: string, other: string): boolean {
  if (!/^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(one)) return false;
  // Beyond the safe range, different integers may be equal as numbers.
  return Number(one) === Number(other) && Number.isSafeInteger(Number(one));
}
