import type { SplicedMessage } from '../json/splice.js';
import { notificationMessage } from '../jsonrpc/message.js';
import { LISTS, type ListKind } from '../mcp/methods.js';
import type { Clock } from '../timing/clock.js';
import { Debounce } from '../timing/debounce.js';

/** The first change is announced at once; later ones no more often than this. */
const ANNOUNCE_EVERY_MS = 250;

/**
 * Announces list changes to one client, debounced. A client that never read a list gets no announcements of its changes,
 * except those that a server makes to a client that sees it unchanged.
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

  /** Relays a server's own announcement. */
  relay(kind: ListKind, message: SplicedMessage): void {
    this.#next.set(LISTS[kind].changed, message);
    this.#debounce.request();
  }

  close(): void {
    this.#debounce.close();
  }
}
