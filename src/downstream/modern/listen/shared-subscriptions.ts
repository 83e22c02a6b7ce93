import { type OnInternalError, withErrorBoundary } from '../../../errors/internal-error.js';
import type { SubjectSource, Subscriber } from './listen.js';

/**
 * Subscribes to a subject at its server. Calls `settled` with whether the server agreed, and with `false` when an agreed
 * subscription ends at the server. The returned function ends the subscription.
 */
type Subscribe = (subject: string, settled: (agreed: boolean) => void) => () => void;

interface Subscription {
  readonly subscribers: Set<Subscriber>;
  isAgreed: boolean;
  end: () => void;
}

/**
 * The subjects of one kind (resources or tasks) that one client is subscribed to. The first subscriber of a subject
 * subscribes at the server; the last one to leave ends that.
 */
export class SharedSubscriptions implements SubjectSource {
  readonly #subscribe: Subscribe;
  readonly #onInternalError: OnInternalError | undefined;
  readonly #subscriptions = new Map<string, Subscription>();

  constructor(subscribe: Subscribe, onInternalError: OnInternalError | undefined) {
    this.#subscribe = subscribe;
    this.#onInternalError = onInternalError;
  }

  join(subject: string, subscriber: Subscriber): void {
    const known = this.#subscriptions.get(subject);
    if (known !== undefined) {
      known.subscribers.add(subscriber);
      if (known.isAgreed) subscriber.subscribed(subject);
      return;
    }
    const subscription: Subscription = { subscribers: new Set([subscriber]), isAgreed: false, end: () => {} };
    this.#subscriptions.set(subject, subscription);
    const settled = (agreed: boolean) => this.#settled(subject, subscription, agreed);
    withErrorBoundary(
      () => {
        const end = this.#subscribe(subject, settled);
        // The server may agree at once and the last subscriber leave because of that.
        if (this.#subscriptions.get(subject) === subscription) subscription.end = end;
        else end();
      },
      this.#onInternalError,
      () => settled(false),
    );
  }

  leave(subject: string, subscriber: Subscriber): void {
    const subscription = this.#subscriptions.get(subject);
    if (subscription?.subscribers.delete(subscriber) !== true || subscription.subscribers.size > 0) return;
    this.#subscriptions.delete(subject);
    subscription.end();
  }

  /** Ends all subscriptions, because the client has left. */
  close(): void {
    const all = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    for (const { end } of all) end();
  }

  #settled(subject: string, subscription: Subscription, agreed: boolean): void {
    if (this.#subscriptions.get(subject) !== subscription) return;
    subscription.isAgreed = agreed;
    if (!agreed) this.#subscriptions.delete(subject);
    for (const subscriber of [...subscription.subscribers]) {
      if (agreed) subscriber.subscribed(subject);
      else subscriber.refused(subject);
    }
  }
}
