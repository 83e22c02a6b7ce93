import { type OnInternalError, withErrorBoundary } from '../../../errors/internal-error.js';
import type { GatewaySession } from '../../port.js';
import type { SubjectSource, Subscriber } from './listen.js';

interface Subscription {
  readonly subscribers: Set<Subscriber>;
  isAgreed: boolean;
  end: () => void;
}

export interface TaskSubscriptionsOptions {
  readonly session: () => GatewaySession;
  readonly onInternalError?: OnInternalError | undefined;
}

/**
 * The tasks that one client is notified of, by the names that the client knows them by. The first subscriber watches a task
 * at its server, the last one to leave ends that.
 */
export class TaskSubscriptions implements SubjectSource {
  readonly #options: TaskSubscriptionsOptions;
  readonly #subscriptions = new Map<string, Subscription>();

  constructor(options: TaskSubscriptionsOptions) {
    this.#options = options;
  }

  join(task: string, subscriber: Subscriber): void {
    const known = this.#subscriptions.get(task);
    if (known !== undefined) {
      known.subscribers.add(subscriber);
      if (known.isAgreed) subscriber.subscribed(task);
      return;
    }
    const subscription: Subscription = { subscribers: new Set([subscriber]), isAgreed: false, end: () => {} };
    this.#subscriptions.set(task, subscription);
    withErrorBoundary(
      () => {
        const { session } = this.#options;
        subscription.end = session().watchTask(task, (agreed) => this.#settled(task, subscription, agreed));
      },
      this.#options.onInternalError,
      () => this.#settled(task, subscription, false),
    );
  }

  leave(task: string, subscriber: Subscriber): void {
    const subscription = this.#subscriptions.get(task);
    if (subscription?.subscribers.delete(subscriber) !== true || subscription.subscribers.size > 0) return;
    this.#subscriptions.delete(task);
    subscription.end();
  }

  /** The client has left. */
  close(): void {
    const all = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    for (const { end } of all) end();
  }

  #settled(task: string, subscription: Subscription, agreed: boolean): void {
    if (this.#subscriptions.get(task) !== subscription) return;
    subscription.isAgreed = agreed;
    if (!agreed) this.#subscriptions.delete(task);
    for (const subscriber of [...subscription.subscribers]) {
      if (agreed) subscriber.subscribed(task);
      else subscriber.refused(task);
    }
  }
}
