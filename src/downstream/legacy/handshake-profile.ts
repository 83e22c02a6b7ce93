import { isObject, isString, readString, readText, type Span, toBytes } from '../../json/json-text.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { RequestEnvelope } from '../../mcp/envelope.js';
import { type LegacyRevision, negotiateRevision } from '../../mcp/revisions.js';

/** A client that speaks a revision with a handshake, by its `initialize`. */
export interface HandshakeProfile extends ClientProfile {
  readonly protocolVersion: LegacyRevision;
}

/** What a client says of itself. */
export function readProfile({ bytes, tokens }: RequestEnvelope): HandshakeProfile {
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
