import { isObject, isString, readString, readText, type Span, toBytes } from '../../json/json-text.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { RequestEnvelope } from '../../mcp/envelope.js';
import { type LegacyRevision, negotiateRevision } from '../../mcp/revisions.js';

/** What a client of a revision with a handshake tells in its `initialize` request. */
export interface HandshakeProfile extends ClientProfile {
  readonly protocolVersion: LegacyRevision;
}

/** Reads the params of `initialize`. */
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
