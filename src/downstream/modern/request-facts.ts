import { editMembers } from '../../json/edit-members.js';
import { isObject, isString, readString, readText, type Span, toBytes, valuesAt } from '../../json/json-text.js';
import { splice } from '../../json/splice.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { NotificationEnvelope, RequestEnvelope } from '../../mcp/envelope.js';
import { isLogLevel } from '../../mcp/log-levels.js';
import { isModernRevision, LATEST_LEGACY_REVISION, MODERN_CODES, MODERN_REVISIONS } from '../../mcp/revisions.js';
import type { Exchange } from '../port.js';

/** A message that states its client: each request, and a notification for the client's servers. */
export type StatingMessage = RequestEnvelope | NotificationEnvelope;

/** Refuses a request whose `_meta` lacks a required member or has a wrong one; `undefined` if it can be served. */
export function refusedFacts({ bytes, tokens }: StatingMessage): RpcError | undefined {
  const { eraVersion, eraCapabilities, eraClientInfo } = tokens;
  if (eraVersion === undefined || !isString(bytes, eraVersion)) return missing('protocolVersion', 'a string');
  const requested = readString(bytes, eraVersion);
  if (!isModernRevision(requested)) {
    const data = { supported: MODERN_REVISIONS, requested };
    return new RpcError(MODERN_CODES.unsupportedRevision, 'Unsupported protocol version', data);
  }
  if (eraCapabilities === undefined || !isObject(bytes, eraCapabilities)) {
    return missing('clientCapabilities', 'an object');
  }
  if (eraClientInfo !== undefined && !isObject(bytes, eraClientInfo)) return missing('clientInfo', 'an object');
  return undefined;
}

function missing(name: string, kind: string): RpcError {
  return new RpcError(RPC_CODES.invalidParams, `_meta["io.modelcontextprotocol/${name}"] must be ${kind}`);
}

/** Returns the same text for requests whose clients state the same about themselves. */
export function factsKey({ bytes, tokens: { eraCapabilities, eraClientInfo } }: StatingMessage): string {
  return `${textAt(bytes, eraCapabilities)}\n${textAt(bytes, eraClientInfo)}`;
}

/**
 * Reads the facts that a request states about its client. Servers with a handshake get them as if the client spoke the
 * latest revision with a handshake, so that clients of both eras share the servers.
 */
export function readProfile({ bytes, tokens: { eraCapabilities, eraClientInfo } }: StatingMessage): ClientProfile {
  const raw = {
    capabilities: withoutRootChanges(bytesAt(bytes, eraCapabilities) ?? NO_MEMBERS),
    clientInfo: bytesAt(bytes, eraClientInfo) ?? UNNAMED,
  };
  return {
    protocolVersion: LATEST_LEGACY_REVISION,
    capabilities: parse(raw.capabilities),
    clientInfo: parse(raw.clientInfo),
    raw,
  };
}

/** Removes `roots.listChanged`, because these clients have no notification for it. */
function withoutRootChanges(capabilities: Uint8Array): Uint8Array {
  const span = { start: 0, end: capabilities.length };
  const removes = (name: string) => name === 'listChanged';
  const edits = valuesAt(capabilities, span, ['roots']).flatMap((roots) =>
    isObject(capabilities, roots) ? editMembers(capabilities, roots, { removes }) : [],
  );
  return edits.length === 0 ? capabilities : splice({ bytes: capabilities, span, edits });
}

/** Without a level, a client gets no log messages. See the page server/utilities/logging of revision 2026-07-28. */
export function requestedLogLevel({ bytes, tokens: { eraLogLevel } }: RequestEnvelope): Exchange['logLevel'] {
  if (eraLogLevel === undefined) return 'off';
  const level = isString(bytes, eraLogLevel) ? readString(bytes, eraLogLevel) : '';
  return isLogLevel(level) ? level : 'off';
}

const NO_MEMBERS = toBytes('{}');
/** Servers require a name and a version. */
const UNNAMED = toBytes('{"name":"unnamed","version":"unknown"}');

function textAt(bytes: Uint8Array, span: Span | undefined): string {
  return span === undefined ? '' : readText(bytes, span);
}

function bytesAt(bytes: Uint8Array, span: Span | undefined): Uint8Array | undefined {
  return span === undefined ? undefined : bytes.slice(span.start, span.end);
}

function parse(object: Uint8Array): Record<string, unknown> {
  return JSON.parse(readText(object, { start: 0, end: object.length })) as Record<string, unknown>;
}
