import {
  internalError,
  reportInternalError,
  withErrorBoundary,
  withErrorBoundaryAsync,
} from '../../host/errors/internal-error.js';
import { readText, type Span, stringAt, toBytes } from '../../wire/json/json-text.js';
import { isRecord } from '../../wire/json/json-value.js';
import { RequestsById } from '../../wire/jsonrpc/correlation-table.js';
import { rawId } from '../../wire/jsonrpc/envelope-scanner.js';
import {
  type Answer,
  NULL_ID,
  RPC_CODES,
  RpcError,
  resultMessage,
  rpcErrorMessage,
} from '../../wire/jsonrpc/message.js';
import type { Envelope, NotificationEnvelope, RequestEnvelope } from '../../wire/mcp/envelope.js';
import type { ClientProfile } from '../../wire/mcp/handshake.js';
import { isDefinedNotification, METHODS, REMOVED_REQUESTS } from '../../wire/mcp/methods.js';
import type { MirroredParam } from '../../wire/mcp/mirrored-params.js';
import { MODERN_REVISIONS } from '../../wire/mcp/revisions.js';
import { instanceOfTask } from '../../wire/mcp/task-id.js';
import { declaredCapabilities, declaredExtensions, type ServerInfo } from '../declared-capabilities.js';
import { describeFailure } from '../failure.js';
import { needsTasks, refusedTasks } from '../input-requests.js';
import type { GatewayDescription, GatewayPort, GatewaySeals } from '../port.js';
import type { Era, EraOptions, EraSession, ReplyChannel, TransportSession } from '../transport.js';
import type { ExchangeOwner } from '../wire-exchange.js';
import { type OpenRequest, STALE, SuspendedCalls } from './input-rounds.js';
import { type Listen, type ListenFilter, readFilter } from './listen.js';
import { ModernClient, readProfile, refusedFacts, StatedClients } from './modern-client.js';
import { type ExchangeContext, ModernExchange } from './modern-exchange.js';
import { ModernForm } from './modern-form.js';
import { instanceOfState, openState, type VisitState } from './request-state.js';
import { visited, withoutInput } from './url-visits.js';

/** The revisions without a handshake, from 2026-07-28 on. Each request states the facts about its client. */
export function modernEra(options: EraOptions): Era {
  const calls = new SuspendedCalls();
  return {
    beginsSession: () => false,
    needsSession: false,
    refusalWithoutSession: refusedFacts,
    instanceIn: (message) => {
      if (message.kind !== 'request') return undefined;
      const { taskId, requestState } = message.tokens;
      const task = stringAt(message.bytes, taskId);
      const state = stringAt(message.bytes, requestState);
      return instanceOfTask(task ?? '') ?? instanceOfState(state ?? '');
    },
    open: (transport) => new ModernSession(options, transport, calls),
  };
}

/** Limits of the open subscriptions of one transport session: their number, and the size of their filters together. */
const MAX_LISTENS = 64;
const MAX_FILTER_BYTES = 4 * 1024 * 1024;

