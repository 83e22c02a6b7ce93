import { type Span, toBytes } from '../../../json/json-text.js';
import type { Edit, SplicedMessage, TokenText } from '../../../json/splice.js';
import { RPC_CODES, RpcError } from '../../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../../mcp/envelope.js';
import type { METHODS } from '../../../mcp/methods.js';
import type { ParamTokens, RelayedRequest } from '../../../mcp/relayed-request.js';
import type { DownstreamClient, Exchange, InputRequest, WithdrawInput } from '../../port.js';

export interface UriExchangeOptions {
  readonly client: DownstreamClient;
  readonly method: typeof METHODS.subscribe | typeof METHODS.unsubscribe;
  readonly uri: string;
  /** Called once, with whether the server agreed. */
  readonly onEnd: (agreed: boolean) => void;
}

/** A request of the gateway's own for a client: to subscribe to a resource, or to unsubscribe. Only its outcome counts. */
export class UriExchange implements Exchange {
  readonly request: RelayedRequest;
  readonly requestId = '"subscriptions/listen"';
  readonly client: DownstreamClient;
  readonly wantsProgress = false;
  readonly logLevel = 'off';
  readonly takesInputRequests = false;
  readonly isSuspended = false;
  readonly #onEnd: UriExchangeOptions['onEnd'];
  #isSettled = false;
  #onCancel: ((notification?: NotificationEnvelope) => void) | undefined;

  constructor({ client, method, uri, onEnd }: UriExchangeOptions) {
    this.request = new UriRequest(method, uri);
    this.client = client;
    this.#onEnd = onEnd;
  }

  get conversation(): object {
    return this.client;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  answer({ error }: ResponseEnvelope): void {
    this.#end(error === undefined);
  }

  succeed(): void {
    this.#end(true);
  }

  fail(): void {
    this.#end(false);
  }

  /** Withdraws the request. */
  cancel(): void {
    if (this.#isSettled) return;
    this.#end(false);
    this.#onCancel?.();
  }

  onCancel(listener: (notification?: NotificationEnvelope) => void): void {
    this.#onCancel = listener;
  }

  requireInput(input: InputRequest): WithdrawInput {
    input.fail(new RpcError(RPC_CODES.internalError, 'A subscription cannot ask the client'));
    return () => {};
  }

  leaseRequest(): undefined {
    return undefined;
  }

  keepProgress(): () => void {
    return () => {};
  }

  route(): void {}

  progress(): void {}

  send(): void {}

  #end(agreed: boolean): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#onEnd(agreed);
  }
}

const HEAD = '{"jsonrpc":"2.0","id":';
const PARAMS = ',"params":';
const URI = '{"uri":';

/** A request whose only parameter is a URI. */
class UriRequest implements RelayedRequest {
  readonly method: string;
  readonly bytes: Uint8Array;
  readonly params: Span;
  readonly tokens: ParamTokens;

  constructor(method: string, uri: string) {
    const beforeParams = `${HEAD}0,"method":${JSON.stringify(method)}${PARAMS}`;
    this.method = method;
    this.bytes = toBytes(`${beforeParams}${URI}${JSON.stringify(uri)}}}`);
    const end = this.bytes.length - 1;
    this.params = { start: beforeParams.length, end };
    // All other members are absent.
    this.tokens = { uri: { start: beforeParams.length + URI.length, end: end - 1 } } as ParamTokens;
  }

  message({ text, part }: TokenText, edits: readonly Edit[]): SplicedMessage {
    const id = { span: { start: HEAD.length, end: HEAD.length + 1 }, text, part };
    return { bytes: this.bytes, span: { start: 0, end: this.bytes.length }, edits: [id, ...edits] };
  }
}
