import { type OnInternalError, withErrorBoundary } from '../../../errors/internal-error.js';
import { METHODS } from '../../../mcp/methods.js';
import type { DownstreamClient, GatewaySession } from '../../port.js';
import type { SubjectSource, Subscriber } from './listen.js';
import { UriExchange } from './uri-exchange.js';

interface Subscription {
  readonly uri: string;
  readonly subscribers: Set<Subscriber>;
  state: 'waiting' | 'agreed';
  /** The request to subscribe, while it is in flight. */
  exchange?: UriExchange;
}

/** Most requests of one client that are in flight at once, so that calls find a free slot at the server. */
const MAX_IN_FLIGHT = 16;

export interface UriSubscriptionsOptions {
  readonly client: DownstreamClient;
  readonly session: () => GatewaySession;
  readonly onInternalError?: OnInternalError | undefined;
}

/**
 * The resources that one client is subscribed to. Several subscribers may want the same URI: the first one subscribes at
 * the server, the last one to leave unsubscribes.
 */
export class UriSubscriptions implements SubjectSource {
  readonly #options: UriSubscriptionsOptions;
  readonly #subscriptions = new Map<string, Subscription>();
  /** Requests that wait until fewer are in flight. */
  #queue: (() => void)[] = [];
  #inFlight = 0;
  #isStarting = false;

  constructor(options: UriSubscriptionsOptions) {
    this.#options = options;
  }

  join(uri: string, subscriber: Subscriber): void {
    const subscription = this.#subscriptions.get(uri);
    if (subscription === undefined) this.#subscribe({ uri, subscribers: new Set([subscriber]), state: 'waiting' });
    else subscription.subscribers.add(subscriber);
    if (subscription?.state === 'agreed') subscriber.subscribed(uri);
  }

  /** A request to subscribe that nobody waits for any more is withdrawn. */
  leave(uri: string, subscriber: Subscriber): void {
    const subscription = this.#subscriptions.get(uri);
    if (subscription?.subscribers.delete(subscriber) !== true || subscription.subscribers.size > 0) return;
    this.#subscriptions.delete(uri);
    subscription.exchange?.cancel();
    if (subscription.state === 'agreed') this.#enqueue(() => this.#send(METHODS.unsubscribe, uri, () => {}));
  }

  /** The client has left, and its session unsubscribes from everything. */
  close(): void {
    const all = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    this.#queue = [];
    for (const { exchange } of all) exchange?.cancel();
  }

  #subscribe(subscription: Subscription): void {
    const { uri } = subscription;
    this.#subscriptions.set(uri, subscription);
    this.#enqueue(() => {
      // Nobody waits for it any more.
      if (this.#subscriptions.get(uri) !== subscription) return;
      this.#send(METHODS.subscribe, uri, (agreed) => this.#settled(subscription, agreed), subscription);
    });
  }

  #settled(subscription: Subscription, agreed: boolean): void {
    const { uri, subscribers } = subscription;
    delete subscription.exchange;
    if (this.#subscriptions.get(uri) !== subscription) return;
    if (agreed) subscription.state = 'agreed';
    else this.#subscriptions.delete(uri);
    for (const subscriber of [...subscribers]) {
      if (agreed) subscriber.subscribed(uri);
      else subscriber.refused(uri);
    }
  }

  #send(
    method: typeof METHODS.subscribe | typeof METHODS.unsubscribe,
    uri: string,
    onSettled: (agreed: boolean) => void,
    subscription?: Subscription,
  ): void {
    const { client, session, onInternalError } = this.#options;
    this.#inFlight += 1;
    const exchange = new UriExchange({
      client,
      method,
      uri,
      onEnd: (agreed) => {
        this.#inFlight -= 1;
        onSettled(agreed);
        this.#next();
      },
    });
    if (subscription !== undefined) subscription.exchange = exchange;
    withErrorBoundary(
      () => session().serve(exchange),
      onInternalError,
      () => exchange.fail(),
    );
  }

  #enqueue(request: () => void): void {
    this.#queue.push(request);
    this.#next();
  }

  /** A request may end before its call returns, and then the loop goes on here. */
  #next(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    while (this.#inFlight < MAX_IN_FLIGHT && this.#queue.length > 0) this.#queue.shift()?.();
    this.#isStarting = false;
  }
}