/** Serves the requests without a handshake of one transport session. */
class ModernSession implements EraSession {
  readonly #options: EraOptions;
  readonly #transport: TransportSession;
  readonly #calls: SuspendedCalls;
  readonly #inFlight = new RequestsById<ModernExchange | RetriedRequest>();
  /** Calls that were answered with a request for input. */
  readonly #suspended = new Set<ModernExchange>();
  /** Open subscriptions. They do not count as requests in flight, because they stay open. */
  readonly #listens = new RequestsById<Listen>();
  readonly #clients: StatedClients;
  readonly #owner: ExchangeOwner<ModernExchange> = {
    // Drops unsolicited messages, because a client without a session receives only messages that its requests asked for.
    sendUnsolicited: () => {},
    settled: (exchange) => this.#settled(exchange),
  };
  readonly #shared: ExchangeContext;
  #isClosed = false;

  constructor(options: EraOptions, transport: TransportSession, calls: SuspendedCalls) {
    this.#options = options;
    this.#transport = transport;
    this.#calls = calls;
    this.#clients = new StatedClients((profile) => new ModernClient({ ...options, transport, profile }));
    const seals = () => sealsOf(options.gateway);
    this.#shared = {
      calls,
      seals,
      onSuspended: (exchange) => this.#onSuspended(exchange),
      serve: (exchange) => this.#send(exchange),
    };
  }

  get revision(): string | undefined {
    return this.#clients.profile === undefined ? undefined : MODERN_REVISIONS[0];
  }

  get profile(): ClientProfile | undefined {
    return this.#clients.profile;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  mirroredParams(call: RequestEnvelope): readonly MirroredParam[] {
    const { bytes, tokens } = call;
    const name = stringAt(bytes, tokens.name);
    if (this.#isClosed || name === undefined || refusedFacts(call) !== undefined) return [];
    return this.#clients.of(call).session.mirroredParams(name);
  }

  /** Takes a message. Ignores responses, because server requests are results in these revisions. */
  receive(message: Envelope, reply: ReplyChannel): void {
    if (message.kind === 'request') {
      if (this.#isClosed) reply.withdraw();
      else this.#request(message, reply);
    } else if (message.kind === 'notification' && !this.#isClosed) {
      withErrorBoundary(() => this.#notification(message), this.#options.onInternalError);
    }
  }

  receiveBatch(): Answer {
    const message = `Revision ${MODERN_REVISIONS[0]} has no batches`;
    return rpcErrorMessage(NULL_ID, new RpcError(RPC_CODES.invalidRequest, message));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const exchange of [...this.#inFlight.all(), ...this.#suspended]) exchange.cancel();
    this.#clients.close();
  }

  #request(request: RequestEnvelope, reply: ReplyChannel): void {
    withErrorBoundary(
      () => {
        const refusal = this.#accept(request, reply);
        if (refusal !== undefined) reply.answer(rpcErrorMessage(rawId(request), refusal));
      },
      this.#options.onInternalError,
      () => reply.answer(rpcErrorMessage(rawId(request), internalError())),
    );
  }

  /** Serves a request. Returns the error if the request is refused. */
  #accept(request: RequestEnvelope, reply: ReplyChannel): RpcError | undefined {
    const { method } = request;
    const refusal = refusedFacts(request) ?? (needsTasks(method) ? refusedTasks(request) : undefined);
    if (refusal !== undefined) return refusal;
    if (method === METHODS.discover) {
      this.#discover(request, reply);
      return undefined;
    }
    if (REMOVED_REQUESTS.has(method)) return new RpcError(RPC_CODES.methodNotFound, `Method not found: ${method}`);
    const key = readText(request.bytes, request.id);
    if (reply.isShared && (this.#inFlight.has(key) || this.#listens.has(key))) {
      return new RpcError(RPC_CODES.invalidRequest, 'A request with this id is in flight already');
    }
    if (method === METHODS.listen) return this.#listen(request, key, reply);
    const client = this.#clients.of(request);
    const { requestState } = request.tokens;
    if (requestState !== undefined) return this.#resume(request, key, reply, client, requestState);
    this.#serve(request, key, reply, client);
    return undefined;
  }

  /**
   * Answers `server/discover` (page server/discover of revision 2026-07-28). A client that sees all servers gets the
   * known facts about them, without a session or the start of a server. A client that sees one server gets the answer
   * of that server as soon as the server runs.
   */
  #discover(request: RequestEnvelope, reply: ReplyChannel): void {
    const { gateway, serverInfo, onInternalError } = this.#options;
    const { server, view, origin, user } = this.#transport;
    const handshake = server === undefined ? undefined : this.#clients.of(request).session.handshake();
    if (handshake === undefined) {
      const description = gateway.describe({ profile: readProfile(request), server, view, origin, user });
      reply.answer(resultMessage(rawId(request), describeAll(description, serverInfo)));
      return;
    }
    // Copies the id, because the memory of the request is reused before the answer.
    const id = rawId(request).slice();
    const answered = handshake.then((ended) => {
      if (this.#isClosed) return;
      reply.answer(
        ended.kind === 'initialized'
          ? resultMessage(id, describeServer(ended.result, serverInfo))
          : rpcErrorMessage(id, new RpcError(RPC_CODES.internalError, describeFailure(ended.failure))),
      );
    });
    void withErrorBoundaryAsync(answered, onInternalError, () => reply.answer(rpcErrorMessage(id, internalError())));
  }

  #listen(request: RequestEnvelope, key: string, reply: ReplyChannel): RpcError | undefined {
    const filter = this.#readFilter(request);
    if (filter instanceof RpcError) return filter;
    const client = this.#clients.of(request);
    // Copies the id, because the memory of the request is reused before the answer.
    const id = rawId(request).slice();
    const onEnded = (ended: Listen) => this.#listens.delete(key, ended);
    const isResumed = (this.#transport.firstRequestId ?? 1) > 1;
    const listen = client.listens.open({ id, key, filter, reply, form: client.form, isResumed, onEnded });
    this.#listens.add(key, listen);
    reply.onAbandoned(() => listen.cancel());
    return undefined;
  }

  #readFilter(request: RequestEnvelope): ListenFilter | RpcError {
    if (this.#listens.size >= MAX_LISTENS) return TOO_MANY_LISTENS;
    const filter = readFilter(request);
    if (filter instanceof RpcError) return filter;
    const bytes = this.#listens.all().reduce((sum, { filter }) => sum + filter.bytes, filter.bytes);
    return bytes > MAX_FILTER_BYTES ? filtersTooLarge(bytes) : filter;
  }

  /** Serves a request that brings back the state of a suspended call, of a server, or of visits. */
  #resume(
    envelope: RequestEnvelope,
    key: string,
    reply: ReplyChannel,
    client: ModernClient,
    token: Span,
  ): RpcError | undefined {
    const state = stringAt(envelope.bytes, token) ?? '';
    const opened = openState(state, { envelope, principal: client.principal }, this.#options.gateway.seals);
    const found = 'visit' in opened ? visited(opened.visit, envelope) : opened;
    if (found instanceof RpcError) return found;
    if ('serverState' in found) {
      this.#serve(envelope, key, reply, client, found);
    } else if ('visit' in found) {
      this.#serve(withoutInput(envelope), key, reply, client, found);
    } else {
      const rounds = this.#calls.find(found.call);
      if (rounds === undefined) return STALE;
      const retried: RetriedRequest = {
        envelope,
        reply,
        onOver: () => this.#inFlight.delete(key, retried),
        cancel: (notification) => rounds.cancel(retried, notification),
      };
      this.#inFlight.add(key, retried);
      reply.onAbandoned(() => retried.cancel());
      rounds.resume(retried, found.round);
    }
    return undefined;
  }

  #serve(envelope: RequestEnvelope, key: string, reply: ReplyChannel, client: ModernClient, back?: Brought): void {
    const exchange = new ModernExchange({
      envelope,
      client,
      key,
      reply,
      serverState: back?.serverState,
      visit: back?.visit,
      clock: this.#options.clock,
      owner: this.#owner,
      shared: this.#shared,
    });
    this.#inFlight.add(key, exchange);
    client.began(exchange);
    reply.onAbandoned(() => exchange.cancel());
    this.#send(exchange);
  }

  #send(exchange: ModernExchange): void {
    try {
      exchange.client.session.serve(exchange);
    } catch (error) {
      reportInternalError(error, this.#options.onInternalError);
      exchange.fail(internalError());
    }
  }

  #onSuspended(exchange: ModernExchange): void {
    // The client may use the id for another request from now on.
    if (!this.#suspended.has(exchange)) this.#inFlight.delete(exchange.key, exchange);
    this.#suspended.add(exchange);
  }

  #settled(exchange: ModernExchange): void {
    if (this.#suspended.size === 0 || !this.#suspended.delete(exchange)) this.#inFlight.delete(exchange.key, exchange);
    exchange.client.ended(exchange);
  }

  #notification(notification: NotificationEnvelope): void {
    if (notification.method === METHODS.cancelled) {
      const { requestId } = notification.tokens;
      if (requestId === undefined) return;
      const key = readText(notification.bytes, requestId);
      const [cancelled, ...others] = [...this.#inFlight.withId(key), ...this.#listens.withId(key)];
      // If several requests in flight have this id, the meant one is unknown.
      if (others.length === 0) cancelled?.cancel(notification);
      return;
    }
    // Clients of these revisions send no other notification that MCP defines.
    if (isDefinedNotification(notification.method)) return;
    if (notification.tokens.eraVersion === undefined) {
      for (const client of this.#clients.all()) client.session.notified(notification);
    } else if (refusedFacts(notification) === undefined) {
      this.#clients.of(notification).session.notified(notification);
    }
  }
}

/** A repeated request of a client for a suspended call. It is open until the call needs more input or is answered. */
interface RetriedRequest extends OpenRequest {
  cancel(notification?: NotificationEnvelope): void;
}

interface Brought {
  readonly serverState?: string | undefined;
  readonly visit?: VisitState | undefined;
}

/** Returns the seals. Throws before the gateway has servers, when no message needs a seal yet. */
function sealsOf({ seals }: GatewayPort): GatewaySeals {
  if (seals === undefined) throw new Error('The gateway has no servers yet');
  return seals;
}

const TOO_MANY_LISTENS = new RpcError(
  RPC_CODES.internalError,
  `The client has ${MAX_LISTENS} open subscriptions, which is the limit: end one first, or ask for more in one of them`,
);

function filtersTooLarge(bytes: number): RpcError {
  const limit = `and the limit is ${MAX_FILTER_BYTES}: end a subscription first, or name fewer resources and tasks`;
  return new RpcError(
    RPC_CODES.internalError,
    `The filters of all open subscriptions would have ${bytes} bytes, ${limit}`,
  );
}

/** The result of `server/discover` for a client that sees all servers. */
function describeAll({ offered, instructions }: GatewayDescription, serverInfo: ServerInfo): Uint8Array {
  const capabilities = declaredCapabilities(MODERN_REVISIONS[0], offered);
  return discoverResult({ capabilities, ...(instructions !== '' && { instructions }) }, serverInfo);
}

/** Makes the result from an initialize result, which the upstream side also makes for servers of this revision. */
function describeServer(initializeResult: Uint8Array, gatewayInfo: ServerInfo): Uint8Array {
  const result: unknown = JSON.parse(readText(initializeResult, { start: 0, end: initializeResult.length }));
  const { capabilities, instructions, serverInfo } = isRecord(result) ? result : {};
  const declared = isRecord(capabilities) ? capabilities : {};
  // The tasks of earlier revisions are an extension in this revision.
  const { tasks: _tasks, extensions: _extensions, ...others } = declared;
  const extensions = declaredExtensions(MODERN_REVISIONS[0], [declared]);
  return discoverResult(
    { capabilities: { ...others, ...(extensions && { extensions }) }, ...(isText(instructions) && { instructions }) },
    isServerInfo(serverInfo) ? serverInfo : gatewayInfo,
  );
}

function discoverResult(
  members: { readonly capabilities: Readonly<Record<string, unknown>>; readonly instructions?: string },
  serverInfo: ServerInfo,
): Uint8Array {
  const result = toBytes(JSON.stringify({ supportedVersions: MODERN_REVISIONS, ...members }));
  return new ModernForm({ serverInfo }).result(result, METHODS.discover);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isServerInfo(value: unknown): value is ServerInfo {
  return isRecord(value) && isText(value.name) && isText(value.version);
}
