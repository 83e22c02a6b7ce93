import { internalError, withErrorBoundaryAsync } from '../../errors/internal-error.js';
import { readText, toBytes } from '../../json/json-text.js';
import { isRecord } from '../../json/json-value.js';
import { rawId } from '../../jsonrpc/envelope-scanner.js';
import { errorMessage, resultMessage } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { RequestEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { MODERN_REVISIONS } from '../../mcp/revisions.js';
import { declaredCapabilities, declaredExtensions, type ServerInfo } from '../declared-capabilities.js';
import { describeFailure } from '../failure.js';
import type { ServerHandshake } from '../port.js';
import type { EraOptions, ReplyChannel, TransportSession } from '../transport.js';
import { ModernForm } from './modern-form.js';
import { readProfile } from './request-facts.js';

interface DiscoverContext extends EraOptions {
  /** Initialize result of the only server that the client sees. Absent for a client that sees all servers. */
  readonly handshake?: Promise<ServerHandshake> | undefined;
  /** Whether the client left. */
  isClosed(): boolean;
}

/**
 * Answers `server/discover` (page server/discover of revision 2026-07-28). A client that sees all servers gets the known
 * facts about them, without a session or the start of a server. A client that sees one server gets the answer of that
 * server as soon as it runs.
 */
export function answerDiscover(
  request: RequestEnvelope,
  reply: ReplyChannel,
  transport: TransportSession,
  context: DiscoverContext,
): void {
  const { handshake, serverInfo, onInternalError } = context;
  if (handshake === undefined) {
    reply.answer(resultMessage(rawId(request), ofAllServers(request, transport, context)));
    return;
  }
  // The memory of the request has another use later.
  const id = rawId(request).slice();
  const answered = handshake.then((said) => {
    if (context.isClosed()) return;
    reply.answer(
      said.kind === 'initialized'
        ? resultMessage(id, ofServer(said.result, serverInfo))
        : errorMessage(id, new RpcError(RPC_CODES.internalError, describeFailure(said.failure))),
    );
  });
  void withErrorBoundaryAsync(answered, onInternalError, () => reply.answer(errorMessage(id, internalError())));
}

function ofAllServers(
  request: RequestEnvelope,
  { server, view, origin }: TransportSession,
  { gateway, serverInfo }: EraOptions,
): Uint8Array {
  const { offered, instructions } = gateway.describe({ profile: readProfile(request), server, view, origin });
  const capabilities = declaredCapabilities(MODERN_REVISIONS[0], offered);
  return discoverResult({ capabilities, ...(instructions !== '' && { instructions }) }, serverInfo);
}

/** Makes the result from an initialize result, which the upstream side also makes for servers of this revision. */
function ofServer(initializeResult: Uint8Array, gatewayInfo: ServerInfo): Uint8Array {
  const said: unknown = JSON.parse(readText(initializeResult, { start: 0, end: initializeResult.length }));
  const { capabilities, instructions, serverInfo } = isRecord(said) ? said : {};
  const declared = isRecord(capabilities) ? capabilities : {};
  // The tasks of earlier revisions are an extension of this one.
  const { tasks: _tasks, extensions: _extensions, ...others } = declared;
  const extensions = declaredExtensions(MODERN_REVISIONS[0], [declared]);
  return discoverResult(
    { capabilities: { ...others, ...(extensions && { extensions }) }, ...(isText(instructions) && { instructions }) },
    isServerInfo(serverInfo) ? serverInfo : gatewayInfo,
  );
}

function discoverResult(
  members: { readonly capabilities: Readonly<Record<string, unknown>>; readonly instructions?: string },
  serverInfo: ServerInfo,
): Uint8Array {
  const result = toBytes(JSON.stringify({ supportedVersions: MODERN_REVISIONS, ...members }));
  return new ModernForm({ serverInfo }).result(result, METHODS.discover);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isServerInfo(value: unknown): value is ServerInfo {
  return isRecord(value) && isText(value.name) && isText(value.version);
}
