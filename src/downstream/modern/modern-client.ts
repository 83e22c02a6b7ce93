import type { OnInternalError } from '../../errors/error-boundary.js';
import type { Edit } from '../../json/splice.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import type { ListKind } from '../../mcp/lists.js';
import { MODERN_REVISIONS } from '../../mcp/revisions.js';
import type { Clock } from '../../timing/clock.js';
import type { ServerInfo } from '../declared-capabilities.js';
import type { DownstreamClient, GatewayPort, GatewaySession, InputRequest, WithdrawInput } from '../port.js';
import type { TransportSession } from '../transport.js';
import type { AnswerForm } from '../wire-exchange.js';
import { ClientListens } from './client-listens.js';
import { ModernForm } from './modern-form.js';

export interface ModernClientOptions {
  readonly clock: Clock;
  readonly gateway: GatewayPort;
  readonly transport: TransportSession;
  readonly profile: ClientProfile;
  readonly serverInfo: ServerInfo;
  readonly onInternalError?: OnInternalError | undefined;
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
  readonly listens: ClientListens;
  readonly #onGone: () => void;
  #session: GatewaySession;
  /** Requests that were not answered yet. */
  inFlight = 0;

  constructor({ clock, gateway, transport, profile, serverInfo, onInternalError }: ModernClientOptions) {
    const { principal, server, view, origin } = transport;
    this.principal = principal;
    this.profile = profile;
    this.#onGone = () => transport.gone();
    this.listens = new ClientListens({ clock, client: this, session: () => this.#session, onInternalError });
    this.#session = gateway.open(this, { profile, server, view, origin });
    this.form = new ModernForm({ serverInfo, areListsSettled: () => this.#session.areListsSettled });
  }

  /** Whether nothing would end with the client. */
  get isIdle(): boolean {
    return this.inFlight === 0 && this.listens.size === 0;
  }

  get session(): GatewaySession {
    return this.#session;
  }

  listChanged(kind: ListKind): void {
    this.listens.listChanged(kind);
  }

  listAnnounced(kind: ListKind, notification: NotificationEnvelope): void {
    this.listens.listAnnounced(kind, notification);
  }

  notify(notification: NotificationEnvelope, edits: readonly Edit[] = []): void {
    this.listens.notify(notification, edits);
  }

  /** Without a request of the client's there is nothing whose answer could ask the client. */
  requireInput(input: InputRequest): WithdrawInput {
    input.fail(new RpcError(RPC_CODES.internalError, 'No request is in flight that could ask the client'));
    return () => {};
  }

  sessionReplaced(session: GatewaySession): void {
    this.#session = session;
  }

  gone(): void {
    this.listens.end();
    this.#onGone();
  }

  ending(): void {
    this.listens.end();
  }

  close(): void {
    this.listens.close();
    this.#session.close();
  }
}
