import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import type { ListKind } from '../../mcp/lists.js';
import { MODERN_REVISIONS } from '../../mcp/revisions.js';
import type { ServerInfo } from '../declared-capabilities.js';
import type { DownstreamClient, GatewayPort, GatewaySession, InputRequest, WithdrawInput } from '../port.js';
import type { TransportSession } from '../transport.js';
import type { AnswerForm } from '../wire-exchange.js';
import { ModernForm } from './modern-form.js';

export interface ModernClientOptions {
  readonly gateway: GatewayPort;
  readonly transport: TransportSession;
  readonly profile: ClientProfile;
  readonly serverInfo: ServerInfo;
}

/**
 * The requests of one transport session that state the same about their client. The gateway gives them one session: what
 * a server with a handshake can know about its client is the same for all of them.
 */
export class ModernClient implements DownstreamClient {
  readonly revision = MODERN_REVISIONS[0];
  readonly takesPings = false;
  readonly hasSession = false;
  readonly principal: string;
  readonly profile: ClientProfile;
  readonly form: AnswerForm;
  readonly #onGone: () => void;
  #session: GatewaySession;
  /** Requests that were not answered yet. */
  inFlight = 0;

  constructor({ gateway, transport, profile, serverInfo }: ModernClientOptions) {
    const { principal, server, view, origin } = transport;
    this.principal = principal;
    this.profile = profile;
    this.#onGone = () => transport.gone();
    this.#session = gateway.open(this, { profile, server, view, origin });
    this.form = new ModernForm({ serverInfo, areListsSettled: () => this.#session.areListsSettled });
  }

  /** Whether nothing would end with the client. */
  get isIdle(): boolean {
    return this.inFlight === 0;
  }

  get session(): GatewaySession {
    return this.#session;
  }

  listChanged(_kind: ListKind): void {}

  listAnnounced(_kind: ListKind, _notification: NotificationEnvelope): void {}

  notify(_notification: NotificationEnvelope): void {}

  /** Without a request of the client's there is nothing whose answer could ask the client. */
  requireInput(input: InputRequest): WithdrawInput {
    input.fail(new RpcError(RPC_CODES.internalError, 'No request is in flight that could ask the client'));
    return () => {};
  }

  sessionReplaced(session: GatewaySession): void {
    this.#session = session;
  }

  gone(): void {
    this.#onGone();
  }

  close(): void {
    this.#session.close();
  }
}
