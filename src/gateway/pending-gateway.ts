import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import type { Exchange } from './exchange.js';
import type { GatewayClient, GatewayPort } from './gateway-port.js';
import { ABOUT } from './instructions.js';

/** Far more than a client asks in the moment that it takes to read the configuration. */
const MAX_HELD = 1_024;

/**
 * Stands for the gateway while that is being put together, so that a client is greeted at once.
 *
 * Requests are held and handed on, in their order, when the gateway is there.
 */
export class PendingGateway implements GatewayPort {
  #gateway: GatewayPort | undefined;
  #held: Exchange[] = [];
  /** How each client is disconnected, once it is connected to the gateway itself. */
  readonly #clients = new Map<GatewayClient, () => void>();

  get instructions(): string {
    return this.#gateway?.instructions ?? ABOUT;
  }

  connect(client: GatewayClient): () => void {
    this.#clients.set(client, this.#gateway?.connect(client) ?? (() => {}));
    return () => {
      this.#clients.get(client)?.();
      this.#clients.delete(client);
    };
  }

  serve(exchange: Exchange): void {
    if (this.#gateway !== undefined) this.#gateway.serve(exchange);
    else if (this.#held.length < MAX_HELD) this.#held.push(exchange);
    else exchange.fail(new RpcError(RPC_CODES.internalError, 'Trunkline is still starting'));
  }

  /** Nothing runs yet that it could concern. */
  notified(client: GatewayClient, notification: NotificationEnvelope): void {
    this.#gateway?.notified(client, notification);
  }

  /** The gateway is there; from now on everything goes to it. */
  become(gateway: GatewayPort): void {
    this.#gateway = gateway;
    for (const client of this.#clients.keys()) this.#clients.set(client, gateway.connect(client));
    const held = this.#held;
    this.#held = [];
    for (const exchange of held) if (!exchange.isSettled) gateway.serve(exchange);
  }
}
