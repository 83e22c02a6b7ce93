import { withErrorBoundary } from '../../../errors/internal-error.js';
import { toBytes } from '../../../json/json-text.js';
import { RPC_CODES, RpcError } from '../../../jsonrpc/rpc-error.js';
import type { RequestEnvelope, ResponseEnvelope, ScanEnvelope } from '../../../mcp/envelope.js';
import { METHODS } from '../../../mcp/methods.js';
import type { DownstreamClient, GatewaySession, InputRequest, WithdrawInput } from '../../port.js';
import type { EraOptions } from '../../transport.js';
import { UNCHANGED, WireExchange } from '../../wire-exchange.js';

/** Most requests of one client that are in flight at once, so that calls find a free slot at the server. */
const MAX_IN_FLIGHT = 16;

export interface ResourceSubscriptionsOptions extends Pick<EraOptions, 'clock' | 'scan' | 'onInternalError'> {
  readonly client: DownstreamClient;
  /** The client's present session with the gateway. */
  readonly session: () => GatewaySession;
}

/** Subscribes one client to resources and unsubscribes it, with requests of the gateway's own. */
export class ResourceSubscriptions {
  readonly #options: ResourceSubscriptionsOptions;
  /** Requests that wait until fewer are in flight. */
  #queue: ResourceRequest[] = [];
  readonly #inFlight = new Set<ResourceRequest>();
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
    let isAgreed = false;
    const request = this.#request(METHODS.subscribe, uri, (agreed) => {
      isAgreed = agreed;
      settled(agreed);
    });
    return () => {
      request.cancel();
      if (isAgreed) this.#request(METHODS.unsubscribe, uri, () => {});
    };
  }

  /** Sends no more requests, because the session of a client that has left unsubscribes from everything. */
  close(): void {
    this.#isClosed = true;
    this.#queue = [];
  }

  #request(method: string, uri: string, onEnd: (agreed: boolean) => void): ResourceRequest {
    const { scan, clock, client } = this.#options;
    const end = (agreed: boolean) => {
      onEnd(agreed);
      this.#inFlight.delete(request);
      this.#next();
    };
    const request: ResourceRequest = new ResourceRequest({
      envelope: resourceRequest(method, uri, scan),
      ...{ client, clock, key: '0' },
      owner: { sendUnsolicited: () => {}, settled: () => {} },
      reply: {
        ...{ isShared: false, isUnheard: true, unwrittenBytes: 0, send: () => {}, onAbandoned: () => {} },
        answer: ({ errorCode }) => end(errorCode === undefined),
        withdraw: () => end(false),
      },
    });
    if (!this.#isClosed) this.#queue.push(request);
    this.#next();
    return request;
  }

  /** Sends what may be sent. A request may end before its call returns, and then the loop goes on here. */
  #next(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    while (this.#inFlight.size < MAX_IN_FLIGHT && this.#queue.length > 0) this.#send(this.#queue.shift());
    this.#isStarting = false;
  }

  #send(request: ResourceRequest | undefined): void {
    if (request === undefined || request.isSettled) return;
    const { session, onInternalError } = this.#options;
    this.#inFlight.add(request);
    withErrorBoundary(
      () => session().serve(request),
      onInternalError,
      () => request.fail(REFUSED),
    );
  }
}

/** A request of the gateway's own that subscribes a client to a resource or unsubscribes it. Only its outcome counts. */
class ResourceRequest extends WireExchange {
  readonly logLevel = 'off';
  readonly takesInputRequests = false;
  readonly isSuspended = false;
  protected readonly form = UNCHANGED;

  get conversation(): object {
    return this.client;
  }

  override answer(response: ResponseEnvelope): void {
    if (response.error === undefined) super.answer(response);
    else this.fail(REFUSED);
  }

  requireInput(input: InputRequest): WithdrawInput {
    input.fail(new RpcError(RPC_CODES.internalError, 'A subscription cannot ask the client'));
    return () => {};
  }
}

const REFUSED = new RpcError(RPC_CODES.internalError, 'The subscription was refused');

function resourceRequest(method: string, uri: string, scan: ScanEnvelope): RequestEnvelope {
  const request = scan(
    toBytes(JSON.stringify({ jsonrpc: '2.0', id: 'subscriptions/listen', method, params: { uri } })),
  );
  if (request.kind !== 'request') throw new Error('Not a request');
  return request;
}
