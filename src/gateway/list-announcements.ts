import type { DownstreamClient } from '../downstream/port.js';
import type { Cancel, Clock } from '../timing/clock.js';
import { type Catalogs, changedLists } from './catalog/catalogs.js';
import type { MergedLists } from './catalog/merged-lists.js';

export interface ListAnnouncementsOptions {
  readonly clock: Clock;
  readonly lists: MergedLists;
  /** The clients of the view. */
  readonly clients: Iterable<DownstreamClient>;
  /** After a change of the configuration: what the clients know from the previous view. */
  readonly before: ListAnnouncements | undefined;
}

/** After a change of the configuration, how long announcements wait for servers that are starting, at most. */
const QUIET_MS = 2_000;

/** Announces to the clients of a view which merged lists have changed. */
export class ListAnnouncements {
  readonly #lists: MergedLists;
  readonly #clients: Iterable<DownstreamClient>;
  #announced: Catalogs;
  #isQuiet: boolean;
  readonly #cancelQuiet: Cancel;

  constructor({ clock, lists, clients, before }: ListAnnouncementsOptions) {
    this.#lists = lists;
    this.#clients = clients;
    this.#announced = before === undefined ? lists.catalogs : before.#announced;
    this.#isQuiet = before !== undefined;
    this.#cancelQuiet = before === undefined ? () => {} : clock.schedule(QUIET_MS, () => this.endQuiet());
  }

  /** Announces at once what has changed since the configuration changed. */
  endQuiet(): void {
    this.#cancelQuiet();
    this.#isQuiet = false;
    this.announce();
  }

  /** Announces every list that differs from what was announced last. */
  announce(): void {
    if (this.#isQuiet) return;
    // Reading the catalogs may merge stale lists, which calls `announce` again; so this comes first.
    const { catalogs } = this.#lists;
    const announced = this.#announced;
    this.#announced = catalogs;
    for (const kind of changedLists(announced, catalogs)) {
      for (const client of this.#clients) client.listChanged(kind);
    }
  }

  /** Takes the present lists as known to the clients. */
  accept(): void {
    this.#announced = this.#lists.catalogs;
  }

  /** Announces to a client from another view what differs from the announcements there. */
  announceTo(client: DownstreamClient, from: ListAnnouncements): void {
    for (const kind of changedLists(from.#announced, this.#lists.catalogs)) client.listChanged(kind);
  }

  close(): void {
    this.#cancelQuiet();
  }
}
