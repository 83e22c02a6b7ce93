import type { EventBus } from '../observe/events/event-bus.js';
import type { OnInternalError } from './error-boundary.js';

/** Counts internal errors for the status, and publishes those that an error boundary caught. */
export class InternalErrorLog {
  readonly #events: EventBus;
  #count = 0;

  constructor(events: EventBus) {
    this.#events = events;
    events.subscribe('internal.error', () => {
      this.#count += 1;
    });
  }

  get count(): number {
    return this.#count;
  }

  readonly onInternalError: OnInternalError = (error) => {
    this.#events.emit({ kind: 'internal.error', error });
  };
}
