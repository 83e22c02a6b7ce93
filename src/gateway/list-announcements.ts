import type { DownstreamClient } from '../downstream/port.js';
import type { Cancel, Clock } from '../timing/clock.js';
import { type Catalogs, changedLists } from './catalog/catalogs.js';
import type { MergedLists } from './catalog/merged-lists.js';

export interface ListAnnouncementsOptions {
  readonly clock: Clock;
  readonly lists: MergedLists;
  /** Who is told. */
  readonly clients: Iterable<DownstreamClient>;
  /** Where the configuration has changed: what the clients were told until now. */
  readonly before: ListAnnouncements | undefined;
}

/** After a change of the configuration clients are told once, when what has to start has started, but soon. */
const QUIET_MS = 2_000;

/** Tells clients which lists are no longer what they were when they were last told. */
export class ListAnnouncements {
  readonly #lists: MergedLists;
  readonly #clients: Iterable<DownstreamClient>;
  #told: Catalogs;
  #isQuiet: boolean;
  readonly #cancelQuiet: Cancel;

  constructor({ clock, lists, clients, before }: ListAnnouncementsOptions) {
    this.#lists = lists;
    this.#clients = clients;
    this.#told = before === undefined ? lists.catalogs : before.#told;
    this.#isQuiet = before !== undefined;
    this.#cancelQuiet = before === undefined ? () => {} : clock.schedule(QUIET_MS, () => this.endQuiet());
  }

  /** Nothing more is waited for after a change of the configuration. */
  endQuiet(): void {
    this.#cancelQuiet();
    this.#isQuiet = false;
    this.tell();
  }

  tell(): void {
    if (this.#isQuiet) return;
    // Merging what is stale tells of it, too; so this comes first.
    const { catalogs } = this.#lists;
    const told = this.#told;
    this.#told = catalogs;
    for (const kind of changedLists(told, catalogs)) {
      for (const client of this.#clients) client.listChanged(kind);
    }
  }

  /** Tells a client that comes from elsewhere, and knows what was told there. */
  welcome(client: DownstreamClient, from: ListAnnouncements): void {
    for (const kind of changedLists(from.#told, this.#lists.catalogs)) client.listChanged(kind);
  }

  close(): void {
    this.#cancelQuiet();
  }
}
