import { isString, readString, readText, type Span, toBytes } from '../jsonrpc/json-text.js';
import { errorMessage, type MessageSink, NULL_ID, notificationMessage, resultMessage } from '../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { Edit } from '../jsonrpc/splice.js';
import type {
  NotificationEnvelope,
  Rejection,
  RequestEnvelope,
  ResponseEnvelope,
  ScanEnvelope,
} from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { negotiateRevision } from '../mcp/revisions.js';
import type { Clock } from '../timing/clock.js';
import { Paced } from '../timing/paced.js';
import type { Exchange } from './exchange.js';
import type { GatewayPort } from './gateway-port.js';

export interface LegacySessionOptions {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly gateway: GatewayPort;
  /** Towards the client. */
  readonly sink: MessageSink;
  readonly serverInfo: { readonly name: string; readonly title?: string; readonly version: string };
}

/** Changes that come together are announced together, and not more often than a client can follow. */
const ANNOUNCE_AFTER_MS = 200;
const ANNOUNCE_EVERY_MS = 1_000;

/**
 * One client that speaks a revision with a handshake (2024-11-05 to 2025-11-25): turns its requests into exchanges
 * and keeps those in flight by the id that the client gave them.
 */
export class LegacySession {
  readonly #options: LegacySessionOptions;
  readonly #inFlight = new Map<string, LegacyExchange>();
  readonly #announce: Paced;
  readonly #unsubscribe: () => void;
  #phase: 'new' | 'initialized' | 'open' | 'closed' = 'new';
  #hasListedTools = false;

  constructor(options: LegacySessionOptions) {
    this.#options = options;
    this.#announce = new Paced({
      clock: options.clock,
      delayMs: ANNOUNCE_AFTER_MS,
      everyMs: ANNOUNCE_EVERY_MS,
      run: () => this.#options.sink.send(notificationMessage(METHODS.toolsChanged)),
    });
    // A client that has not listed yet has nothing to be told: its first list will be the new one.
    this.#unsubscribe = options.gateway.onToolsChanged(() => {
      if (this.#hasListedTools && this.#phase === 'open') this.#announce.request();
    });
  }

  /** Requests that were not answered yet. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** One line from the client. */
  receive(line: Uint8Array): void {
    if (this.#phase === 'closed') return;
    const message = this.#options.scan(line);
    switch (message.kind) {
      case 'request':
        this.#request(message);
        break;
      case 'notification':
        this.#notification(message);
        break;
      case 'response':
        // Nothing is asked of a client in this version, so nothing can be answered.
        break;
      case 'rejected':
        this.#reject(message);
        break;
    }
  }

  /** Answers for a line that was too long to be read. */
  refuseOversized(maxBytes: number): void {
    const message = `Message larger than the limit of ${maxBytes} bytes`;
    this.#options.sink.send(errorMessage(NULL_ID, new RpcError(RPC_CODES.invalidRequest, message)));
  }

  /** The client is gone: what it asked for is cancelled. */
  close(): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#unsubscribe();
    this.#announce.close();
    for (const exchange of [...this.#inFlight.values()]) exchange.cancel();
  }

  #request(request: RequestEnvelope): void {
    const { sink } = this.#options;
    const id = tokenText(request, request.id);
    if (request.method === METHODS.ping) {
      sink.send(resultMessage(toBytes(id), EMPTY_RESULT));
    } else if (request.method === METHODS.initialize) {
      this.#initialize(request);
    } else if (this.#phase === 'new') {
      refuse(sink, id, RPC_CODES.invalidParams, 'The session has to begin with initialize');
    } else if (this.#inFlight.has(id)) {
      // The first one keeps its answer, so the client gets two messages with this id; it asked twice.
      refuse(sink, id, RPC_CODES.invalidRequest, 'A request with this id is in flight already');
    } else {
      const exchange = new LegacyExchange(request, sink, this.#options.clock, () => {
        this.#inFlight.delete(id);
        if (request.method === METHODS.listTools) this.#hasListedTools = true;
      });
      this.#inFlight.set(id, exchange);
      this.#options.gateway.serve(exchange);
    }
  }

  #initialize(request: RequestEnvelope): void {
    const { sink, gateway, serverInfo } = this.#options;
    const id = tokenText(request, request.id);
    if (this.#phase !== 'new') {
      refuse(sink, id, RPC_CODES.invalidRequest, 'The session is initialized already');
      return;
    }
    this.#phase = 'initialized';
    const { protocolVersion } = request.tokens;
    const isNamed = protocolVersion !== undefined && isString(request.bytes, protocolVersion);
    const result = {
      protocolVersion: negotiateRevision(isNamed ? readString(request.bytes, protocolVersion) : undefined),
      capabilities: { tools: { listChanged: true } },
      serverInfo,
      instructions: gateway.instructions,
    };
    sink.send(resultMessage(toBytes(id), toBytes(JSON.stringify(result))));
  }

  #notification(notification: NotificationEnvelope): void {
    if (notification.method === METHODS.initialized && this.#phase === 'initialized') this.#phase = 'open';
    const { requestId } = notification.tokens;
    if (notification.method === METHODS.cancelled && requestId !== undefined) {
      this.#inFlight.get(tokenText(notification, requestId))?.cancel(notification);
    }
  }

  #reject({ reason, bytes, id }: Rejection): void {
    if (reason === 'blank') return;
    const code = reason === 'not-json' || reason === 'invalid-utf8' ? RPC_CODES.parseError : RPC_CODES.invalidRequest;
    const token = id === undefined ? NULL_ID : bytes.slice(id.start, id.end);
    this.#options.sink.send(errorMessage(token, new RpcError(code, `Refused: ${reason}`)));
  }
}

