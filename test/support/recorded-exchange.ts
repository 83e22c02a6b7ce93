import type { Exchange } from '../../src/gateway/exchange.js';
import type { RpcError } from '../../src/jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../src/mcp/envelope.js';
import { type Message, requestOf } from './wire.js';

/** An exchange without a session: keeps how it was answered, which must be once. */
export class RecordedExchange implements Exchange {
  readonly request: RequestEnvelope;
  /** In short: the raw answer of the child, or what the gateway said. */
  readonly answers: string[] = [];
  readonly reports: number[] = [];
  isCancelled = false;
  #listener: (notice?: NotificationEnvelope) => void = () => {};

  constructor(message: Message | string = callOf('read')) {
    this.request = requestOf(message);
  }

  get isSettled(): boolean {
    return this.answers.length > 0 || this.isCancelled;
  }

  get wantsProgress(): boolean {
    return this.request.tokens.requestProgressToken !== undefined;
  }

  /** The facts of the failure, if the gateway answered a tool call with one. */
  get failure(): Message | undefined {
    const [answer] = this.answers;
    return answer === undefined ? undefined : JSON.parse(answer)?._meta?.['trunkline/failure'];
  }

  relay({ bytes, result, error }: ResponseEnvelope): void {
    const span = result ?? error ?? { start: 0, end: 0 };
    this.#settle(Buffer.from(bytes.subarray(span.start, span.end)).toString());
  }

  succeed(result: Uint8Array): void {
    this.#settle(Buffer.from(result).toString());
  }

  fail(error: RpcError): void {
    this.#settle(JSON.stringify(error));
  }

  progress({ bytes, tokens }: NotificationEnvelope): void {
    const { progress } = tokens;
    if (progress !== undefined) this.reports.push(Number(Buffer.from(bytes.subarray(progress.start, progress.end))));
  }

  onCancel(listener: (notice?: NotificationEnvelope) => void): void {
    this.#listener = listener;
  }

  cancel(notice?: NotificationEnvelope): void {
    if (this.isSettled) return;
    this.isCancelled = true;
    this.#listener(notice);
  }

  #settle(answer: string): void {
    if (!this.isSettled) this.answers.push(answer);
  }
}

export function callOf(name: string, members: Message = {}): Message {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, ...members } };
}
