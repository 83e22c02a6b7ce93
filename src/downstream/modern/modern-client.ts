import { editMembers } from '../../wire/json/edit-members.js';
import { isObject, readText, type Span, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope } from '../../wire/mcp/envelope.js';
import { type ClientProfile, profileOf } from '../../wire/mcp/handshake.js';
import { isLogLevel, type ListKind, METHODS } from '../../wire/mcp/methods.js';
import { isModernRevision, LATEST_LEGACY_REVISION, MODERN_CODES, MODERN_REVISIONS } from '../../wire/mcp/revisions.js';
import type { Clock } from '../../wire/timing/clock.js';
import { MAX_UNANSWERED, TOO_MANY_UNANSWERED } from '../input-requests.js';
import type { DownstreamClient, Exchange, GatewaySession, InputRequest, WithdrawInput } from '../port.js';
import type { EraOptions, TransportSession } from '../transport.js';
import { ClientListens } from './listen.js';
import { ModernForm } from './modern-form.js';

/** Time in milliseconds that a request for roots waits for a request of the client. */
const PARKED_MS = 10_000;

export const NOT_ASKING = new RpcError(RPC_CODES.internalError, 'No request is in flight that could ask the client');

export interface ClientExchange {
  /** Whether a server may ask the client because of this request. */
  readonly isInteractive: boolean;
  requireInput(input: InputRequest): WithdrawInput;
}

/** A request for input that waits until the client sends a request. */
interface ParkedInput {
  ask(exchange: ClientExchange): void;
  refuse(): void;
}

interface ModernClientOptions extends EraOptions {
  readonly transport: TransportSession;
  readonly profile: ClientProfile;
}

/**
 * The requests of one transport session whose `_meta` describes the same client. They share one session at the gateway, because a
 * server with a handshake would get the same description for each of them.
 */
export class ModernClient implements DownstreamClient {
  readonly revision = MODERN_REVISIONS[0];
  readonly takesPings = false;
  readonly hasSession = false;
  readonly principal: string;
  readonly profile: ClientProfile;
  readonly form: ModernForm;
  readonly listens: ClientListens;
  readonly #clock: Clock;
  readonly #onGone: () => void;
  #session: GatewaySession;
  /** Requests that were not settled yet, including suspended ones. */
  readonly #inFlight = new Set<ClientExchange>();
  /** Requests for roots that no request of the client caused. They wait for a request that can ask the client. */
  readonly #parked = new Set<ParkedInput>();

