import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { Edit, SplicedMessage } from '../jsonrpc/splice.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { Backend } from './backend.js';
import type { Exchange } from './exchange.js';
import type { GatewayClient } from './gateway-port.js';

/** A request of which nobody can tell whose it is: servers are asked one after the other until one knows it. */
export interface Inquiry {
  readonly candidates: readonly Backend[];
  /** Whether the answer says that the server knows nothing of it, so that nothing has happened there. */
  readonly isUnknown: (response: ResponseEnvelope) => boolean;
  /** This server knew it. */
  readonly onFound: (backend: Backend) => void;
  /** The answer when no server knows it. */
  readonly notFound: RpcError;
}

/** Asks the servers of an inquiry; `send` brings the request to one of them. */
export function askInOrder(
  exchange: Exchange,
  inquiry: Inquiry,
  send: (asked: Exchange, backend: Backend) => void,
): void {
  new Asking(exchange, inquiry, send).next();
}

/**
 * The request while servers are asked for it. Where one of them cannot answer, what is wrong with it is the answer when
 * no other knows the request: it might have.
 */
class Asking implements Exchange {
  readonly #exchange: Exchange;
  readonly #inquiry: Inquiry;
  readonly #send: (asked: Exchange, backend: Backend) => void;
  readonly #left: Backend[];
  #asked: Backend | undefined;
  #failure: RpcError | undefined;

  constructor(exchange: Exchange, inquiry: Inquiry, send: (asked: Exchange, backend: Backend) => void) {
    this.#exchange = exchange;
    this.#inquiry = inquiry;
    this.#send = send;
    this.#left = [...inquiry.candidates];
  }

  /** The next server's turn. */
  next(): void {
    if (this.#exchange.isSettled) return;
    this.#asked = this.#left.shift();
    if (this.#asked === undefined) this.#exchange.fail(this.#failure ?? this.#inquiry.notFound);
    else this.#send(this, this.#asked);
  }

  relay(response: ResponseEnvelope, edits?: readonly Edit[]): void {
    if (this.#inquiry.isUnknown(response)) {
      this.next();
      return;
    }
    if (this.#asked !== undefined) this.#inquiry.onFound(this.#asked);
    this.#exchange.relay(response, edits);
  }

  fail(error: RpcError): void {
    this.#failure ??= error;
    this.next();
  }

  get request(): RequestEnvelope {
    return this.#exchange.request;
  }

  get client(): GatewayClient {
    return this.#exchange.client;
  }

  get isSettled(): boolean {
    return this.#exchange.isSettled;
  }

  get wantsProgress(): boolean {
    return this.#exchange.wantsProgress;
  }

  get isLasting(): boolean {
    return this.#exchange.isLasting;
  }

  succeed(result: Uint8Array): void {
    this.#exchange.succeed(result);
  }

  progress(notification: NotificationEnvelope): void {
    this.#exchange.progress(notification);
  }

  outlive(): () => void {
    return this.#exchange.outlive();
  }

  send(message: SplicedMessage): void {
    this.#exchange.send(message);
  }

  onCancel(listener: (notice?: NotificationEnvelope) => void): void {
    this.#exchange.onCancel(listener);
  }
}
