import type { GatewayEvent } from './events.js';

type Kind = GatewayEvent['kind'];
type EventOf<K extends Kind> = Extract<GatewayEvent, { readonly kind: K }>;
type Listener = (event: GatewayEvent) => void;

/** For those who report what happens. Check `wants` before building an event on the path of a call. */
export interface EventSink {
  /** Whether anybody subscribes to events of this kind. */
  wants(kind: Kind): boolean;
  emit(event: GatewayEvent): void;
}

/** For those who want to know what happens. */
export interface EventSource {
  /** Calls `listener` for each event of this kind, in the tick in which it happens. Returns how to unsubscribe. */
  subscribe<K extends Kind>(kind: K, listener: (event: EventOf<K>) => void): () => void;
}

/**
 * Carries the events of the gateway to their subscribers, such as the log and the status.
 *
 * An event without a subscriber is never built. If a listener throws, the other listeners still get the event. The error is an
 * internal error, which is an event as well.
 */
export class EventBus implements EventSink, EventSource {
  readonly #listeners = new Map<Kind, readonly Listener[]>();

  wants(kind: Kind): boolean {
    return this.#listeners.has(kind);
  }

  subscribe<K extends Kind>(kind: K, listener: (event: EventOf<K>) => void): () => void {
    // Only events of this kind reach it.
    const added = (event: GatewayEvent) => listener(event as EventOf<K>);
    this.#listeners.set(kind, [...(this.#listeners.get(kind) ?? []), added]);
    return () => {
      const left = (this.#listeners.get(kind) ?? []).filter((each) => each !== added);
      if (left.length === 0) this.#listeners.delete(kind);
      else this.#listeners.set(kind, left);
    };
  }

  emit(event: GatewayEvent): void {
    for (const listener of this.#listeners.get(event.kind) ?? []) {
      try {
        listener(event);
      } catch (error) {
        // A listener to internal errors that throws would be told of its own errors forever.
        if (event.kind !== 'internal.error') this.emit({ kind: 'internal.error', error });
      }
    }
  }
}

/** For parts that run without anybody who wants to know, such as most tests. */
export const NO_EVENTS: EventSink = { wants: () => false, emit: () => {} };