  constructor({ clock, gateway, transport, profile, serverInfo, onInternalError }: ModernClientOptions) {
    const { principal, server, view, origin, user } = transport;
    this.principal = principal;
    this.#clock = clock;
    this.profile = profile;
    this.#onGone = () => transport.gone();
    this.listens = new ClientListens({ clock, client: this, session: () => this.#session, onInternalError });
    this.#session = gateway.open(this, { profile, server, view, origin, user });
    this.form = new ModernForm({ serverInfo, caching: (kind) => this.#session.caching(kind) });
  }

  /** Whether the client has no requests in flight and no subscriptions. */
  get isIdle(): boolean {
    return this.#inFlight.size === 0 && this.listens.size === 0;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  get followsLists(): boolean {
    return this.listens.followLists;
  }

  get session(): GatewaySession {
    return this.#session;
  }

  listChanged(kind: ListKind): void {
    this.listens.listChanged(kind);
  }

  listAnnounced(kind: ListKind, notification: NotificationEnvelope): void {
    this.listens.listAnnounced(kind, notification);
  }

  notify(notification: NotificationEnvelope, edits: readonly Edit[] = []): void {
    this.listens.notify(notification, edits);
  }

  /**
   * Handles a server request that no request of this client caused. Only the answer to a request can ask the client, and the
   * answer of another server would ask the user in the name of that server. The server request therefore fails. Only `roots/list`
   * waits for a request of the client, because many servers send it after `initialize`.
   */
  requireInput(input: InputRequest): WithdrawInput {
    if (input.request.method !== METHODS.listRoots) {
      input.fail(NOT_ASKING);
      return () => {};
    }
    const able = [...this.#inFlight].findLast(({ isInteractive }) => isInteractive);
    if (able !== undefined) return able.requireInput(input);
    if (this.#parked.size >= MAX_UNANSWERED) {
      input.fail(TOO_MANY_UNANSWERED);
      return () => {};
    }
    const parked: ParkedInput = {
      ask: (exchange) => {
        forget();
        withdraw = exchange.requireInput(input);
      },
      refuse: () => {
        forget();
        input.fail(NOT_ASKING);
      },
    };
    const cancel = this.#clock.schedule(PARKED_MS, parked.refuse);
    const forget = () => {
      cancel();
      this.#parked.delete(parked);
    };
    let withdraw: WithdrawInput = forget;
    this.#parked.add(parked);
    return (...cancellation) => withdraw(...cancellation);
  }

  /** Whether this is the only request of the client that was not settled yet. */
  isOnly(exchange: ClientExchange): boolean {
    return this.#inFlight.size === 1 && this.#inFlight.has(exchange);
  }

  began(exchange: ClientExchange): void {
    this.#inFlight.add(exchange);
    if (exchange.isInteractive) for (const { ask } of [...this.#parked]) ask(exchange);
  }

  ended(exchange: ClientExchange): void {
    this.#inFlight.delete(exchange);
  }

  sessionReplaced(session: GatewaySession): void {
    this.#session = session;
  }

  gone(): void {
    this.listens.end();
    this.#onGone();
  }

  ending(): void {
    this.listens.end();
  }

  close(): void {
    for (const { refuse } of [...this.#parked]) refuse();
    this.listens.close();
    this.#session.close();
  }
}

/** Limit of the idle clients of one transport session. Most programs state the same in every request. */
const MAX_IDLE_CLIENTS = 8;

/** The clients of one transport session, by the description of the client in their requests. */
export class StatedClients {
  readonly #create: (profile: ClientProfile) => ModernClient;
  /** Clients by their facts, least recently used first. */
  readonly #clients = new Map<string, ModernClient>();
  #lastClient: ModernClient | undefined;

  constructor(create: (profile: ClientProfile) => ModernClient) {
    this.#create = create;
  }

  /** Profile that the latest request stated. */
  get profile(): ClientProfile | undefined {
    return this.#lastClient?.profile;
  }

  all(): Iterable<ModernClient> {
    return this.#clients.values();
  }

  /** Returns the client with the facts of this message, which `refusedFacts` must have accepted. */
  of(request: StatingMessage): ModernClient {
    const key = factsKey(request);
    const client = this.#clients.get(key) ?? this.#create(readProfile(request));
    this.#clients.delete(key);
    this.#clients.set(key, client);
    this.#lastClient = client;
    this.#forgetIdle();
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  #forgetIdle(): void {
    const idle = [...this.#clients].filter(([, client]) => client !== this.#lastClient && client.isIdle);
    for (const [key, client] of idle.slice(0, -MAX_IDLE_CLIENTS)) {
      this.#clients.delete(key);
      client.close();
    }
  }
}

/** A message that states its client: each request, and a notification for the client's servers. */
type StatingMessage = RequestEnvelope | NotificationEnvelope;

/** Refuses a request whose `_meta` lacks a required member or has a wrong one; `undefined` if it can be served. */
export function refusedFacts({ bytes, tokens }: StatingMessage): RpcError | undefined {
  const { eraVersion, eraCapabilities, eraClientInfo } = tokens;
  const requested = stringAt(bytes, eraVersion);
  if (requested === undefined) return missing('protocolVersion', 'a string');
  if (!isModernRevision(requested)) {
    const data = { supported: MODERN_REVISIONS, requested };
    return new RpcError(MODERN_CODES.unsupportedRevision, 'Unsupported protocol version', data);
  }
  if (eraCapabilities === undefined || !isObject(bytes, eraCapabilities)) {
    return missing('clientCapabilities', 'an object');
  }
  if (eraClientInfo !== undefined && !isObject(bytes, eraClientInfo)) return missing('clientInfo', 'an object');
  return undefined;
}

function missing(name: string, kind: string): RpcError {
  return new RpcError(RPC_CODES.invalidParams, `_meta["io.modelcontextprotocol/${name}"] must be ${kind}`);
}

/** Returns the same text for requests that describe the same client. */
function factsKey({ bytes, tokens: { eraCapabilities, eraClientInfo } }: StatingMessage): string {
  return `${textAt(bytes, eraCapabilities)}\n${textAt(bytes, eraClientInfo)}`;
}

/**
 * Reads the facts that a request states about its client. Servers with a handshake get the facts as if the client spoke
 * the latest revision with a handshake, so that clients of both eras share the servers.
 */
export function readProfile({ bytes, tokens: { eraCapabilities, eraClientInfo } }: StatingMessage): ClientProfile {
  return profileOf(LATEST_LEGACY_REVISION, {
    capabilities: withoutRootChanges(bytesAt(bytes, eraCapabilities) ?? NO_MEMBERS),
    clientInfo: bytesAt(bytes, eraClientInfo) ?? UNNAMED,
  });
}

/** Removes `roots.listChanged`, because these clients have no such notification. */
function withoutRootChanges(capabilities: Uint8Array): Uint8Array {
  const span = { start: 0, end: capabilities.length };
  const removes = (name: string) => name === 'listChanged';
  const edits = valuesAt(capabilities, span, ['roots']).flatMap((roots) =>
    editMembers(capabilities, roots, { removes }),
  );
  return edits.length === 0 ? capabilities : splice({ bytes: capabilities, span, edits });
}

/** Log level of the request; `off` without one. See the page server/utilities/logging of revision 2026-07-28. */
export function requestedLogLevel({ bytes, tokens: { eraLogLevel } }: RequestEnvelope): Exchange['logLevel'] {
  if (eraLogLevel === undefined) return 'off';
  const level = stringAt(bytes, eraLogLevel) ?? '';
  return isLogLevel(level) ? level : 'off';
}

const NO_MEMBERS = toBytes('{}');
/** Identity of a client that states none, because servers require a name and a version. */
const UNNAMED = toBytes('{"name":"unnamed","version":"unknown"}');

function textAt(bytes: Uint8Array, span: Span | undefined): string {
  return span === undefined ? '' : readText(bytes, span);
}

function bytesAt(bytes: Uint8Array, span: Span | undefined): Uint8Array | undefined {
  return span === undefined ? undefined : bytes.slice(span.start, span.end);
}
