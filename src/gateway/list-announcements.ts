import type { DownstreamClient } from '../downstream/port.js';
import type { ListKind } from '../wire/mcp/methods.js';
import type { Cancel, Clock } from '../wire/timing/clock.js';
import { type Catalogs, changedLists } from './catalog/catalog.js';

/** Longest delay of announcements after a change of the configuration, while servers start. In milliseconds. */
const QUIET_MS = 2_000;

interface AnnouncedView {
  readonly lists: { readonly catalogs: Catalogs };
  readonly clients: Iterable<DownstreamClient>;
  /** Whether the client has read, or will read, a list for search mode. */
  isSearching(client: DownstreamClient): boolean;
}

export class ListAnnouncements {
  readonly #view: AnnouncedView;
  #announced: Catalogs;
  #isQuiet: boolean;
  readonly #cancelQuiet: Cancel;

  /** `before` has the lists that the clients of the previous view know, after a change of the configuration. */
  constructor(view: AnnouncedView, clock: Clock, before: ListAnnouncements | undefined) {
    this.#view = view;
    this.#announced = before === undefined ? view.lists.catalogs : before.#announced;
    this.#isQuiet = before !== undefined;
    this.#cancelQuiet = before === undefined ? () => {} : clock.schedule(QUIET_MS, () => this.endQuiet());
  }

  /** Announces the changes since the configuration changed, and later changes at once. */
  endQuiet(): void {
    this.#cancelQuiet();
    this.#isQuiet = false;
    this.announce();
  }

  /** Announces every list that differs from the list that was announced last. */
  announce(): void {
    if (this.#isQuiet) return;
    // Reads the catalogs first, because the read may merge stale lists and call `announce` again.
    const { catalogs } = this.#view.lists;
    const announced = this.#announced;
    this.#announced = catalogs;
    const changes = new Map<boolean, readonly ListKind[]>();
    for (const client of this.#view.clients) {
      const isSearched = this.#view.isSearching(client);
      const changed = changes.get(isSearched) ?? changedLists(announced, catalogs, isSearched);
      changes.set(isSearched, changed);
      for (const kind of changed) client.listChanged(kind);
    }
  }

  accept(): void {
    this.#announced = this.#view.lists.catalogs;
  }

  /** Announces to a client of another view the lists that differ from those announced there. */
  announceTo(client: DownstreamClient, from: ListAnnouncements): void {
    const isSearched = this.#view.isSearching(client);
    for (const kind of changedLists(from.#announced, this.#view.lists.catalogs, isSearched)) client.listChanged(kind);
  }

  close(): void {
    this.#cancelQuiet();
  }
}
