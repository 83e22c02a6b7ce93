import { notificationMessage } from '../../jsonrpc/message.js';
import { LISTS, type ListKind } from '../../mcp/lists.js';
import type { Clock } from '../../timing/clock.js';
import { Debounce } from '../../timing/debounce.js';
import type { TransportSession } from '../transport.js';

/** Changes that come together are announced together, and no more often than a client can follow. */
const ANNOUNCE_AFTER_MS = 200;
const ANNOUNCE_EVERY_MS = 2_000;

/** Announces list changes to one client, debounced. A client that never read a list gets no announcements of its changes. */
export class ListChanges {
  readonly #clock: Clock;
  readonly #transport: TransportSession;
  readonly #listed = new Set<ListKind>();
  /** By the method of the notification: several lists may share one. */
  readonly #announcements = new Map<string, Debounce>();

  constructor(clock: Clock, transport: TransportSession) {
    this.#clock = clock;
    this.#transport = transport;
  }

  /** The client has read this list. */
  listed(kind: ListKind): void {
    this.#listed.add(kind);
  }

  changed(kind: ListKind): void {
    if (this.#listed.has(kind)) this.#announcement(LISTS[kind].changed).request();
  }

  close(): void {
    for (const announcement of this.#announcements.values()) announcement.close();
  }

  #announcement(method: string): Debounce {
    const known = this.#announcements.get(method);
    if (known !== undefined) return known;
    const run = () => this.#transport.send(notificationMessage(method));
    const made = new Debounce({ clock: this.#clock, delayMs: ANNOUNCE_AFTER_MS, everyMs: ANNOUNCE_EVERY_MS, run });
    this.#announcements.set(method, made);
    return made;
  }
}
