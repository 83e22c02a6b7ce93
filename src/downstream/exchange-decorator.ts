import type { Edit, SplicedMessage } from '../json/splice.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { Exchange } from './exchange.js';
import type { DownstreamClient } from './port.js';

/** An exchange that leaves everything to another one; what it does otherwise is for its heirs to say. */
export class ExchangeDecorator implements Exchange {
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  get request(): RequestEnvelope {
    return this.#exchange.request;
  }

  get client(): DownstreamClient {
    return this.#exchange.client;
  }

  get isSettled(): boolean {
    return this.#exchange.isSettled;
  }

  get wantsProgress(): boolean {
    return this.#exchange.wantsProgress;
  }

  goesTo(source: string): void {
    this.#exchange.goesTo(source);
  }

  leaseRequest(): SplicedMessage['lease'] {
    return this.#exchange.leaseRequest();
  }

  relay(response: ResponseEnvelope, edits?: readonly Edit[]): void {
    this.#exchange.relay(response, edits);
  }

  succeed(result: Uint8Array): void {
    this.#exchange.succeed(result);
  }

  fail(error: RpcError): void {
    this.#exchange.fail(error);
  }

  progress(notification: NotificationEnvelope, edits?: readonly Edit[], via?: Exchange): void {
    this.#exchange.progress(notification, edits, via);
  }

  keepProgress(): () => void {
    return this.#exchange.keepProgress();
  }

  send(message: SplicedMessage): void {
    this.#exchange.send(message);
  }

  onCancel(listener: (notice?: NotificationEnvelope) => void): void {
    this.#exchange.onCancel(listener);
  }
}
