import { isNumber, isString, readString, readText, type Span, stringAt, valuesAt } from '../../wire/json/json-text.js';
import type { NotificationEnvelope, RequestEnvelope } from '../../wire/mcp/envelope.js';
import { MIRRORED_NAMES, type MirroredParam } from '../../wire/mcp/mirrored-params.js';

/**
 * Headers that repeat parts of the body, so that a proxy can route a request without reading it. See "Request Metadata" on the
 * page basic/transports/streamable-http of revision 2026-07-28. Earlier revisions have only `mcp-protocol-version`, which
 * `HttpOutput` sets.
 *
 * @param message the message as it is sent: names are those of the server, not the exposed ones
 * @param paramsOf returns the parameters of a tool that headers must repeat
 * @param isModern whether the connection is of revision 2026-07-28 or later, because some notifications do not name it
 */
export function metadataHeaders(
  message: RequestEnvelope | NotificationEnvelope,
  paramsOf: (tool: string) => readonly MirroredParam[],
  isModern = false,
): Readonly<Record<string, string>> {
  const { method, bytes, tokens } = message;
  const version = stringAt(bytes, tokens.eraVersion);
  if (version === undefined && !isModern) return {};
  const headers: Record<string, string> = {
    ...(version !== undefined && { 'mcp-protocol-version': version }),
    'mcp-method': encodeHeader(method),
  };
  const token = MIRRORED_NAMES.get(method);
  const name = token && stringAt(bytes, tokens[token]);
  if (name === undefined) return headers;
  headers['mcp-name'] = encodeHeader(name);
  if (token !== 'name' || message.params === undefined) return headers;
  for (const { header, path } of paramsOf(name)) {
    const value = valuesAt(bytes, message.params, ['arguments', ...path]).at(-1);
    const text = value === undefined ? undefined : primitiveText(bytes, value);
    if (text !== undefined) headers[`mcp-param-${header.toLowerCase()}`] = encodeHeader(text);
  }
  return headers;
}

/** Returns the text of a string, number or boolean. Null, objects and arrays give `undefined`, because headers do not repeat them. */
function primitiveText(bytes: Uint8Array, value: Span): string | undefined {
  if (isString(bytes, value)) return readString(bytes, value);
  const text = readText(bytes, value);
  // 1e3 is an integer, too.
  if (isNumber(bytes, value) && Number.isSafeInteger(Number(text))) return String(Number(text));
  return isNumber(bytes, value) || text === 'true' || text === 'false' ? text : undefined;
}

/** Visible ASCII and inner white space stand for themselves. Everything else, and text that looks encoded, is Base64 of UTF-8. */
function encodeHeader(value: string): string {
  const isPlain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value);
  return isPlain ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`;
}
