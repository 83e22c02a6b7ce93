import {
  type OnInternalError,
  reportInternalError,
  withErrorBoundary,
  withErrorBoundaryAsync,
} from '../../errors/error-boundary.js';
import { internalError } from '../../errors/internal-error.js';
import { inRevision } from '../../gateway/server-handshake.js';
import { toBytes } from '../../json/json-text.js';
import type { Edit, SplicedMessage } from '../../json/splice.js';
import { type IdKey, idKey } from '../../jsonrpc/id-key.js';
import { errorMessage, type MessageSink, NULL_ID, notificationMessage, resultMessage } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { Envelope, NotificationEnvelope, Rejection, RequestEnvelope, ScanEnvelope } from '../../mcp/envelope.js';
import { LISTS, type ListKind, listAskedFor } from '../../mcp/lists.js';
import { METHODS } from '../../mcp/methods.js';
import { isOlder } from '../../mcp/revisions.js';
import type { Clock } from '../../timing/clock.js';
import { Debounce } from '../../timing/debounce.js';
import type { Exchange } from '../exchange.js';
import { describeFailure } from '../failure.js';
import type {
  ClientConnection,
  DownstreamClient,
  GatewayPort,
  InputRequest,
  ServerHandshake,
  WithdrawInput,
} from '../port.js';
import { acceptBatch } from './batch.js';
import { BatchReply } from './batch-reply.js';
import { declaredCapabilities } from './declared-capabilities.js';
import { type HandshakeProfile, readProfile } from './handshake-profile.js';
import { InFlightExchanges } from './in-flight-exchanges.js';
import { type ExchangeOwner, LegacyExchange } from './legacy-exchange.js';
import { OutgoingServerRequests } from './outgoing-server-requests.js';
import { rejectionReply } from './rejection-reply.js';
import { pipeChannel, type ReplyChannel } from './reply-channel.js';

export interface LegacySessionOptions {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  readonly gateway: GatewayPort;
  /** Towards the client: what no request of its own asked for and, on a pipe, everything else. */
  readonly sink: MessageSink;
  /** Who is behind the client. */
  readonly principal: string;
  /** Called when the server below is not configured any more; the session is of no use then. */
  readonly onGone?: (() => void) | undefined;
  /** The key of the one server that the client wants to see as it is. */
  readonly server?: string | undefined;
  readonly serverInfo: { readonly name: string; readonly title?: string; readonly version: string };
  /** Told of our own errors, which fail one request and no more; without it they go on to the caller. */
  readonly onInternalError?: OnInternalError;
}

/** Changes that come together are announced together, and not more often than a client can follow. */
const ANNOUNCE_AFTER_MS = 200;
const ANNOUNCE_EVERY_MS = 2_000;

/**
 * One client that speaks a revision with a handshake (2024-11-05 to 2025-11-25): turns its requests into exchanges
 * and keeps those in flight by the id that the client gave them.
 */
