import { toBytes } from '../../wire/json/json-text.js';
import { concatEdits, type Edit } from '../../wire/json/splice.js';
import { join } from '../../wire/jsonrpc/message.js';
import { type ClientProfile, readInitializeResult } from '../../wire/mcp/handshake.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { withoutEraMembers } from '../../wire/mcp/older-revisions.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import type { RelayedRequest } from '../../wire/mcp/relayed-request.js';
import { isLegacyRevision, LATEST_LEGACY_REVISION } from '../../wire/mcp/revisions.js';
import { type Channel, type Dialect, EraConnection, failedDial, type HandshakeOptions } from '../dialect.js';
import type {
  DialOutcome,
  RequestHandler,
  RequestTimeouts,
  SentNotification,
  SentRequest,
  UpstreamConnection,
} from '../upstream-connection.js';

/** The protocol revisions up to 2025-11-25, which start with a handshake: `initialize`, then `notifications/initialized`. */
export const legacyDialect = {
  async open(
    channel: Channel,
    { generation, profile, timeoutMs }: HandshakeOptions,
  ): Promise<DialOutcome & { readonly version?: string | undefined }> {
    const requestedRevision = profile.protocolVersion ?? LATEST_LEGACY_REVISION;
    const timeouts = { idleMs: timeoutMs, maxMs: timeoutMs };
    const outcome = await channel.request(
      METHODS.initialize,
      toParams({ ...profile, protocolVersion: requestedRevision }),
      timeouts,
    );
    if (outcome.kind === 'failed') return failedDial(METHODS.initialize, outcome);
    const result = readInitializeResult(outcome.response);
    if (typeof result === 'string') return { kind: 'failed', reason: result, isRefused: true };
    if (!isLegacyRevision(result.protocolVersion)) {
      const version = JSON.stringify(result.protocolVersion) ?? 'none';
      return {
        kind: 'failed',
        isRefused: true,
        reason: `initialize: the server chose protocol version ${version}, which is unknown here`,
      };
    }
    channel.negotiated(result.protocolVersion);
    // Sent before any other message, because some servers exit if another one comes first.
    channel.sendNotification(METHODS.initialized);
    const connection = new LegacyConnection(channel, generation, requestedRevision, result);
    return { kind: 'open', connection, version: result.version };
  },
} satisfies Dialect;

function toParams({ protocolVersion, clientInfo, capabilities, raw }: ClientProfile): unknown {
  if (raw === undefined) return { protocolVersion, capabilities, clientInfo };
  const head = toBytes(`{"protocolVersion":${JSON.stringify(protocolVersion)},"capabilities":`);
  return join([head, raw.capabilities, toBytes(',"clientInfo":'), raw.clientInfo, toBytes('}')]);
}

class LegacyConnection extends EraConnection implements UpstreamConnection {
  /** Removes the members that describe a modern client, because a legacy server has them from `initialize`. */
  send(
    request: RelayedRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined {
    const all = request.tokens.eraVersion === undefined ? edits : concatEdits(edits, withoutEraMembers(request));
    return this.channel.send(request, all, timeouts, handler);
  }

  notify(notification: SentNotification, edits?: readonly Edit[]): void {
    this.channel.notify(notification, concatEdits(edits, notification.legacyEdits));
  }

  request(...request: Parameters<UpstreamConnection['request']>): Promise<Outcome> {
    return this.channel.request(...request);
  }
}
