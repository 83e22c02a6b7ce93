import { type OnInternalError, withErrorBoundary } from '../../errors/error-boundary.js';
import type { ListKind } from '../../mcp/lists.js';
import type { Catalog, OwnEntry } from './catalog.js';
import { type Catalogs, mergeCatalogs } from './catalogs.js';
import type { Paging } from './paged-list.js';
import type { ListedServer, ListNaming } from './server-lists.js';

export interface MergedListsOptions {
  /** In the order of the configuration. */
  readonly servers: readonly ListedServer[];
  readonly ownTools: readonly OwnEntry[];
  readonly naming: ListNaming;
  readonly paging: Paging;
  readonly onInternalError: OnInternalError | undefined;
  /** Told of what was merged anew. */
  readonly onMerged: (catalogs: Catalogs) => void;
}

/** What some backends offer together, merged anew when one of them offers something else. */
export class MergedLists {
  readonly #options: MergedListsOptions;
  #catalogs: Catalogs;
  /** What backends contribute may be different from what was merged last. */
  #isStale = false;
  #wereShown: boolean;

  /** They take the place of those `before`, if there were any. */
  constructor(options: MergedListsOptions, before: MergedLists | undefined) {
    this.#options = options;
    this.#wereShown = before === undefined ? false : before.#wereShown;
    this.#catalogs = this.#merge(this.#wereShown ? before?.catalogs : undefined);
  }

  get catalogs(): Catalogs {
    this.#refresh();
    return this.#catalogs;
  }

  /** Whether some client has been shown a list, of these or of those before. */
  get wereShown(): boolean {
    return this.#wereShown;
  }

  /** Whether every server's first start has ended, one way or the other. */
  get isSettled(): boolean {
    return this.#options.servers.every(({ isStartSettled }) => isStartSettled);
  }

  /** Whether of every server something is known that can be listed, be it from the last run. */
  get isComplete(): boolean {
    return this.#options.servers.every(({ hasKnownLists: isListed }) => isListed);
  }

  /** The list for a client that has asked for it. */
  show(kind: ListKind): Catalog {
    const list = this.catalogs[kind];
    this.#wereShown = true;
    return list;
  }

  /** What some backend contributes may have changed. At the start that of many does at once, and is merged once. */
  changed(): void {
    if (this.#isStale) return;
    this.#isStale = true;
    if (this.#wereShown || this.isSettled) this.#refresh();
    else void SETTLED.then(() => withErrorBoundary(() => this.#refresh(), this.#options.onInternalError));
  }

  #refresh(): void {
    if (!this.#isStale) return;
    this.#isStale = false;
    // While nobody has seen a list, the order of the configuration decides alone.
    this.#catalogs = this.#merge(this.#wereShown ? this.#catalogs : undefined);
    this.#options.onMerged(this.#catalogs);
  }

  #merge(before: Catalogs | undefined): Catalogs {
    const { servers, ownTools, naming, paging } = this.#options;
    return mergeCatalogs({ servers, ownTools, naming, paging, previous: before });
  }
}

const SETTLED = Promise.resolve();