export class LegacySession implements DownstreamClient {
  readonly #options: LegacySessionOptions;
  readonly #pipe: ReplyChannel;
  readonly #inFlight = new InFlightExchanges();
  /** By the notification that announces it. */
  readonly #announcements = new Map<string, Debounce>();
  readonly #listed = new Set<ListKind>();
  readonly #asked: OutgoingServerRequests;
  readonly #owner: ExchangeOwner = {
    sendUnasked: (message) => this.#sendUnasked(message),
    settled: (exchange) => this.#settled(exchange),
  };
  /** Questions of servers that may not be asked before the client says that it is ready. */
  #early: SplicedMessage[] = [];
  #connection: ClientConnection | undefined;
  #phase: 'new' | 'initialized' | 'open' | 'closed' = 'new';
  #revision: string | undefined;

  constructor(options: LegacySessionOptions) {
    this.#options = options;
    this.#pipe = pipeChannel(options.sink);
    this.#asked = new OutgoingServerRequests((message) => this.#sendUnasked(message));
  }

  get principal(): string {
    return this.#options.principal;
  }

  /** Requests that were not answered yet. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** What was agreed in `initialize`; `undefined` before. */
  get revision(): string | undefined {
    return this.#revision;
  }

  /** One line from a client at the other end of a pipe: all of the bytes, or those from `start` to `end`. */
  receive(bytes: Uint8Array, start = 0, end = bytes.length): void {
    if (this.#phase === 'closed') return;
    // In place, as below: a function for each message would cost more than the check.
    try {
      const message = this.#options.scan(bytes, start, end);
      if (message.kind !== 'rejected') this.accept(message, this.#pipe);
      else if (message.reason === 'batch') this.#receiveBatch(message);
      else if (message.reason !== 'blank') this.#options.sink.send(rejectionReply(message));
    } catch (error) {
      reportInternalError(error, this.#options.onInternalError);
    }
  }

  /** One message; what it causes goes to `reply`. Returns whether that will be given an answer. */
  accept(message: Envelope, reply: ReplyChannel): boolean {
    const { onInternalError } = this.#options;
    if (message.kind === 'request') this.#request(message, reply);
    else if (message.kind === 'notification') withErrorBoundary(() => this.#notification(message), onInternalError);
    else withErrorBoundary(() => this.#asked.answered(message), onInternalError);
    return message.kind === 'request';
  }

  /** Answers for a line that was too long to be read. */
  refuseOversized(maxBytes: number): void {
    const message = `Message larger than the limit of ${maxBytes} bytes`;
    this.#options.sink.send(errorMessage(NULL_ID, new RpcError(RPC_CODES.invalidRequest, message)));
  }

  /** A client that has not listed yet has nothing to be told: its first list will be the new one. */
  listChanged(kind: ListKind): void {
    if (this.#phase === 'open' && this.#listed.has(kind)) this.#announcement(LISTS[kind].changed).request();
  }

  gone(): void {
    this.#options.onGone?.();
  }

  ask(input: InputRequest, via: Exchange | undefined): WithdrawInput {
    return this.#asked.ask(input, via);
  }

  notify({ bytes, span }: NotificationEnvelope, edits: readonly Edit[] = []): void {
    if (this.#phase === 'open') this.#options.sink.send({ bytes, span, edits });
  }

  /** The client is gone: what it asked for is cancelled. */
  close(): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#asked.close();
    for (const announcement of this.#announcements.values()) announcement.close();
    for (const exchange of this.#inFlight.all()) exchange.cancel();
    this.#connection?.close();
  }

  #receiveBatch(batch: Rejection): void {
    const { scan, sink } = this.#options;
    const received = acceptBatch({ batch, scan, session: this, replyFor: (answers) => new BatchReply(sink, answers) });
    if ('refused' in received) sink.send(received.refused);
  }

  #request(request: RequestEnvelope, reply: ReplyChannel): void {
    const key = idKey(request.bytes, request.id);
    if (request.method === METHODS.ping) {
      reply.answer(resultMessage(idOf(request), EMPTY_RESULT));
    } else if (request.method === METHODS.initialize) {
      withErrorBoundary(
        () => this.#initialize(request, reply),
        this.#options.onInternalError,
        () => reply.answer(errorMessage(idOf(request), internalError())),
      );
    } else if (this.#connection === undefined) {
      refuse(reply, idOf(request), RPC_CODES.invalidParams, 'The session has to begin with initialize');
    } else if (reply.isPipe === true && this.#inFlight.has(key)) {
      // The first one keeps its answer, so the client gets two messages with this id; it asked twice.
      refuse(reply, idOf(request), RPC_CODES.invalidRequest, 'A request with this id is in flight already');
    } else {
      this.#serve(request, key, reply, this.#connection);
    }
  }

  #serve(request: RequestEnvelope, key: IdKey, reply: ReplyChannel, connection: ClientConnection): void {
    const { clock, onInternalError } = this.#options;
    const exchange = new LegacyExchange({ request, client: this, key, reply, clock, owner: this.#owner });
    this.#inFlight.add(key, exchange);
    try {
      connection.serve(exchange);
    } catch (error) {
      reportInternalError(error, onInternalError);
      exchange.fail(internalError());
    }
  }

  #settled(exchange: LegacyExchange): void {
    this.#inFlight.delete(exchange.key, exchange);
    const list = listAskedFor(exchange.request.method);
    if (list !== undefined) this.#listed.add(list);
  }

  /** Not before the client has said that it is ready. */
  #sendUnasked(message: SplicedMessage): void {
    if (this.#phase === 'open') this.#options.sink.send(message);
    else this.#early.push(message);
  }

  #announcement(method: string): Debounce {
    const known = this.#announcements.get(method);
    if (known !== undefined) return known;
    const { clock, sink } = this.#options;
    const run = () => sink.send(notificationMessage(method));
    const made = new Debounce({ clock, delayMs: ANNOUNCE_AFTER_MS, everyMs: ANNOUNCE_EVERY_MS, run });
    this.#announcements.set(method, made);
    return made;
  }

  #initialize(request: RequestEnvelope, reply: ReplyChannel): void {
    const { gateway, server, serverInfo } = this.#options;
    const id = idOf(request);
    if (this.#phase !== 'new') {
      refuse(reply, id, RPC_CODES.invalidRequest, 'The session is initialized already');
      return;
    }
    this.#phase = 'initialized';
    const profile = readProfile(request);
    this.#asked.declare(profile.capabilities);
    const connection = gateway.connect(this, { profile, server });
    this.#connection = connection;
    if (connection.initializeResult !== undefined) {
      const initializeResult = this.#answerAsServer({ id, profile, reply }, connection, connection.initializeResult);
      void withErrorBoundaryAsync(initializeResult, this.#options.onInternalError, () =>
        reply.answer(errorMessage(id, internalError())),
      );
      return;
    }
    this.#revision = profile.protocolVersion;
    const { instructions, offered } = connection;
    const capabilities = declaredCapabilities(this.#revision, offered);
    const result = { protocolVersion: this.#revision, capabilities, serverInfo, instructions };
    reply.answer(resultMessage(id, toBytes(JSON.stringify(result))));
  }

  /** In the words of the only server that the client wants to see. It may try again when there are none. */
  async #answerAsServer(
    { id, profile, reply }: Hello,
    connection: ClientConnection,
    initializeResult: Promise<ServerHandshake>,
  ) {
    const handshake = await initializeResult;
    if (this.#phase === 'closed') return;
    if (handshake.kind === 'initialized') {
      // A server that several clients share may have been told of a newer revision than this one speaks.
      const { protocolVersion } = profile;
      const isOld = isOlder(protocolVersion, handshake.revision);
      this.#revision = isOld ? protocolVersion : handshake.revision;
      reply.answer(resultMessage(id, isOld ? inRevision(handshake.result, protocolVersion) : handshake.result));
      return;
    }
    connection.close();
    this.#connection = undefined;
    this.#phase = 'new';
    reply.answer(errorMessage(id, new RpcError(RPC_CODES.internalError, describeFailure(handshake.failure))));
  }

  #notification(notification: NotificationEnvelope): void {
    switch (notification.method) {
      case METHODS.initialized:
        this.#initialized();
        break;
      case METHODS.cancelled:
        this.#cancel(notification);
        break;
      case METHODS.progress:
        this.#asked.progressed(notification);
        break;
      default:
        this.#connection?.notified(notification);
    }
  }

  #initialized(): void {
    if (this.#phase !== 'initialized') return;
    this.#phase = 'open';
    for (const message of this.#early.splice(0)) this.#options.sink.send(message);
  }

  #cancel(notification: NotificationEnvelope): void {
    const { requestId } = notification.tokens;
    if (requestId === undefined) return;
    const [exchange, ...others] = this.#inFlight.withId(idKey(notification.bytes, requestId));
    // Of several requests with one id, nobody can say which was meant.
    if (others.length === 0) exchange?.cancel(notification);
  }
}

/** An `initialize` that waits for its answer. */
interface Hello {
  readonly id: Uint8Array;
  readonly profile: HandshakeProfile;
  readonly reply: ReplyChannel;
}

const EMPTY_RESULT = toBytes('{}');

/** As it is spelt. */
function idOf({ bytes, id }: RequestEnvelope): Uint8Array {
  return bytes.subarray(id.start, id.end);
}

function refuse(reply: ReplyChannel, id: Uint8Array, code: number, message: string): void {
  reply.answer(errorMessage(id, new RpcError(code, message)));
}
