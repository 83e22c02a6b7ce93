import { type OnInternalError, withErrorBoundary } from '../../../errors/internal-error.js';
import { type Span, toBytes } from '../../../json/json-text.js';
import type { Edit, SplicedMessage, TokenText } from '../../../json/splice.js';
import { RPC_CODES, RpcError } from '../../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../../mcp/envelope.js';
import { METHODS } from '../../../mcp/methods.js';
import type { ParamTokens, RelayedRequest } from '../../../mcp/relayed-request.js';
import type { DownstreamClient, Exchange, GatewaySession, InputRequest, WithdrawInput } from '../../port.js';

/** Most requests of one client that are in flight at once, so that calls find a free slot at the server. */
const MAX_IN_FLIGHT = 16;

export interface ResourceSubscriptionsOptions {
  readonly client: DownstreamClient;
  readonly session: () => GatewaySession;
  readonly onInternalError?: OnInternalError | undefined;
}

/** Subscribes one client to resources and unsubscribes it, with requests of the gateway's own. */
export class ResourceSubscriptions {
  readonly #options: ResourceSubscriptionsOptions;
  /** Requests that wait until fewer are in flight. */
  #queue: UriExchange[] = [];
  #inFlight = 0;
  #isStarting = false;
  #isClosed = false;

  constructor(options: ResourceSubscriptionsOptions) {
    this.#options = options;
  }

  /**
   * Subscribes to a resource, and calls `settled` once with whether the server agreed. The returned function withdraws the
   * request or unsubscribes.
   */
  subscribe(uri: string, settled: (agreed: boolean) => void): () => void {
    const { client } = this.#options;
    let isAgreed = false;
    const request = new UriExchange({
      client,
      method: METHODS.subscribe,
      uri,
      onEnd: (agreed) => {
        isAgreed = agreed;
        settled(agreed);
      },
    });
    this.#enqueue(request);
    return () => {
      request.cancel();
      if (isAgreed) this.#enqueue(new UriExchange({ client, method: METHODS.unsubscribe, uri, onEnd: () => {} }));
    };
  }

  /** Sends no more requests, because the session of a client that has left unsubscribes from everything. */
  close(): void {
    this.#isClosed = true;
    this.#queue = [];
  }

  #enqueue(request: UriExchange): void {
    if (this.#isClosed) return;
    this.#queue.push(request);
    this.#next();
  }

  /** Sends what may be sent. A request may end before its call returns, and then the loop goes on here. */
  #next(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    while (this.#inFlight < MAX_IN_FLIGHT && this.#queue.length > 0) this.#send(this.#queue.shift());
    this.#isStarting = false;
  }

  #send(request: UriExchange | undefined): void {
    if (request === undefined || request.isSettled) return;
    const { session, onInternalError } = this.#options;
    this.#inFlight += 1;
    request.onSettled = () => {
      this.#inFlight -= 1;
      this.#next();
    };
    withErrorBoundary(
      () => session().serve(request),
      onInternalError,
      () => request.fail(),
    );
  }
}

interface UriExchangeOptions {
  readonly client: DownstreamClient;
  readonly method: typeof METHODS.subscribe | typeof METHODS.unsubscribe;
  readonly uri: string;
  /** Called once, with whether the server agreed. */
  readonly onEnd: (agreed: boolean) => void;
}

/** A request of the gateway's own that subscribes a client to a resource or unsubscribes it. Only its outcome counts. */
class UriExchange implements Exchange {
  readonly request: RelayedRequest;
  readonly requestId = '"subscriptions/listen"';
  readonly client: DownstreamClient;
  readonly wantsProgress = false;
  readonly logLevel = 'off';
  readonly takesInputRequests = false;
  readonly isSuspended = false;
  /** Called once, after `onEnd`. */
  onSettled: () => void = () => {};
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
    this.onSettled();
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
