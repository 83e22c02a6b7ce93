import { valuesAt } from '../../json/json-path.js';
import { toBytes } from '../../json/json-text.js';
import { splice } from '../../json/splice.js';
import { whole } from '../../jsonrpc/message.js';
import { isOlder, type LegacyRevision } from '../../mcp/revisions.js';
import type { GatewaySession, ServerHandshake } from '../port.js';
import { declaredCapabilities } from './declared-capabilities.js';

/** The name and version that the gateway gives clients in its initialize result. */
export interface ServerInfo {
  readonly name: string;
  readonly title?: string;
  readonly version: string;
}

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
 * A server's initialize result, for a client that sees only that server. Clients share servers, so the server may have
 * negotiated a newer revision than this client speaks; the client gets its own revision then.
 */
export function serverResult(
  protocolVersion: LegacyRevision,
  { result, revision }: Extract<ServerHandshake, { kind: 'initialized' }>,
): InitializeAnswer {
  if (!isOlder(protocolVersion, revision)) return { revision, result };
  return { revision: protocolVersion, result: inRevision(result, protocolVersion) };
}

/** The initialize result with another revision and everything else unchanged. */
function inRevision(result: Uint8Array, revision: string): Uint8Array {
  const { span } = whole(result);
  const text = toBytes(JSON.stringify(revision));
  const edits = valuesAt(result, span, ['protocolVersion']).map((value) => ({ span: value, text }));
  return splice({ bytes: result, span, edits });
}
