import type { ClientFacts, DownstreamClient, Exchange, GatewayPort, GatewaySession } from '../downstream/port.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import { ABOUT } from './instructions.js';

/** Limit of queued requests of one client. More than a client sends while the configuration is read. */
const MAX_QUEUED = 1_024;

/**
 * Replaces the gateway until it has been composed, so that `initialize` is answered at once. Requests are queued and
 * served in order when the gateway exists.
 */
export class PendingGateway implements GatewayPort {
  #gateway: GatewayPort | undefined;
  readonly #waiting = new Set<PendingSession>();

  /** Whether a client that connected before the gateway existed is still connected. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  open(client: DownstreamClient, facts: ClientFacts): GatewaySession {
    if (this.#gateway !== undefined) return this.#gateway.open(client, facts);
    const session = new PendingSession(client, facts, () => this.#waiting.delete(session));
    this.#waiting.add(session);
    return session;
  }

  /** The gateway exists. All queued and later requests go to it. */
  become(gateway: GatewayPort): void {
    this.#gateway = gateway;
    for (const session of this.#waiting) session.become(gateway);
    this.#waiting.clear();
  }
}

/** The session of a client that connected before the gateway existed. The gateway's own session replaces it. */
class PendingSession implements GatewaySession {
  readonly offered = [];
  readonly instructions = ABOUT;
  readonly initializeResult = undefined;
  readonly #client: DownstreamClient;
  readonly #facts: ClientFacts;
  readonly #onClosed: () => void;
  #queued: Exchange[] = [];

  constructor(client: DownstreamClient, facts: ClientFacts, onClosed: () => void) {
    this.#client = client;
    this.#facts = facts;
    this.#onClosed = onClosed;
  }

  become(gateway: GatewayPort): void {
    const session = gateway.open(this.#client, this.#facts);
    this.#client.sessionReplaced(session);
    for (const exchange of this.#queued.splice(0)) if (!exchange.isSettled) session.serve(exchange);
  }

  serve(exchange: Exchange): void {
    if (this.#queued.length < MAX_QUEUED) this.#queued.push(exchange);
    else exchange.fail(new RpcError(RPC_CODES.internalError, 'Trunkline is still starting'));
  }

  /** Notifications before the gateway exists concern no server, and are dropped. */
  notified(): void {}

  close(): void {
    this.#onClosed();
  }
}
