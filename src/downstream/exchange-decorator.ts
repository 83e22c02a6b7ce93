import type { Edit, SplicedMessage } from '../json/splice.js';
import type { RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { RelayedRequest } from '../mcp/relayed-request.js';
import type { Failure } from './failure.js';
import type { DownstreamClient, Exchange, InputRequest, WithdrawInput } from './port.js';

/** Delegates every member to another exchange. Subclasses override what they change. */
export class ExchangeDecorator implements Exchange {
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  get request(): RelayedRequest {
    return this.#exchange.request;
  }

  get requestId(): string {
    return this.#exchange.requestId;
  }

  get client(): DownstreamClient {
    return this.#exchange.client;
  }

  get conversation(): object {
    return this.#exchange.conversation;
  }

  get isSuspended(): boolean {
    return this.#exchange.isSuspended;
  }

  get isSettled(): boolean {
    return this.#exchange.isSettled;
  }

  get wantsProgress(): boolean {
    return this.#exchange.wantsProgress;
  }

  get logLevel(): Exchange['logLevel'] {
    return this.#exchange.logLevel;
  }

  get takesInputRequests(): boolean {
    return this.#exchange.takesInputRequests;
  }

  route(source: string): void {
    this.#exchange.route(source);
  }

  leaseRequest(): SplicedMessage['lease'] {
    return this.#exchange.leaseRequest();
  }

  answer(response: ResponseEnvelope, edits?: readonly Edit[], server?: Uint8Array): void {
    this.#exchange.answer(response, edits, server);
  }

  succeed(result: Uint8Array): void {
    this.#exchange.succeed(result);
  }

  fail(reason: RpcError | Failure): void {
    this.#exchange.fail(reason);
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

  requireInput(input: InputRequest): WithdrawInput {
    return this.#exchange.requireInput(input);
  }

  onCancel(listener: (notification?: NotificationEnvelope) => void): void {
    this.#exchange.onCancel(listener);
  }
}
