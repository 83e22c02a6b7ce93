import type { ClientFacts, DownstreamClient, Exchange, GatewayPort, GatewaySession } from '../downstream/port.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import { listAskedFor } from '../mcp/lists.js';
import { ABOUT } from './instructions.js';

/** Far more than a client asks in the moment that it takes to read the configuration. */
const MAX_HELD = 1_024;

/**
 * Stands for the gateway while that is being put together, so that a client is greeted at once.
 *
 * Requests are held and handed on, in their order, when the gateway is there.
 */
export class PendingGateway implements GatewayPort {
  /** Resolves once somebody who came before the gateway has asked it for a list. */
  readonly listed: Promise<void>;
  #gateway: GatewayPort | undefined;
  #onListed = () => {};
  readonly #waiting = new Set<PendingConnection>();

  constructor() {
    this.listed = new Promise((resolve) => {
      this.#onListed = resolve;
    });
  }

  /** Whether somebody came before the gateway, and is still there. */
  get isAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  open(client: DownstreamClient, facts: ClientFacts): GatewaySession {
    if (this.#gateway !== undefined) return this.#gateway.open(client, facts);
    const connection = new PendingConnection(client, facts, {
      onListed: () => this.#onListed(),
      onClosed: () => this.#waiting.delete(connection),
    });
    this.#waiting.add(connection);
    return connection;
  }

  /** The gateway is there; from now on everything goes to it. */
  become(gateway: GatewayPort): void {
    this.#gateway = gateway;
    for (const connection of this.#waiting) connection.become(gateway);
    this.#waiting.clear();
  }
}

interface PendingEvents {
  readonly onListed: () => void;
  readonly onClosed: () => void;
}

/** A client that came before the gateway. */
class PendingConnection implements GatewaySession {
  readonly offered = [];
  readonly instructions = ABOUT;
  readonly initializeResult = undefined;
  readonly #client: DownstreamClient;
  readonly #facts: ClientFacts;
  readonly #events: PendingEvents;
  #held: Exchange[] = [];
  #connection: GatewaySession | undefined;

  constructor(client: DownstreamClient, facts: ClientFacts, events: PendingEvents) {
    this.#client = client;
    this.#facts = facts;
    this.#events = events;
  }

  become(gateway: GatewayPort): void {
    const connection = gateway.open(this.#client, this.#facts);
    this.#connection = connection;
    for (const exchange of this.#held.splice(0)) if (!exchange.isSettled) this.#serve(connection, exchange);
  }

  serve(exchange: Exchange): void {
    if (this.#connection !== undefined) this.#serve(this.#connection, exchange);
    else if (this.#held.length < MAX_HELD) this.#held.push(exchange);
    else exchange.fail(new RpcError(RPC_CODES.internalError, 'Trunkline is still starting'));
  }

  /** As long as nothing runs, there is nothing that it could concern. */
  notified(notification: NotificationEnvelope): void {
    this.#connection?.notified(notification);
  }

  close(): void {
    this.#events.onClosed();
    this.#connection?.close();
  }

  #serve(connection: GatewaySession, exchange: Exchange): void {
    connection.serve(exchange);
    if (listAskedFor(exchange.request.method) !== undefined) this.#events.onListed();
  }
}
