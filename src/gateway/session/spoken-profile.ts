import { isObject, isString, readString, readText, type Span, toBytes } from '../../jsonrpc/json-text.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { RequestEnvelope } from '../../mcp/envelope.js';
import { type LegacyRevision, negotiateRevision } from '../../mcp/revisions.js';

/** A client that speaks a revision with a handshake, by its `initialize`. */
export interface SpokenProfile extends ClientProfile {
  readonly protocolVersion: LegacyRevision;
}

/** What a client says of itself. */
export function readProfile({ bytes, tokens }: RequestEnvelope): SpokenProfile {
  const { protocolVersion: version } = tokens;
  const named = version !== undefined && isString(bytes, version) ? readString(bytes, version) : undefined;
  const spelt = {
    capabilities: objectAt(bytes, tokens.capabilities),
    clientInfo: objectAt(bytes, tokens.clientInfo),
  };
  return {
    protocolVersion: negotiateRevision(named),
    capabilities: parse(spelt.capabilities),
    clientInfo: parse(spelt.clientInfo),
    spelt,
  };
}

function objectAt(bytes: Uint8Array, span: Span | undefined): Uint8Array {
  return span !== undefined && isObject(bytes, span) ? bytes.slice(span.start, span.end) : NOTHING;
}

const NOTHING = toBytes('{}');

function parse(object: Uint8Array): Record<string, unknown> {
  return JSON.parse(readText(object, { start: 0, end: object.length })) as Record<string, unknown>;
}
