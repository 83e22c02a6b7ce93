import type { Edit } from '../../wire/json/splice.js';
import { EMPTY_RESULT, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { type DiscoverResult, offeredRevision } from '../../wire/mcp/handshake.js';
import { isLogLevel, METHODS } from '../../wire/mcp/methods.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import { ownRequest, ownResponse, type RelayedRequest } from '../../wire/mcp/relayed-request.js';
import type { ModernRevision } from '../../wire/mcp/revisions.js';
import type { Clock } from '../../wire/timing/clock.js';
import { type Channel, EraConnection, type OpenOptions } from '../dialect.js';
import type {
  RequestHandler,
  RequestTimeouts,
  SentNotification,
  SentRequest,
  ServerRequest,
  UpstreamConnection,
} from '../upstream-connection.js';
import { RequestMeta, sentText } from './modern-messages.js';
import { ModernRequest, type RequestContext } from './modern-request.js';
import { type Subject, UpstreamListen } from './upstream-listen.js';

export interface ModernOptions {
  readonly clock: Clock;
  /** Makes an id that cannot be guessed. */
  readonly mintId: () => string;
}

interface ModernConnectionOptions extends ModernOptions, OpenOptions {
  readonly channel: Channel;
  readonly revision: ModernRevision;
  readonly discovered: DiscoverResult;
}

/**
 * Connection to a modern server, which has no handshake and no session. Every request describes the client.
 *
 * The gateway uses it like a legacy connection. Requests that modern revisions do not have are answered here: a client's `ping`,
 * `logging/setLevel`, `resources/subscribe` and `resources/unsubscribe`. The gateway's own `ping` becomes `server/discover`.
 */
export class ModernConnection extends EraConnection implements UpstreamConnection {
  readonly nameInResults: Uint8Array | undefined;
  readonly #options: ModernConnectionOptions;
  readonly #meta: RequestMeta;
  readonly #listen: UpstreamListen;
  readonly #context: RequestContext;

  constructor(options: ModernConnectionOptions) {
    const { channel, clock, mintId, generation, profile, revision, discovered, listener } = options;
    super(channel, generation, revision, discovered.asInitialize);
    this.#options = options;
    this.nameInResults = discovered.serverInfo;
    channel.negotiated(revision);
    this.#meta = new RequestMeta(profile, revision);
    const meta = this.#meta;
    const offers = (capability: string) => this.offers(capability);
    this.#listen = new UpstreamListen({ channel, clock, meta, offers, listener });
    const reselect = (response: ResponseEnvelope) => this.#reselect(response);
    this.#context = { channel, clock, meta, mintId, suspended: new Set(), reselect };
    channel.receive({
      request: (request) => this.#refuse(request),
      notification: (notification) => {
        const passed = this.#listen.take(notification);
        if (passed !== undefined) listener.notification(passed);
      },
      closed: (reason, because) => {
        this.#listen.closed();
        for (const request of [...this.#context.suspended]) request.closed(reason, because);
      },
    });
    this.#listen.open();
  }

  override get inFlight(): number {
    return super.inFlight + this.#context.suspended.size;
  }

  send(
    request: RelayedRequest,
    edits: readonly Edit[],
    timeouts: RequestTimeouts,
    handler: RequestHandler,
  ): SentRequest | undefined {
    if (OWN_METHODS.has(request.method) && !this.isClosed) return this.#answerItself(request, edits, handler);
    return new ModernRequest(this.#context, { request, edits, timeouts, handler }).begin();
  }

  request(method: string, params: unknown, timeouts: RequestTimeouts): Promise<Outcome> {
    const { channel } = this;
    // Modern revisions have no `ping`, but every modern server that is alive answers `server/discover`.
    if (method === METHODS.ping) return channel.request(METHODS.discover, this.#meta.ownParams(undefined), timeouts);
    if (!OWN_METHODS.has(method)) return channel.request(method, this.#meta.ownParams(params), timeouts);
    return new Promise((settle) => void this.send(ownRequest(method, params ?? {}), [], timeouts, { settle }));
  }

  notify(notification: SentNotification, edits?: readonly Edit[]): void {
    if (!UNKNOWN_NOTIFICATIONS.has(notification.method)) this.channel.notify(notification, edits);
  }

  watchTask(taskId: string, settled: (agreed: boolean) => void): () => void {
    const subject: Subject = { kind: 'taskIds', name: taskId };
    this.#listen.subscribe(subject, (error) => settled(error === undefined));
    return () => this.#listen.unsubscribe(subject);
  }

  /** Refuses a request of the server, because a modern server may ask for input only in its result of a request. */
  #refuse(request: ServerRequest): void {
    request.fail(new RpcError(RPC_CODES.methodNotFound, `Protocol revision ${this.revision} has no server requests`));
  }

  #answerItself(request: RelayedRequest, edits: readonly Edit[], handler: RequestHandler): SentRequest | undefined {
    const { clock } = this.#options;
    const { method } = request;
    let isSettled = false;
    const settle = (outcome: Outcome) => {
      if (!isSettled) handler.settle(outcome);
      isSettled = true;
    };
    const done = (error?: RpcError | 'closed') => {
      if (error === 'closed') {
        settle({ kind: 'failed', reason: 'exited', sent: true });
        return;
      }
      settle({ kind: 'answered', response: ownResponse(error ?? EMPTY_RESULT), at: clock.now() });
    };
    const uri = sentText(request, edits, 'uri');
    const level = sentText(request, edits, 'level');
    if (method === METHODS.setLevel && level !== undefined && isLogLevel(level)) this.#meta.logLevel = level;
    if (method === METHODS.unsubscribe && uri !== undefined) this.#listen.unsubscribe(resource(uri));
    if (method !== METHODS.subscribe) done();
    else if (uri === undefined) done(new RpcError(RPC_CODES.invalidParams, `${method} needs a uri`));
    else this.#listen.subscribe(resource(uri), done);
    if (isSettled) return undefined;
    return {
      sentAt: clock.now(),
      cancel: () => settle({ kind: 'failed', reason: 'cancelled', sent: true }),
      keepProgress: () => () => {},
    };
  }

  /**
   * Selects one of the revisions that the server offers in its error, and returns true. Gives the connection up if Trunkline
   * speaks none of them.
   */
  #reselect(response: ResponseEnvelope): boolean {
    const offered = offeredRevision(response);
    if (offered === undefined) {
      this.#options.era.forget();
      this.#options.listener.unfit('it no longer supports a protocol revision that Trunkline speaks');
      return false;
    }
    this.revision = offered;
    this.channel.negotiated(offered);
    this.#meta.revision = offered;
    return true;
  }
}

function resource(name: string): Subject {
  return { kind: 'resourceSubscriptions', name };
}

/** Methods that the connection answers itself. */
const OWN_METHODS: ReadonlySet<string> = new Set([
  METHODS.ping,
  METHODS.setLevel,
  METHODS.subscribe,
  METHODS.unsubscribe,
]);

/** Notifications of legacy clients that modern revisions do not have. */
const UNKNOWN_NOTIFICATIONS: ReadonlySet<string> = new Set([
  METHODS.initialized,
  METHODS.rootsChanged,
  METHODS.progress,
  METHODS.taskStatus,
]);