/**
 * Between the last progress of a request and its answer. The official client drops progress that it reads together
 * with the answer, and what a child writes in two pieces would often reach it in one.
 */
const PROGRESS_GAP_MS = 5;

const EMPTY_RESULT = toBytes('{}');

function tokenText(message: { readonly bytes: Uint8Array }, span: Span): string {
  return readText(message.bytes, span);
}

function refuse(sink: MessageSink, id: string, code: number, message: string): void {
  sink.send(errorMessage(toBytes(id), new RpcError(code, message)));
}

class LegacyExchange implements Exchange {
  readonly request: RequestEnvelope;
  readonly #sink: MessageSink;
  readonly #clock: Clock;
  readonly #onSettled: () => void;
  #isSettled = false;
  #lastProgressAt = Number.NEGATIVE_INFINITY;
  #cancelled: (notice?: NotificationEnvelope) => void = () => {};

  constructor(request: RequestEnvelope, sink: MessageSink, clock: Clock, onSettled: () => void) {
    this.request = request;
    this.#sink = sink;
    this.#clock = clock;
    this.#onSettled = onSettled;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  get wantsProgress(): boolean {
    return this.request.tokens.requestProgressToken !== undefined;
  }

  relay(response: ResponseEnvelope): void {
    const waitMs = this.#lastProgressAt + PROGRESS_GAP_MS - this.#clock.now();
    if (waitMs > 0) this.#clock.schedule(waitMs, () => this.#answer(response));
    else this.#answer(response);
  }

  #answer({ bytes, span, id }: ResponseEnvelope): void {
    if (!this.#settle()) return;
    this.#sink.send({ bytes, span, edits: [{ span: id, text: this.#ownBytes(this.request.id) }] });
  }

  succeed(result: Uint8Array): void {
    if (this.#settle()) this.#sink.send(resultMessage(this.#ownBytes(this.request.id), result));
  }

  fail(error: RpcError): void {
    if (this.#settle()) this.#sink.send(errorMessage(this.#ownBytes(this.request.id), error));
  }

  progress({ bytes, span, tokens }: NotificationEnvelope): void {
    const asked = this.request.tokens.requestProgressToken;
    if (this.#isSettled || asked === undefined || tokens.progressToken === undefined) return;
    const edits: Edit[] = [{ span: tokens.progressToken, text: this.#ownBytes(asked) }];
    this.#lastProgressAt = this.#clock.now();
    this.#sink.send({ bytes, span, edits });
  }

  onCancel(listener: (notice?: NotificationEnvelope) => void): void {
    this.#cancelled = listener;
  }

  /** The client wants no answer any more, so there will be none. */
  cancel(notice?: NotificationEnvelope): void {
    if (this.#settle()) this.#cancelled(notice);
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.#onSettled();
    return true;
  }

  #ownBytes(span: Span): Uint8Array {
    return this.request.bytes.subarray(span.start, span.end);
  }
}
