import { type OnInternalError, reportInternalError, withErrorBoundary } from '../../errors/error-boundary.js';
import { internalError } from '../../errors/internal-error.js';
import { toBytes } from '../../json/json-text.js';
import { type IdKey, idKey } from '../../jsonrpc/id-key.js';
import { errorMessage, NULL_ID, resultMessage } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { Envelope, NotificationEnvelope, RequestEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { MODERN_REVISIONS } from '../../mcp/revisions.js';
import type { Clock } from '../../timing/clock.js';
import { declaredCapabilities, type ServerInfo } from '../declared-capabilities.js';
import { InFlightExchanges } from '../in-flight-exchanges.js';
import type { GatewayPort } from '../port.js';
import type { Era, EraSession, ReceivedBatch, ReplyChannel, TransportSession } from '../transport.js';
import type { ExchangeOwner, WireExchange } from '../wire-exchange.js';
import type { Listen } from './listen.js';
import { readFilter } from './listen-filter.js';
import { ModernClient } from './modern-client.js';
import { ModernExchange } from './modern-exchange.js';
import { ModernForm } from './modern-form.js';
import { factsKey, readProfile, refusedFacts, requestedLogLevel } from './request-facts.js';

export interface ModernEraOptions {
  readonly clock: Clock;
  readonly gateway: GatewayPort;
  readonly serverInfo: ServerInfo;
  /** Reports internal errors, each of which fails one request. Without it they are thrown to the caller. */
  readonly onInternalError?: OnInternalError;
}

/** The revisions without a handshake, from 2026-07-28 on. Each request states what the gateway must know of its client. */
export function modernEra(options: ModernEraOptions): Era {
  return {
    beginsSession: () => false,
    refusalWithoutSession: methodNotFound,
    open: (transport) => new ModernSession(options, transport),
  };
}

/**
 * Clients that state different things about themselves in one transport session. Most state the same in every request;
 * those that used the session least recently are forgotten beyond this number.
 */
const MAX_IDLE_CLIENTS = 8;

/** Limit of subscriptions that are open in one transport session. A client needs one or two. */
const MAX_LISTENS = 64;

/** Serves the requests without a handshake that one transport session brings. */
class ModernSession implements EraSession {
  readonly #options: ModernEraOptions;
  readonly #transport: TransportSession;
  readonly #inFlight = new InFlightExchanges<WireExchange>();
  /** Subscriptions last, so they do not count as requests in flight. */
  readonly #listens = new InFlightExchanges<Listen>();
  /** By what they state about themselves, the least recently used first. */
  readonly #clients = new Map<string, ModernClient>();
  readonly #owner: ExchangeOwner = {
    // Nothing reaches a client but what one of its requests asked for.
    sendUnsolicited: () => {},
    settled: (exchange) => this.#settled(exchange),
  };
  /** Clients rarely change what they state. */
  #lastKey: string | undefined;
  #lastClient: ModernClient | undefined;
  #profile: ClientProfile | undefined;
  #isClosed = false;

  constructor(options: ModernEraOptions, transport: TransportSession) {
    this.#options = options;
    this.#transport = transport;
  }

  get revision(): string | undefined {
    return this.#profile === undefined ? undefined : MODERN_REVISIONS[0];
  }

  get profile(): ClientProfile | undefined {
    return this.#profile;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  receive(message: Envelope, reply: ReplyChannel): boolean {
    if (this.#isClosed) return false;
    if (message.kind === 'request') this.#request(message, reply);
    else if (message.kind === 'notification') {
      withErrorBoundary(() => this.#notification(message), this.#options.onInternalError);
    }
    // A response answers nothing: requests to the client are results in these revisions.
    return message.kind === 'request';
  }

  receiveBatch(): ReceivedBatch {
    const error = new RpcError(RPC_CODES.invalidRequest, `Revision ${MODERN_REVISIONS[0]} has no batches`);
    return { refused: errorMessage(NULL_ID, error) };
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const exchange of this.#inFlight.all()) exchange.cancel();
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  #request(request: RequestEnvelope, reply: ReplyChannel): void {
    const { onInternalError } = this.#options;
    const refusal = refusedFacts(request);
    if (refusal !== undefined) {
      reply.answer(errorMessage(idOf(request), refusal));
      return;
    }
    try {
      this.#accepted(request, reply);
    } catch (error) {
      reportInternalError(error, onInternalError);
      reply.answer(errorMessage(idOf(request), internalError()));
    }
  }

  #accepted(request: RequestEnvelope, reply: ReplyChannel): void {
    const { method } = request;
    if (method === METHODS.discover) {
      reply.answer(resultMessage(idOf(request), this.#discover(request)));
      return;
    }
    if (REMOVED_METHODS.has(method)) {
      reply.answer(errorMessage(idOf(request), methodNotFound(method)));
      return;
    }
    const key = idKey(request.bytes, request.id);
    if (reply.isShared && (this.#inFlight.has(key) || this.#listens.has(key))) {
      const error = new RpcError(RPC_CODES.invalidRequest, 'A request with this id is in flight already');
      reply.answer(errorMessage(idOf(request), error));
      return;
    }
    if (method === METHODS.listen) this.#listen(request, key, reply);
    else this.#serve(request, key, reply, this.#clientOf(request));
  }

  #listen(request: RequestEnvelope, key: IdKey, reply: ReplyChannel): void {
    const filter = this.#listens.size < MAX_LISTENS ? readFilter(request) : TOO_MANY_LISTENS;
    if (filter instanceof RpcError) {
      reply.answer(errorMessage(idOf(request), filter));
      return;
    }
    const client = this.#clientOf(request);
    // The memory of the request has another use later.
    const id = idOf(request).slice();
    const onEnded = (ended: Listen) => this.#listens.delete(key, ended);
    const isResumed = (this.#transport.firstRequestId ?? 1) > 1;
    const listen = client.listens.open({ id, key, filter, reply, form: client.form, isResumed, onEnded });
    this.#listens.add(key, listen);
  }

  #serve(envelope: RequestEnvelope, key: IdKey, reply: ReplyChannel, client: ModernClient): void {
    const { clock, onInternalError } = this.#options;
    const logLevel = requestedLogLevel(envelope);
    const { form } = client;
    const requireInput = client.requireInput.bind(client);
    const exchange = new ModernExchange({
      envelope,
      client,
      key,
      reply,
      clock,
      owner: this.#owner,
      form,
      logLevel,
      requireInput,
    });
    this.#inFlight.add(key, exchange);
    client.inFlight += 1;
    try {
      client.session.serve(exchange);
    } catch (error) {
      reportInternalError(error, onInternalError);
      exchange.fail(internalError());
    }
  }

  #settled(exchange: WireExchange): void {
    this.#inFlight.delete(exchange.key, exchange);
    if (exchange.client instanceof ModernClient) exchange.client.inFlight -= 1;
  }

  #notification(notification: NotificationEnvelope): void {
    if (notification.method === METHODS.cancelled) {
      const { requestId } = notification.tokens;
      if (requestId === undefined) return;
      const key = idKey(notification.bytes, requestId);
      const [cancelled, ...others] = [...this.#inFlight.withId(key), ...this.#listens.withId(key)];
      // With several requests of this id in flight, it is unknown which one the client means.
      if (others.length === 0) cancelled?.cancel(notification);
      return;
    }
    for (const client of this.#clients.values()) client.session.notified(notification);
  }

  /** The client that states what this request states. */
  #clientOf(request: RequestEnvelope): ModernClient {
    const key = factsKey(request);
    if (key === this.#lastKey && this.#lastClient !== undefined) return this.#lastClient;
    const known = this.#clients.get(key);
    const transport = this.#transport;
    const client = known ?? new ModernClient({ ...this.#options, transport, profile: readProfile(request) });
    this.#profile = client.profile;
    this.#clients.delete(key);
    this.#clients.set(key, client);
    this.#lastKey = key;
    this.#lastClient = client;
    this.#forgetIdle();
    return client;
  }

  #forgetIdle(): void {
    const idle = [...this.#clients].filter(([, client]) => client !== this.#lastClient && client.isIdle);
    for (const [key, client] of idle.slice(0, -MAX_IDLE_CLIENTS)) {
      this.#clients.delete(key);
      client.close();
    }
  }

  /** What the servers are, as far as it is known. Starts no server and opens no session. */
  #discover(request: RequestEnvelope): Uint8Array {
    const { gateway, serverInfo } = this.#options;
    const { server, view, origin } = this.#transport;
    const profile = readProfile(request);
    const { offered, instructions } = gateway.describe({ profile, server, view, origin });
    const result = {
      supportedVersions: MODERN_REVISIONS,
      capabilities: declaredCapabilities(MODERN_REVISIONS[0], offered),
      ...(instructions !== '' && { instructions }),
    };
    const form = new ModernForm({ serverInfo, areListsSettled: () => false });
    return form.result(toBytes(JSON.stringify(result)), METHODS.discover);
  }
}

/** What earlier revisions define, and 2026-07-28 does not. */
const REMOVED_METHODS: ReadonlySet<string> = new Set([
  METHODS.initialize,
  METHODS.ping,
  METHODS.subscribe,
  METHODS.unsubscribe,
  METHODS.setLevel,
  METHODS.listTasks,
  METHODS.taskResult,
  METHODS.createMessage,
  METHODS.elicit,
  METHODS.listRoots,
]);

const TOO_MANY_LISTENS = new RpcError(
  RPC_CODES.internalError,
  `The client has ${MAX_LISTENS} open subscriptions, which is the limit: end one first, or ask for more in one of them`,
);

function methodNotFound(method: string): RpcError {
  return new RpcError(RPC_CODES.methodNotFound, `Method not found: ${method}`);
}

/** The id as raw JSON. */
function idOf({ bytes, id }: RequestEnvelope): Uint8Array {
  return bytes.subarray(id.start, id.end);
}
