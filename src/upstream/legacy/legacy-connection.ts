import { toBytes } from '../../json/json-text.js';
import { join } from '../../jsonrpc/message.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { RequestEnvelope } from '../../mcp/envelope.js';
import { declares, type InitializeResult, readInitializeResult } from '../../mcp/initialize-result.js';
import { METHODS } from '../../mcp/methods.js';
import { isLegacyRevision, LATEST_LEGACY_REVISION } from '../../mcp/revisions.js';
import type { UpstreamConnection } from '../port.js';
import type { StdioBridge } from '../stdio/stdio-bridge.js';

export type Handshake =
  | { readonly kind: 'open'; readonly connection: UpstreamConnection }
  | { readonly kind: 'failed'; readonly reason: string };

/**
 * Opens a child that speaks one of the revisions with a handshake: `initialize`, then at once `initialized`, since
 * some servers exit on anything else in between.
 */
export async function openLegacyConnection(
  bridge: StdioBridge,
  generation: number,
  profile: ClientProfile,
  timeoutMs: number,
): Promise<Handshake> {
  const outcome = await bridge.ask(METHODS.initialize, toParams(profile), { idleMs: timeoutMs, maxMs: timeoutMs });
  if (outcome.kind === 'failed') return { kind: 'failed', reason: `initialize: ${outcome.reason}` };
  const result = readInitializeResult(outcome.response);
  if (typeof result === 'string') return { kind: 'failed', reason: result };
  if (!isLegacyRevision(result.protocolVersion)) {
    const spoken = JSON.stringify(result.protocolVersion) ?? 'none';
    return { kind: 'failed', reason: `initialize: the server chose protocol version ${spoken}, which is unknown here` };
  }
  bridge.notify(METHODS.initialized);
  return { kind: 'open', connection: new LegacyConnection(bridge, generation, result) };
}

function toParams({ protocolVersion = LATEST_LEGACY_REVISION, clientInfo, capabilities, raw }: ClientProfile): unknown {
  if (raw === undefined) return { protocolVersion, capabilities, clientInfo };
  const head = toBytes(`{"protocolVersion":${JSON.stringify(protocolVersion)},"capabilities":`);
  return join([head, raw.capabilities, toBytes(',"clientInfo":'), raw.clientInfo, toBytes('}')]);
}

/** Answers what a child asks and what needs no client for an answer. Returns whether it was such a request. */
export function answerLegacyServer(bridge: StdioBridge, request: RequestEnvelope): boolean {
  if (request.method !== METHODS.ping) return false;
  bridge.respond(request, EMPTY_RESULT);
  return true;
}

const EMPTY_RESULT = toBytes('{}');

class LegacyConnection implements UpstreamConnection {
  readonly generation: number;
  readonly revision: string;
  readonly instructions: string | undefined;
  readonly initializeResult: Uint8Array;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly relay: UpstreamConnection['relay'];
  readonly ask: UpstreamConnection['ask'];
  readonly forward: UpstreamConnection['forward'];
  readonly #bridge: StdioBridge;

  constructor(
    bridge: StdioBridge,
    generation: number,
    { raw, protocolVersion, instructions, capabilities }: InitializeResult,
  ) {
    this.initializeResult = raw;
    this.#bridge = bridge;
    this.generation = generation;
    this.revision = protocolVersion;
    this.instructions = instructions;
    this.capabilities = capabilities;
    this.relay = bridge.relay.bind(bridge);
    this.ask = bridge.ask.bind(bridge);
    this.forward = bridge.forward.bind(bridge);
  }

  offers(capability: string): boolean {
    return declares(this.capabilities, capability);
  }

  get counters(): UpstreamConnection['counters'] {
    return this.#bridge.counters;
  }

  get inFlight(): number {
    return this.#bridge.inFlight;
  }
}
