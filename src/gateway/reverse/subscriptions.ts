import { ExchangeDecorator } from '../../downstream/exchange-decorator.js';
import type { Failure } from '../../downstream/failure.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { type OnInternalError, withErrorBoundaryAsync } from '../../errors/error-boundary.js';
import { internalError } from '../../errors/internal-error.js';
import { isString, readString, toBytes } from '../../json/json-text.js';
import type { RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import { isUiUri } from '../../mcp/ui-uri.js';
import type { Backend } from '../registry/backend.js';
import type { Target } from '../routing/router.js';

/** The URIs of a server under which a client sees them, by those of the server's own. */
type AliasesOf = (client: DownstreamClient) => ReadonlyMap<string, string> | undefined;

type Change = (subscription: Subscription) => Promise<void>;

/** One resource of one server that clients subscribe to. */
interface Subscription {
  readonly backend: Backend;
  /** As the server knows it. */
  readonly uri: string;
  /** Each with the URI under which it knows the resource. */
  readonly clients: Map<DownstreamClient, string>;
  /** One change at a time: what the next one has to do depends on how the last one ended. */
  readonly changes: Change[];
}

const EMPTY_RESULT = toBytes('{}');

/**
 * Who is subscribed to which resource.
 *
 * Clients share a server's process, so only the first subscription to a URI and the end of the last one go to the
 * server; in between it is the gateway that keeps count. A new process is told what the last one knew.
 */
export class Subscriptions {
  readonly #byBackend = new WeakMap<Backend, Map<string, Subscription>>();
  readonly #onFault: OnInternalError | undefined;

  constructor(onFault?: OnInternalError) {
    this.#onFault = onFault;
  }

  /** Where a client's subscription was made that knows the resource as `exposed`, whoever that belongs to by now. */
  holder(client: DownstreamClient, exposed: string, backends: Iterable<Backend>): Target | undefined {
    for (const backend of backends) {
      const subscriptions = this.#byBackend.get(backend);
      const candidates = isUiUri(exposed) ? (subscriptions?.values() ?? []) : [subscriptions?.get(exposed)];
      for (const candidate of candidates) {
        if (candidate?.clients.get(client) === exposed) return { backend, edits: [], original: candidate.uri };
      }
    }
    return undefined;
  }

  /** Serves a request to subscribe or to unsubscribe from a resource that the client knows as `exposed`. */
  serve(exchange: Exchange, backend: Backend, uri: string, exposed = uri): void {
    const isJoining = exchange.request.method === METHODS.subscribe;
    this.#change(backend, uri, (subscription) => {
      const change = isJoining ? this.#join(exchange, subscription, exposed) : this.#leave(exchange, subscription);
      return withErrorBoundaryAsync(change, this.#onFault, () => exchange.fail(internalError()));
    });
  }

  /**
   * Hands an update to whoever subscribed to its URI, each under the URI that it knows. One of a part of a resource
   * concerns all subscribers of the server, whose aliases stand for its URIs then.
   */
  notify(backend: Backend, notification: NotificationEnvelope, aliasesOf: AliasesOf): void {
    const subscriptions = this.#byBackend.get(backend);
    const { bytes, tokens } = notification;
    const token = tokens.uri !== undefined && isString(bytes, tokens.uri) ? tokens.uri : undefined;
    const uri = token === undefined ? '' : readString(bytes, token);
    const all = () => [...(subscriptions?.values() ?? [])].flatMap(({ clients }) => [...clients.keys()]);
    const byAlias = () => new Map(all().map((client) => [client, aliasesOf(client)?.get(uri) ?? uri]));
    for (const [client, exposed] of subscriptions?.get(uri)?.clients ?? byAlias()) {
      const isKnown = token === undefined || exposed === uri;
      client.notify(notification, isKnown ? [] : [{ span: token, text: toBytes(JSON.stringify(exposed)) }]);
    }
  }

  /** The client has another backend of the same server, whose process will be told when it is there. */
  move(client: DownstreamClient, from: Backend, to: Backend): void {
    for (const { uri, clients } of this.#byBackend.get(from)?.values() ?? []) {
      const exposed = clients.get(client);
      if (exposed === undefined || !clients.delete(client)) continue;
      this.#change(to, uri, async (subscription) => {
        subscription.clients.set(client, exposed);
        if (subscription.clients.size === 1) this.#say(METHODS.subscribe, to, uri);
      });
    }
  }

  /** Whether anybody is subscribed to anything there. */
  has(backend: Backend): boolean {
    return (this.#byBackend.get(backend)?.size ?? 0) > 0;
  }

  /** A new process stands behind the backend. */
  restore(backend: Backend): void {
    for (const { uri, clients } of this.#byBackend.get(backend)?.values() ?? []) {
      if (clients.size > 0) this.#say(METHODS.subscribe, backend, uri);
    }
  }

  /** The client is gone. */
  drop(client: DownstreamClient, backends: Iterable<Backend>): void {
    for (const backend of backends) {
      for (const { uri, clients } of this.#byBackend.get(backend)?.values() ?? []) {
        if (!clients.delete(client) || clients.size > 0) continue;
        this.#change(backend, uri, async (subscription) => {
          if (subscription.clients.size === 0) this.#say(METHODS.unsubscribe, backend, uri);
        });
      }
    }
  }

  #change(backend: Backend, uri: string, change: Change): void {
    const subscriptions = this.#byBackend.get(backend) ?? new Map<string, Subscription>();
    this.#byBackend.set(backend, subscriptions);
    const subscription: Subscription = subscriptions.get(uri) ?? { backend, uri, clients: new Map(), changes: [] };
    subscriptions.set(uri, subscription);
    subscription.changes.push(change);
    if (subscription.changes.length === 1) void this.#carryOut(subscription, subscriptions);
  }

  async #carryOut(subscription: Subscription, subscriptions: Map<string, Subscription>): Promise<void> {
    for (let [change] = subscription.changes; change !== undefined; [change] = subscription.changes) {
      await withErrorBoundaryAsync(change(subscription), this.#onFault);
      subscription.changes.shift();
    }
    if (subscription.clients.size === 0) subscriptions.delete(subscription.uri);
  }

  async #join(exchange: Exchange, { backend, uri, clients }: Subscription, exposed: string): Promise<void> {
    if (clients.size > 0) {
      if (!exchange.isSettled) clients.set(exchange.client, exposed);
      exchange.succeed(EMPTY_RESULT);
    } else if (!exchange.isSettled && (await this.#tell(exchange, backend, uri))) {
      clients.set(exchange.client, exposed);
    }
  }

  async #leave(exchange: Exchange, { backend, uri, clients }: Subscription): Promise<void> {
    const isLast = clients.size === 0 || (clients.size === 1 && clients.has(exchange.client));
    clients.delete(exchange.client);
    if (isLast) await this.#tell(exchange, backend, uri);
    else exchange.succeed(EMPTY_RESULT);
  }

  /** Brings the request to the server; its answer goes to the client as it is. Resolves with whether it agreed. */
  #tell(exchange: Exchange, backend: Backend, uri: string): Promise<boolean> {
    const { request } = exchange;
    const token = request.tokens.uri;
    const isSame = token === undefined || readString(request.bytes, token) === uri;
    const edits = isSame ? [] : [{ span: token, text: toBytes(JSON.stringify(uri)) }];
    return new Promise((resolve) => {
      const asked = new AskedSubscription(exchange, (agreed) => {
        // The client has cancelled, or gone, while the server may have agreed: there must be nothing to be had for it.
        if (agreed === undefined && request.method === METHODS.subscribe) this.#say(METHODS.unsubscribe, backend, uri);
        resolve(agreed === true);
      });
      backend.serve(asked, { edits });
    });
  }

  /** On the gateway's own behalf, where nobody waits for the answer. */
  #say(method: string, backend: Backend, uri: string): void {
    void backend.dispatcher.connection?.ask(method, { uri }, backend.dispatcher.listTimeouts);
  }
}

/** A request to subscribe or unsubscribe while the server is asked; tells how that ended, `undefined` if cancelled. */
class AskedSubscription extends ExchangeDecorator {
  readonly #onEnd: (agreed: boolean | undefined) => void;

  constructor(exchange: Exchange, onEnd: (agreed: boolean | undefined) => void) {
    super(exchange);
    this.#onEnd = onEnd;
  }

  override answer(response: ResponseEnvelope): void {
    super.answer(response);
    this.#onEnd(response.error === undefined);
  }

  override fail(reason: RpcError | Failure): void {
    super.fail(reason);
    this.#onEnd(false);
  }

  override onCancel(listener: (notice?: NotificationEnvelope) => void): void {
    super.onCancel((notice) => {
      listener(notice);
      this.#onEnd(undefined);
    });
  }
}
