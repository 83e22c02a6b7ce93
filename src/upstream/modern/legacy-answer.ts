import { isString, readString, readText, toBytes, valuesAt } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';
import { RPC_CODES } from '../../jsonrpc/rpc-error.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import { withoutResultMembers } from '../../mcp/era-members.js';
import { METHODS } from '../../mcp/methods.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import { LATEST_LEGACY_REVISION, resourceNotFoundCode } from '../../mcp/revisions.js';
import { sentText } from './leg.js';

/** What to replace in a modern server's response before a client with a handshake gets it. */
export function legacyAnswer(
  response: ResponseEnvelope,
  request: RelayedRequest,
  sent: readonly Edit[],
): readonly Edit[] {
  if (response.error === undefined) return withoutResultMembers(response);
  return request.method === METHODS.readResource ? notFound(response, sentText(request, sent, 'uri')) : [];
}

/**
 * Modern servers report an unknown resource as invalid params, and name the resource. The code alone can mean anything
 * else, such as a URI that is none.
 */
function notFound({ bytes, error, tokens: { errorCode } }: ResponseEnvelope, uri: string | undefined): readonly Edit[] {
  if (error === undefined || errorCode === undefined) return [];
  if (readText(bytes, errorCode) !== String(RPC_CODES.invalidParams)) return [];
  const named = valuesAt(bytes, error, ['data', 'uri']);
  const isSame = named.some((span) => isString(bytes, span) && readString(bytes, span) === uri);
  return isSame ? [{ span: errorCode, text: NOT_FOUND }] : [];
}

const NOT_FOUND = toBytes(String(resourceNotFoundCode(LATEST_LEGACY_REVISION)));
