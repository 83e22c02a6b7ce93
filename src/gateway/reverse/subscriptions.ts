import { type DownstreamClient, type Exchange, withMembers } from '../../downstream/port.js';
import { internalError, type OnInternalError, withErrorBoundaryAsync } from '../../host/errors/internal-error.js';
import { isString, readString, stringAt, toBytes } from '../../wire/json/json-text.js';
import { EMPTY_RESULT, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { NotificationEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { isUiUri } from '../../wire/mcp/ui-uris.js';
import type { Backend } from '../registry/backend.js';
import type { Target } from '../routing/router.js';

/** The URIs under which a client sees a server's resources, by their original URIs. */
type AliasesOf = (client: DownstreamClient) => ReadonlyMap<string, string> | undefined;

type Change = (subscription: Subscription) => Promise<void>;

/** The clients that subscribed to one resource of one server. */
interface Subscription {
  readonly backend: Backend;
  /** The server's own URI. */
  readonly uri: string;
  /** Each client with the URI under which it sees the resource. */
  readonly clients: Map<DownstreamClient, string>;
  /** Changes run one after the other, because each depends on the result of the previous one. */
  readonly changes: Change[];
}

/** Limit of the URIs that one client is subscribed to, in characters. */
const MAX_URIS = 4 * 1024 * 1024;
/** Smallest number of characters that a subscription counts, because it takes memory besides its URI. */
const MIN_URI = 64;
const TOO_MANY = new RpcError(
  RPC_CODES.internalError,
  'The client has too many subscriptions, so it must end some first',
);

/**
 * Subscriptions of all clients to resources.
 *
 * Clients share servers, so only the first subscription to a URI and the last unsubscription go to the server; the gateway
 * counts the others. A new process gets all subscriptions of the previous one.
 */
export class Subscriptions {
  readonly #byBackend = new WeakMap<Backend, Map<string, Subscription>>();
  /** The total of the URIs that each client is subscribed to. */
  readonly #totals = new WeakMap<DownstreamClient, number>();
  readonly #onInternalError: OnInternalError | undefined;

  constructor(onInternalError?: OnInternalError) {
    this.#onInternalError = onInternalError;
  }

  /** The server that holds a client's subscription to `exposed`, even if the URI belongs to another server by now. */
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

  /** Serves a request to subscribe to a resource, or to unsubscribe; the client sees the resource as `exposed`. */
  serve(exchange: Exchange, backend: Backend, uri: string, exposed = uri): void {
    const isJoining = exchange.request.method === METHODS.subscribe;
    this.#change(backend, uri, (subscription) => {
      const change = isJoining ? this.#join(exchange, subscription, exposed) : this.#leave(exchange, subscription);
      return withErrorBoundaryAsync(change, this.#onInternalError, () => exchange.fail(internalError()));
    });
  }

  /** Relays an update to the subscribers of its URI. Without any, all subscribers get it, because it may be a part of a resource. */
  notify(backend: Backend, notification: NotificationEnvelope, aliasesOf: AliasesOf): void {
    const subscriptions = this.#byBackend.get(backend);
    const { bytes, tokens } = notification;
    const { uri: token } = tokens;
    const uri = stringAt(bytes, token) ?? '';
    const all = () => [...(subscriptions?.values() ?? [])].flatMap(({ clients }) => [...clients.keys()]);
    const byAlias = () => new Map(all().map((client) => [client, aliasesOf(client)?.get(uri) ?? uri]));
    for (const [client, exposed] of subscriptions?.get(uri)?.clients ?? byAlias()) {
      const isKnown = token === undefined || !isString(bytes, token) || exposed === uri;
      client.notify(notification, isKnown ? [] : [{ span: token, text: toBytes(JSON.stringify(exposed)) }]);
    }
  }

  move(client: DownstreamClient, from: Backend, to: Backend): void {
    this.#visit(from, (left) => {
      const { uri, clients } = left;
      const exposed = clients.get(client);
      if (exposed === undefined || !this.#remove(client, left)) return;
      if (clients.size === 0) this.#unsubscribe(from, uri);
      this.#change(to, uri, async (subscription) => {
        const isFirst = subscription.clients.size === 0;
        this.#add(client, subscription, exposed);
        if (isFirst) this.#send(METHODS.subscribe, to, uri);
      });
    });
  }

  /** Whether a client is subscribed to a resource of this backend. */
  has(backend: Backend): boolean {
    return (this.#byBackend.get(backend)?.size ?? 0) > 0;
  }

  /** Subscribes a new process to everything the previous one was subscribed to. */
  restore(backend: Backend): void {
    for (const { uri, clients } of this.#byBackend.get(backend)?.values() ?? []) {
      if (clients.size > 0) this.#send(METHODS.subscribe, backend, uri);
    }
  }

  drop(client: DownstreamClient, backends: Iterable<Backend>): void {
    for (const backend of backends) {
      this.#visit(backend, (left) => {
        if (this.#remove(client, left) && left.clients.size === 0) this.#unsubscribe(backend, left.uri);
      });
    }
  }

  /** Visits all subscriptions of a backend. Visits one again after a pending change, because the change may add a client. */
  #visit(backend: Backend, visit: (subscription: Subscription) => void): void {
    for (const subscription of this.#byBackend.get(backend)?.values() ?? []) {
      const { uri, changes } = subscription;
      const isChanging = changes.length > 0;
      visit(subscription);
      if (isChanging) this.#change(backend, uri, async (changed) => visit(changed));
    }
  }

  /** Unsubscribes at the server after the last subscriber has gone. */
  #unsubscribe(backend: Backend, uri: string): void {
    this.#change(backend, uri, async ({ clients }) => {
      if (clients.size === 0) this.#send(METHODS.unsubscribe, backend, uri);
    });
  }

  #change(backend: Backend, uri: string, change: Change): void {
    const subscriptions = this.#byBackend.get(backend) ?? new Map<string, Subscription>();
    this.#byBackend.set(backend, subscriptions);
    const subscription: Subscription = subscriptions.get(uri) ?? { backend, uri, clients: new Map(), changes: [] };
    subscriptions.set(uri, subscription);
    subscription.changes.push(change);
    if (subscription.changes.length === 1) void this.#runChanges(subscription, subscriptions);
  }

  async #runChanges(subscription: Subscription, subscriptions: Map<string, Subscription>): Promise<void> {
    for (let [change] = subscription.changes; change !== undefined; [change] = subscription.changes) {
      await withErrorBoundaryAsync(change(subscription), this.#onInternalError);
      subscription.changes.shift();
    }
    if (subscription.clients.size === 0) subscriptions.delete(subscription.uri);
  }

  async #join(exchange: Exchange, subscription: Subscription, exposed: string): Promise<void> {
    const { backend, uri, clients } = subscription;
    const { client } = exchange;
    if (!clients.has(client) && this.#totalOf(client) + sizeOf(uri) > MAX_URIS) {
      exchange.fail(TOO_MANY);
    } else if (clients.size > 0) {
      if (!exchange.isSettled) this.#add(client, subscription, exposed);
      exchange.succeed(EMPTY_RESULT);
    } else if (!exchange.isSettled && (await this.#forward(exchange, backend, uri))) {
      this.#add(client, subscription, exposed);
    }
  }

  async #leave(exchange: Exchange, subscription: Subscription): Promise<void> {
    // A request that is already cancelled must not be sent, because nothing would report its end.
    if (exchange.isSettled) return;
    const { backend, uri, clients } = subscription;
    const isLast = clients.size === 0 || (clients.size === 1 && clients.has(exchange.client));
    this.#remove(exchange.client, subscription);
    if (isLast) await this.#forward(exchange, backend, uri);
    else exchange.succeed(EMPTY_RESULT);
  }

  #add(client: DownstreamClient, { uri, clients }: Subscription, exposed: string): void {
    if (!clients.has(client)) this.#totals.set(client, this.#totalOf(client) + sizeOf(uri));
    clients.set(client, exposed);
  }

  /** Removes the client. Returns whether it was subscribed. */
  #remove(client: DownstreamClient, { uri, clients }: Subscription): boolean {
    const wasThere = clients.delete(client);
    if (wasThere) this.#totals.set(client, this.#totalOf(client) - sizeOf(uri));
    return wasThere;
  }

  #totalOf(client: DownstreamClient): number {
    return this.#totals.get(client) ?? 0;
  }

  /** Sends the client's request to the server. Resolves with whether the server agreed. */
  #forward(exchange: Exchange, backend: Backend, uri: string): Promise<boolean> {
    const { request } = exchange;
    const token = request.tokens.uri;
    const isSame = token === undefined || readString(request.bytes, token) === uri;
    const edits = isSame ? [] : [{ span: token, text: toBytes(JSON.stringify(uri)) }];
    return new Promise((resolve) => {
      const forwarded = observed(exchange, (agreed) => {
        // The client cancelled or left, but the server may have agreed, so the subscription is removed again.
        if (agreed === undefined && request.method === METHODS.subscribe) this.#send(METHODS.unsubscribe, backend, uri);
        resolve(agreed === true);
      });
      backend.serve(forwarded, { edits });
    });
  }

  /** Sends a request of the gateway's own and ignores the response. */
  #send(method: string, backend: Backend, uri: string): void {
    void backend.dispatcher.connection?.request(method, { uri }, backend.dispatcher.listTimeouts);
  }
}

function sizeOf(uri: string): number {
  return Math.max(uri.length, MIN_URI);
}

/** Returns the exchange, with its end reported to `onEnd`: whether the server agreed, or `undefined` if it was cancelled. */
function observed(exchange: Exchange, onEnd: (agreed: boolean | undefined) => void): Exchange {
  return withMembers(exchange, {
    answer: (response) => {
      exchange.answer(response);
      onEnd(response.error === undefined);
    },
    fail: (reason) => {
      exchange.fail(reason);
      onEnd(false);
    },
    onCancel: (listener) =>
      exchange.onCancel((notification) => {
        listener(notification);
        onEnd(undefined);
      }),
  });
}
