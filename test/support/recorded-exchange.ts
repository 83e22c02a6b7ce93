// A request and its client without a session or gateway, for unit tests of the code that serves one request.
import type { Exchange } from '../../src/downstream/exchange.js';
import type { ClientFacts, DownstreamClient } from '../../src/downstream/port.js';
import { type Edit, type SplicedMessage, splice } from '../../src/json/splice.js';
import type { RpcError } from '../../src/jsonrpc/rpc-error.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../src/mcp/envelope.js';
import type { ListKind } from '../../src/mcp/lists.js';
import type { InputRequest } from '../../src/upstream/server-request.js';
import { type Message, requestOf } from './wire.js';

/** The facts of such a client. */
export const SOMEBODY: ClientFacts = { profile: { clientInfo: {}, capabilities: {} } };

/** A client without a session, which records its notifications. */
export class RecordedClient implements DownstreamClient {
  gone = () => {};
  readonly principal = 'somebody';
  readonly revision = '2025-11-25';
  readonly changed: ListKind[] = [];
  /** The notifications with the edits of the gateway applied. */
  readonly notices: string[] = [];

  readonly asked: InputRequest[] = [];

  ask(input: InputRequest): () => void {
    this.asked.push(input);
    return () => {};
  }

  listChanged(kind: ListKind): void {
    this.changed.push(kind);
  }

  notify({ bytes, span }: NotificationEnvelope, edits: readonly Edit[] = []): void {
    this.notices.push(Buffer.from(splice({ bytes, span, edits })).toString());
  }
}

/** An exchange without a session, which records its answer; there must be only one. */
export class RecordedExchange implements Exchange {
  readonly request: RequestEnvelope;
  readonly client: DownstreamClient;
  /** The raw answer of the server, or the error of the gateway. */
  readonly answers: string[] = [];
  readonly reports: number[] = [];
  /** Other notifications sent on the stream of the answer. */
  readonly notices: string[] = [];
  /** The calls of `passing` and of its result. */
  readonly passings: string[] = [];
  isCancelled = false;
  #listener: (notice?: NotificationEnvelope) => void = () => {};

  constructor(message: Message | string = callOf('read'), client: DownstreamClient = new RecordedClient()) {
    this.request = requestOf(message);
    this.client = client;
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

  goesTo(): void {}

  passing(): () => void {
    this.passings.push('begun');
    return () => void this.passings.push('written');
  }

  relay({ bytes, result, error }: ResponseEnvelope, edits: readonly Edit[] = []): void {
    const span = result ?? error ?? { start: 0, end: 0 };
    this.#settle(Buffer.from(splice({ bytes, span, edits })).toString());
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

  isLasting = false;

  keepProgress(): () => void {
    this.isLasting = true;
    return () => {
      this.isLasting = false;
    };
  }

  send(message: SplicedMessage): void {
    this.notices.push(Buffer.from(splice(message)).toString());
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
