import {
  internalError,
  reportInternalError,
  withErrorBoundary,
  withErrorBoundaryAsync,
} from '../../host/errors/internal-error.js';
import { isObject, readText, type Span, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { type Edit, NumberWriter, type SplicedMessage, splice } from '../../wire/json/splice.js';
import { AnsweredRequests, CorrelationTable, RequestsById, readId } from '../../wire/jsonrpc/correlation-table.js';
import { rawId } from '../../wire/jsonrpc/envelope-scanner.js';
import {
  type Answer,
  NULL_ID,
  RPC_CODES,
  RpcError,
  resultMessage,
  rpcErrorMessage,
  unedited,
} from '../../wire/jsonrpc/message.js';
import {
  type Envelope,
  messagesOf,
  type NotificationEnvelope,
  type Rejection,
  type RequestEnvelope,
  type ResponseEnvelope,
  rejectionReply,
} from '../../wire/mcp/envelope.js';
import { type ClientProfile, profileOf } from '../../wire/mcp/handshake.js';
import { LEGACY_REQUESTS, type ListKind, METHODS, requestedList } from '../../wire/mcp/methods.js';
import { cancellation } from '../../wire/mcp/relayed-request.js';
import { isOlder, type LegacyRevision, negotiateRevision } from '../../wire/mcp/revisions.js';
import { declaredCapabilities, type ServerInfo } from '../declared-capabilities.js';
import { describeFailure } from '../failure.js';
import { canElicit, MAX_UNANSWERED, refusedInput, TOO_MANY_UNANSWERED } from '../input-requests.js';
import { ListChanges } from '../list-changes.js';
import type {
  DownstreamClient,
  ElicitationMode,
  GatewaySession,
  InputRequest,
  ServerHandshake,
  WithdrawInput,
} from '../port.js';
import type { Era, EraOptions, EraSession, ReplyChannel, TransportSession } from '../transport.js';
import { type ExchangeOwner, UNCHANGED, WireExchange } from '../wire-exchange.js';

/** The revisions with a handshake, from 2024-11-05 to 2025-11-25. A session begins with `initialize`. */
export function legacyEra(options: EraOptions): Era {
  return {
    beginsSession: (message) => message.kind === 'request' && message.method === METHODS.initialize,
    needsSession: true,
    refusalWithoutSession: ({ method }) => refusalWithoutSession(method),
    open: (transport) => new LegacySession(options, transport),
  };
}

/** One client of a revision with a handshake. Turns its requests into exchanges and tracks them by their ids. */
class LegacySession implements DownstreamClient, EraSession {
  readonly hasSession = true;
  readonly #options: EraOptions;
  readonly #transport: TransportSession;
  readonly #inFlight = new RequestsById<WireExchange>();
  readonly #listChanges: ListChanges;
  readonly #serverRequests: OutgoingServerRequests;
  readonly #owner: ExchangeOwner = {
    sendUnsolicited: (message) => this.#transport.send(message),
    settled: (exchange) => this.#settled(exchange),
  };
  /** Server requests that wait for the client's `initialized` notification, and cancellations of requests that were sent. */
  readonly #early = new Map<InputRequest, SplicedMessage>();
  #gatewaySession: GatewaySession | undefined;
  #phase: 'new' | 'initialized' | 'open' | 'closed' = 'new';
  #revision: string | undefined;
  #profile: HandshakeProfile | undefined;

  constructor(options: EraOptions, transport: TransportSession) {
    this.#options = options;
    this.#transport = transport;
    this.#listChanges = new ListChanges(options.clock, (message) => transport.send(message));
    this.#serverRequests = new OutgoingServerRequests(transport.firstRequestId);
  }

  get principal(): string {
    return this.#transport.principal;
  }

  get revision(): string | undefined {
    return this.#revision;
  }

  get profile(): HandshakeProfile | undefined {
    return this.#profile;
  }

  get takesPings(): boolean {
    return this.#phase === 'open' && this.#transport.server !== undefined && this.#transport.isListening;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  receive(message: Envelope, reply: ReplyChannel): void {
    const { onInternalError } = this.#options;
    if (message.kind === 'request') this.#request(message, reply);
    else if (message.kind === 'notification') withErrorBoundary(() => this.#notification(message), onInternalError);
    else withErrorBoundary(() => this.#serverRequests.answered(message), onInternalError);
  }

  /**
   * Passes each message of a client's batch to the session as if it had come alone. A message that cannot be read gets
   * an error. So does a request with the id of an earlier request of the batch.
   */
  receiveBatch(batch: Rejection, openReply: (answers: number) => ReplyChannel): Answer | undefined {
    if (this.#revision === undefined)
      return refuseBatch('The session has to begin with initialize, which cannot be in a batch');
    if (this.#revision !== BATCHING) return refuseBatch(`Revision ${this.#revision} has no batches`);
    const messages = messagesOf(batch, this.#options.scan);
    if (messages.length === 0) return refuseBatch('The batch is empty');
    if (messages.some(isInitialize)) return refuseBatch('initialize cannot be in a batch');

    const answers = messages.filter(({ kind }) => kind === 'request' || kind === 'rejected').length;
    const reply = openReply(answers);
    const ids = new Set<string>();
    for (const message of messages) {
      const id = message.kind === 'request' ? readText(message.bytes, message.id) : undefined;
      if (message.kind === 'rejected') reply.answer(rejectionReply(message));
      else if (id !== undefined && ids.has(id)) reply.answer(rpcErrorMessage(toBytes(id), repeatedId()));
      else this.receive(message, reply);
      if (id !== undefined) ids.add(id);
    }
    if (answers === 0) reply.withdraw();
    return undefined;
  }

  listChanged(kind: ListKind): void {
    if (this.#phase === 'open') this.#listChanges.changed(kind);
  }

  listAnnounced(kind: ListKind, { bytes, span }: NotificationEnvelope): void {
    // Copies the notification, because it may be sent after its memory was reused.
    if (this.#phase === 'open') this.#listChanges.relay(kind, unedited(bytes.slice(span.start, span.end)));
  }

  gone(): void {
    this.#transport.gone();
  }

  /** Does nothing, because the subscriptions of these revisions end with the connection. */
  ending(): void {}

  /** Asks the client on the channel of the request that caused the input, unless that request is unknown or settled. */
  requireInput(input: InputRequest, cause?: WireExchange): WithdrawInput {
    return this.#serverRequests.send(input, (message) => {
      if (cause === undefined || cause.isSettled) this.#sendUnsolicited(message, input);
      else cause.send(message);
    });
  }

  notify({ bytes, span }: NotificationEnvelope, edits: readonly Edit[] = []): void {
    if (this.#phase === 'open') this.#transport.send({ bytes, span, edits });
  }

  close(): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#serverRequests.close();
    this.#listChanges.close();
    for (const exchange of this.#inFlight.all()) exchange.cancel();
    this.#gatewaySession?.close();
  }

  sessionReplaced(session: GatewaySession): void {
    this.#gatewaySession = session;
  }

  #request(request: RequestEnvelope, reply: ReplyChannel): void {
    const key = readText(request.bytes, request.id);
    if (request.method === METHODS.ping && !this.#relaysPings) {
      reply.answer(resultMessage(rawId(request), EMPTY_OBJECT));
    } else if (request.method === METHODS.initialize) {
      withErrorBoundary(
        () => this.#initialize(request, reply),
        this.#options.onInternalError,
        () => reply.answer(rpcErrorMessage(rawId(request), internalError())),
      );
    } else if (this.#gatewaySession === undefined) {
      reply.answer(rpcErrorMessage(rawId(request), refusalWithoutSession(request.method)));
    } else if (reply.isShared && this.#inFlight.has(key)) {
      // The first request is still answered, so the client gets two messages with this id.
      refuse(reply, rawId(request), RPC_CODES.invalidRequest, 'A request with this id is in flight already');
    } else {
      this.#serve(request, key, reply, this.#gatewaySession);
    }
  }

  /** Whether pings go to the server, because the client sees the server unchanged. */
  get #relaysPings(): boolean {
    return this.#transport.server !== undefined && this.#gatewaySession !== undefined;
  }

  #serve(envelope: RequestEnvelope, key: string, reply: ReplyChannel, gatewaySession: GatewaySession): void {
    const { clock, onInternalError } = this.#options;
    const exchange = new LegacyExchange({ envelope, client: this, key, reply, clock, owner: this.#owner });
    this.#inFlight.add(key, exchange);
    try {
      gatewaySession.serve(exchange);
    } catch (error) {
      reportInternalError(error, onInternalError);
      exchange.fail(internalError());
    }
  }

  #settled(exchange: WireExchange): void {
    this.#inFlight.delete(exchange.key, exchange);
    const list = requestedList(exchange.request.method);
    if (list !== undefined) this.#listChanges.listed(list);
  }

  /** Sends a server request or its cancellation. If both come too early to be sent, forgets both. */
  #sendUnsolicited(message: SplicedMessage, input: InputRequest): void {
    if (this.#phase === 'open') this.#transport.send(message);
    else if (!this.#early.delete(input)) this.#early.set(input, message);
  }

  #initialize(request: RequestEnvelope, reply: ReplyChannel): void {
    const { gateway, serverInfo } = this.#options;
    const id = rawId(request);
    if (this.#phase !== 'new') {
      refuse(reply, id, RPC_CODES.invalidRequest, 'The session is initialized already');
      return;
    }
    this.#phase = 'initialized';
    const profile = readHandshakeProfile(request);
    this.#profile = profile;
    if (this.#transport.server === undefined) this.#serverRequests.declare(profile.capabilities);
    const { server, view, origin, user } = this.#transport;
    const gatewaySession = gateway.open(this, { profile, server, view, origin, user });
    this.#gatewaySession = gatewaySession;
    const answer = ({ revision, result }: InitializeAnswer) => {
      this.#revision = revision;
      reply.answer(resultMessage(id, result));
    };
    const handshake = gatewaySession.handshake();
    if (handshake === undefined) {
      answer(ownResult(profile.protocolVersion, gatewaySession, serverInfo));
      return;
    }
    const answered = handshake.then((ended) => {
      if (this.#phase === 'closed') return;
      if (ended.kind === 'initialized') {
        answer(serverResult(profile.protocolVersion, ended));
        return;
      }
      // Closes the session, so that the client may try again when the server runs.
      gatewaySession.close();
      this.#gatewaySession = undefined;
      this.#phase = 'new';
      reply.answer(rpcErrorMessage(id, new RpcError(RPC_CODES.internalError, describeFailure(ended.failure))));
    });
    void withErrorBoundaryAsync(answered, this.#options.onInternalError, () =>
      reply.answer(rpcErrorMessage(id, internalError())),
    );
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
        this.#serverRequests.progressed(notification);
        break;
      default:
        this.#gatewaySession?.notified(notification);
    }
  }

  #initialized(): void {
    if (this.#phase !== 'initialized') return;
    this.#phase = 'open';
    for (const message of this.#early.values()) this.#transport.send(message);
    this.#early.clear();
  }

  #cancel(notification: NotificationEnvelope): void {
    const { requestId } = notification.tokens;
    if (requestId === undefined) return;
    const [exchange, ...others] = this.#inFlight.withId(readText(notification.bytes, requestId));
    // If several requests in flight have this id, the meant one is unknown.
    if (others.length === 0) exchange?.cancel(notification);
  }
}

/**
 * The server requests that one client has to answer, by the ids that the gateway gives them.
 *
 * A request that needs an undeclared capability fails at once. A client that sees one server unchanged gets such a
 * request too, and refuses it itself.
 */
export class OutgoingServerRequests {
  readonly #pending: CorrelationTable<InputRequest>;
  readonly #answered = new AnsweredRequests<InputRequest>();
  readonly #numbers = new NumberWriter();
  #capabilities: Readonly<Record<string, unknown>> | undefined;

  constructor(firstId?: number) {
    this.#pending = new CorrelationTable(firstId);
  }

  /** Sets the capabilities that the client declared in `initialize`. Without them, the client gets every request. */
  declare(capabilities: Readonly<Record<string, unknown>>): void {
    this.#capabilities = capabilities;
  }

  /** Sends the request to the client. `send` also sends the cancellation, so that both keep their order. */
  send(input: InputRequest, send: (message: SplicedMessage) => void): WithdrawInput {
    const { request, edits } = input;
    const isFull = this.#pending.size >= MAX_UNANSWERED;
    const refusal = isFull ? TOO_MANY_UNANSWERED : refusedInput(request, this.#capabilities);
    if (refusal !== undefined) {
      input.fail(refusal);
      return () => {};
    }
    const id = this.#pending.add(input);
    send(request.message(this.#numbers.write(id), edits));
    return (notice, cancelEdits) => {
      if (this.#pending.abandon(id) !== undefined) send(cancellation(id, this.#numbers, notice, cancelEdits));
    };
  }

  /** Passes the client's response on. Drops a response without a pending request. */
  answered(response: ResponseEnvelope): void {
    const id = readId(response.bytes, response.id);
    const input = id === undefined ? undefined : this.#pending.settle(id);
    if (id !== undefined) input?.answer(response, () => this.#answered.add(id, input));
  }

  /** Passes on the client's progress on a pending request, or on the task that a request has become. */
  progressed(notification: NotificationEnvelope): void {
    const { progressToken } = notification.tokens;
    const id = progressToken === undefined ? undefined : readId(notification.bytes, progressToken);
    const input = id === undefined ? undefined : (this.#pending.get(id) ?? this.#answered.get(id));
    input?.progress(notification);
  }

  close(): void {
    for (const input of this.#pending.drain()) {
      input.fail(new RpcError(RPC_CODES.internalError, 'The client has left'));
    }
  }
}

const EMPTY_OBJECT = toBytes('{}');

function refuse(reply: ReplyChannel, id: Uint8Array, code: number, message: string): void {
  reply.answer(rpcErrorMessage(id, new RpcError(code, message)));
}

/** An initialize result as JSON, and the revision that it names. */
interface InitializeAnswer {
  readonly revision: string;
  readonly result: Uint8Array;
}

/** The gateway's own initialize result, for a client that sees all servers. */
function ownResult(
  protocolVersion: LegacyRevision,
  { instructions, offered }: GatewaySession,
  serverInfo: ServerInfo,
): InitializeAnswer {
  const capabilities = declaredCapabilities(protocolVersion, offered);
  const result = toBytes(JSON.stringify({ protocolVersion, capabilities, serverInfo, instructions }));
  return { revision: protocolVersion, result };
}

/**
 * A server's initialize result for a client that sees only that server. If clients of several revisions share the server, the gateway may
 * have requested a newer revision than this client speaks. Then the result names the client's revision.
 */
export function serverResult(
  protocolVersion: LegacyRevision,
  { result, revision, requestedRevision }: Extract<ServerHandshake, { kind: 'initialized' }>,
): InitializeAnswer {
  const wasAsked = requestedRevision === protocolVersion;
  if (wasAsked || !isOlder(protocolVersion, revision)) return { revision, result };
  return { revision: protocolVersion, result: inRevision(result, protocolVersion) };
}

/** Returns the initialize result with another revision and without other changes. */
function inRevision(result: Uint8Array, revision: string): Uint8Array {
  const { span } = unedited(result);
  const text = toBytes(JSON.stringify(revision));
  const edits = valuesAt(result, span, ['protocolVersion']).map((value) => ({ span: value, text }));
  return splice({ bytes: result, span, edits });
}

/**
 * The error for a request before `initialize`. A client of a later revision first sends a method that does not exist
 * here, such as `server/discover`. "Method not found" tells such a client to fall back to the handshake.
 */
function refusalWithoutSession(method: string): RpcError {
  return LEGACY_REQUESTS.has(method)
    ? new RpcError(RPC_CODES.invalidParams, 'The session has to begin with initialize')
    : new RpcError(RPC_CODES.methodNotFound, 'Method not found. The session has to begin with initialize');
}

type HandshakeProfile = ClientProfile & { readonly protocolVersion: LegacyRevision };

function readHandshakeProfile({ bytes, tokens }: RequestEnvelope): HandshakeProfile {
  return profileOf(negotiateRevision(stringAt(bytes, tokens.protocolVersion)), {
    capabilities: objectAt(bytes, tokens.capabilities),
    clientInfo: objectAt(bytes, tokens.clientInfo),
  });
}

function objectAt(bytes: Uint8Array, span: Span | undefined): Uint8Array {
  return span !== undefined && isObject(bytes, span) ? bytes.slice(span.start, span.end) : EMPTY_OBJECT;
}

/** A request of a client that speaks a revision with a handshake. */
export class LegacyExchange extends WireExchange {
  declare readonly client: LegacySession;
  readonly logLevel = undefined;
  readonly takesInputRequests = false;
  readonly isSuspended = false;
  protected readonly form = UNCHANGED;

  get conversation(): object {
    return this.client;
  }

  elicits(mode: ElicitationMode): boolean {
    return canElicit(mode, this.client.profile?.capabilities ?? {});
  }

  requireInput(input: InputRequest): WithdrawInput {
    return this.client.requireInput(input, this);
  }
}

/** The only revision with batches. Older revisions do not mention them, and newer ones forbid them. */
const BATCHING: LegacyRevision = '2025-03-26';

function isInitialize(message: Envelope | Rejection): boolean {
  return message.kind === 'request' && message.method === METHODS.initialize;
}

function repeatedId(): RpcError {
  return new RpcError(RPC_CODES.invalidRequest, 'Another request of this batch has the same id');
}

function refuseBatch(message: string): Answer {
  return rpcErrorMessage(NULL_ID, new RpcError(RPC_CODES.invalidRequest, message));
}
