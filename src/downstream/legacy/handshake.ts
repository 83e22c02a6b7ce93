import { isObject, isString, readString, readText, type Span, toBytes, valuesAt } from '../../json/json-text.js';
import { splice } from '../../json/splice.js';
import { whole } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { RequestEnvelope } from '../../mcp/envelope.js';
import { isLegacyRequest } from '../../mcp/methods.js';
import { isOlder, type LegacyRevision, negotiateRevision } from '../../mcp/revisions.js';
import { declaredCapabilities, type ServerInfo } from '../declared-capabilities.js';
import type { GatewaySession, ServerHandshake } from '../port.js';

/** An initialize result as JSON, and the revision that it names. */
interface InitializeAnswer {
  readonly revision: string;
  readonly result: Uint8Array;
}

/** The gateway's own initialize result, for a client that sees all servers. */
export function ownResult(
  protocolVersion: LegacyRevision,
  { instructions, offered }: GatewaySession,
  serverInfo: ServerInfo,
): InitializeAnswer {
  const capabilities = declaredCapabilities(protocolVersion, offered);
  const result = toBytes(JSON.stringify({ protocolVersion, capabilities, serverInfo, instructions }));
  return { revision: protocolVersion, result };
}

/**
 * A server's initialize result, for a client that sees only that server. If clients of several revisions share the server,
 * the gateway may have requested a newer revision than this client speaks. The client gets its own revision then.
 */
export function serverResult(
  protocolVersion: LegacyRevision,
  { result, revision, requestedRevision }: Extract<ServerHandshake, { kind: 'initialized' }>,
): InitializeAnswer {
  const wasAsked = requestedRevision === protocolVersion;
  if (wasAsked || !isOlder(protocolVersion, revision)) return { revision, result };
  return { revision: protocolVersion, result: inRevision(result, protocolVersion) };
}

/** The initialize result with another revision and everything else unchanged. */
function inRevision(result: Uint8Array, revision: string): Uint8Array {
  const { span } = whole(result);
  const text = toBytes(JSON.stringify(revision));
  const edits = valuesAt(result, span, ['protocolVersion']).map((value) => ({ span: value, text }));
  return splice({ bytes: result, span, edits });
}

/**
 * The error for a request before `initialize`. A client of a later revision probes with a method that does not exist
 * here, such as `server/discover`: "Method not found" tells it to fall back to the handshake.
 */
export function refusalWithoutSession(method: string): RpcError {
  return isLegacyRequest(method)
    ? new RpcError(RPC_CODES.invalidParams, 'The session has to begin with initialize')
    : new RpcError(RPC_CODES.methodNotFound, 'Method not found. The session has to begin with initialize');
}

/** The params of a client's `initialize` request. */
export interface HandshakeProfile extends ClientProfile {
  readonly protocolVersion: LegacyRevision;
}

/** Reads the params of `initialize`. */
export function readHandshakeProfile({ bytes, tokens }: RequestEnvelope): HandshakeProfile {
  const { protocolVersion: version } = tokens;
  const named = version !== undefined && isString(bytes, version) ? readString(bytes, version) : undefined;
  const raw = {
    capabilities: objectAt(bytes, tokens.capabilities),
    clientInfo: objectAt(bytes, tokens.clientInfo),
  };
  return {
    protocolVersion: negotiateRevision(named),
    capabilities: parse(raw.capabilities),
    clientInfo: parse(raw.clientInfo),
    raw,
  };
}

function objectAt(bytes: Uint8Array, span: Span | undefined): Uint8Array {
  return span !== undefined && isObject(bytes, span) ? bytes.slice(span.start, span.end) : NOTHING;
}

const NOTHING = toBytes('{}');

function parse(object: Uint8Array): Record<string, unknown> {
  return JSON.parse(readText(object, { start: 0, end: object.length })) as Record<string, unknown>;
}
