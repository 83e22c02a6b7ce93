import { isString, readString, readText, type Span, toBytes } from '../jsonrpc/json-text.js';
import { errorMessage, type MessageSink, NULL_ID, notificationMessage, resultMessage } from '../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import type { SplicedMessage } from '../jsonrpc/splice.js';
import type { Envelope, NotificationEnvelope, Rejection, RequestEnvelope, ScanEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { type LegacyRevision, negotiateRevision } from '../mcp/revisions.js';
import type { Clock } from '../timing/clock.js';
import { Paced } from '../timing/paced.js';
import type { GatewayPort } from './gateway-port.js';
import { LegacyExchange } from './legacy-exchange.js';
import { pipeChannel, type ReplyChannel } from './reply-channel.js';

export interface LegacySessionOptions {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly gateway: GatewayPort;
  /** Towards the client: what no request of its own asked for and, on a pipe, everything else. */
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
  readonly #pipe: ReplyChannel;
  /** By the id's token; on a pipe there is one of each, while each POST may bring the same. */
  readonly #inFlight = new Map<string, Set<LegacyExchange>>();
  readonly #announce: Paced;
  readonly #unsubscribe: () => void;
  #phase: 'new' | 'initialized' | 'open' | 'closed' = 'new';
  #revision: LegacyRevision | undefined;
  #hasListedTools = false;

  constructor(options: LegacySessionOptions) {
    this.#options = options;
    this.#pipe = pipeChannel(options.sink);
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
    let count = 0;
    for (const exchanges of this.#inFlight.values()) count += exchanges.size;
    return count;
  }

  /** What was agreed in `initialize`; `undefined` before. */
  get revision(): LegacyRevision | undefined {
    return this.#revision;
  }

  /** One line from a client at the other end of a pipe. */
  receive(line: Uint8Array): void {
    if (this.#phase === 'closed') return;
    const message = this.#options.scan(line);
    if (message.kind !== 'rejected') this.accept(message, this.#pipe);
    else if (message.reason !== 'blank') this.#options.sink.send(refusalOf(message));
  }

  /** One message; what it causes goes to `reply`. Returns whether that will be given an answer. */
  accept(message: Envelope, reply: ReplyChannel): boolean {
    if (message.kind === 'request') this.#request(message, reply);
    else if (message.kind === 'notification') this.#notification(message);
    // Nothing is asked of a client in this version, so a response answers nothing.
    return message.kind === 'request';
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
    for (const exchanges of [...this.#inFlight.values()]) for (const exchange of [...exchanges]) exchange.cancel();
  }

  #request(request: RequestEnvelope, reply: ReplyChannel): void {
    const id = tokenText(request, request.id);
    if (request.method === METHODS.ping) {
      reply.answer(resultMessage(toBytes(id), EMPTY_RESULT));
    } else if (request.method === METHODS.initialize) {
      this.#initialize(request, reply);
    } else if (this.#phase === 'new') {
      refuse(reply, id, RPC_CODES.invalidParams, 'The session has to begin with initialize');
    } else if (reply === this.#pipe && this.#inFlight.has(id)) {
      // The first one keeps its answer, so the client gets two messages with this id; it asked twice.
      refuse(reply, id, RPC_CODES.invalidRequest, 'A request with this id is in flight already');
    } else {
      this.#serve(request, id, reply);
    }
  }

  #serve(request: RequestEnvelope, id: string, reply: ReplyChannel): void {
    const exchange = new LegacyExchange(request, reply, this.#options.clock, () => {
      const sameId = this.#inFlight.get(id);
      sameId?.delete(exchange);
      if (sameId?.size === 0) this.#inFlight.delete(id);
      if (request.method === METHODS.listTools) this.#hasListedTools = true;
    });
    const sameId = this.#inFlight.get(id);
    if (sameId === undefined) this.#inFlight.set(id, new Set([exchange]));
    else sameId.add(exchange);
    this.#options.gateway.serve(exchange);
  }

  #initialize(request: RequestEnvelope, reply: ReplyChannel): void {
    const { gateway, serverInfo } = this.#options;
    const id = tokenText(request, request.id);
    if (this.#phase !== 'new') {
      refuse(reply, id, RPC_CODES.invalidRequest, 'The session is initialized already');
      return;
    }
    this.#phase = 'initialized';
    const { protocolVersion } = request.tokens;
    const isNamed = protocolVersion !== undefined && isString(request.bytes, protocolVersion);
    this.#revision = negotiateRevision(isNamed ? readString(request.bytes, protocolVersion) : undefined);
    const result = {
      protocolVersion: this.#revision,
      capabilities: { tools: { listChanged: true } },
      serverInfo,
      instructions: gateway.instructions,
    };
    reply.answer(resultMessage(toBytes(id), toBytes(JSON.stringify(result))));
  }

  #notification(notification: NotificationEnvelope): void {
    if (notification.method === METHODS.initialized && this.#phase === 'initialized') this.#phase = 'open';
    const { requestId } = notification.tokens;
    if (notification.method !== METHODS.cancelled || requestId === undefined) return;
    const [exchange, ...others] = this.#inFlight.get(tokenText(notification, requestId)) ?? [];
    // Of several requests with one id, nobody can say which was meant.
    if (others.length === 0) exchange?.cancel(notification);
  }
}

/** What a client is told about a message that cannot be read. */
export function refusalOf({ reason, bytes, id }: Rejection): SplicedMessage {
  const code = reason === 'not-json' || reason === 'invalid-utf8' ? RPC_CODES.parseError : RPC_CODES.invalidRequest;
  const token = id === undefined ? NULL_ID : bytes.slice(id.start, id.end);
  return errorMessage(token, new RpcError(code, `Refused: ${reason}`));
}

const EMPTY_RESULT = toBytes('{}');

function tokenText(message: { readonly bytes: Uint8Array }, span: Span): string {
  return readText(message.bytes, span);
}

function refuse(reply: ReplyChannel, id: string, code: number, message: string): void {
  reply.answer(errorMessage(toBytes(id), new RpcError(code, message)));
}
