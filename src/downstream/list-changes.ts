import type { SplicedMessage } from '../json/splice.js';
import { notificationMessage } from '../jsonrpc/message.js';
import { LISTS, type ListKind } from '../mcp/methods.js';
import type { Clock } from '../timing/clock.js';
import { Debounce } from '../timing/debounce.js';

/** The first change is announced at once; later ones no more often than this. */
const ANNOUNCE_EVERY_MS = 250;

/** Announcements of one method: several lists may share it. */
interface Announcement {
  readonly debounce: Debounce;
  /** The message to send next. */
  message: SplicedMessage;
}

/**
 * Announces list changes to one client, debounced. A client that never read a list gets no announcements of its changes,
 * except those that a server makes to a client that sees it unchanged.
 */
export class ListChanges {
  readonly #clock: Clock;
  readonly #send: (message: SplicedMessage) => void;
  readonly #listed = new Set<ListKind>();
  /** By the method of the notification. */
  readonly #announcements = new Map<string, Announcement>();

  constructor(clock: Clock, send: (message: SplicedMessage) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  /** The client has read this list. */
  listed(kind: ListKind): void {
    this.#listed.add(kind);
  }

  /** The merged list has changed. */
  changed(kind: ListKind): void {
    const { changed } = LISTS[kind];
    if (this.#listed.has(kind)) this.#announce(changed, notificationMessage(changed));
  }

  /** Relays a server's own announcement. */
  relay(kind: ListKind, message: SplicedMessage): void {
    this.#announce(LISTS[kind].changed, message);
  }

  close(): void {
    for (const { debounce } of this.#announcements.values()) debounce.close();
  }

  #announce(method: string, message: SplicedMessage): void {
    const announcement = this.#announcements.get(method) ?? this.#create(method, message);
    announcement.message = message;
    announcement.debounce.request();
  }

  #create(method: string, message: SplicedMessage): Announcement {
    const announcement: Announcement = {
      message,
      debounce: new Debounce({
        clock: this.#clock,
        everyMs: ANNOUNCE_EVERY_MS,
        run: () => this.#send(announcement.message),
      }),
    };
    this.#announcements.set(method, announcement);
    return announcement;
  }
}
