import type { SplicedMessage } from '../wire/json/splice.js';
import { notificationMessage } from '../wire/jsonrpc/message.js';
import { LISTS, type ListKind } from '../wire/mcp/methods.js';
import type { Clock } from '../wire/timing/clock.js';
import { Debounce } from '../wire/timing/debounce.js';

/** Shortest time between two announcements, in milliseconds. The first change is announced at once. */
const ANNOUNCE_EVERY_MS = 250;

/**
 * Announces list changes to one client, debounced. Announces no changes of a list that the client never read, except those that
 * the only server of the client announces itself (`relay`).
 */
export class ListChanges {
  readonly #listed = new Set<ListKind>();
  /** The messages to send next, by their methods. Several lists may share a method. */
  readonly #next = new Map<string, SplicedMessage>();
  readonly #debounce: Debounce;

  constructor(clock: Clock, send: (message: SplicedMessage) => void) {
    const run = () => {
      const messages = [...this.#next.values()];
      this.#next.clear();
      for (const message of messages) send(message);
    };
    this.#debounce = new Debounce({ clock, everyMs: ANNOUNCE_EVERY_MS, run });
  }

  listed(kind: ListKind): void {
    this.#listed.add(kind);
  }

  changed(kind: ListKind): void {
    if (this.#listed.has(kind)) this.relay(kind, notificationMessage(LISTS[kind].changed));
  }

  relay(kind: ListKind, message: SplicedMessage): void {
    this.#next.set(LISTS[kind].changed, message);
    this.#debounce.request();
  }

  close(): void {
    this.#debounce.close();
  }
}
