import type { ListCaching } from '../../downstream/port.js';
import { LIST_KINDS, type ListKind } from '../../mcp/lists.js';
import { mergeCachingHints } from '../../mcp/modern-members.js';
import type { Clock } from '../../timing/clock.js';
import { Catalog, type OwnEntry, UiAliases } from './catalog.js';
import { toolsInView, type ViewFilter } from './named-views.js';
import type { ListNaming, ServerLists } from './offered-lists.js';
import type { Paging } from './paged-list.js';

/** Properties of a server for the merged lists. */
interface ListedServer {
  readonly key: string;
  /** Prefix of the exposed names. Empty if names are exposed without a prefix. */
  readonly prefix: string;
  /** False until the first start has succeeded or failed. */
  readonly isStartSettled: boolean;
  /** Whether the lists are known, from the process or from the cache, or will stay unknown for now. */
  readonly hasKnownLists: boolean;
  /** The current entries. A restarting server keeps its entries; an unavailable one has none. */
  listsAs(naming: ListNaming): ServerLists;
  /** The latest known entries, also while the server is unavailable. */
  knownListsAs(naming: ListNaming): ServerLists;
  /** A client was shown this list. */
  listShown(kind: ListKind): void;
}

interface MergedListsOptions {
  /** In the order of the configuration. */
  readonly servers: readonly ListedServer[];
  readonly ownTools: readonly OwnEntry[];
  readonly naming: ListNaming;
  /** Which tools the clients see. Absent if they see all. */
  readonly view?: ViewFilter | undefined;
  readonly paging: Paging;
  readonly clock: Pick<Clock, 'now'>;
  /** Whether a client follows changes of lists that it has not read. */
  readonly isFollowed?: () => boolean;
  /** Called after each merge, except the one in the constructor. */
  readonly onMerged: (catalogs: Catalogs) => void;
}

/** Merged lists of some servers, merged again whenever one of them changes its lists. */
export class MergedLists {
  readonly #options: MergedListsOptions;
  #catalogs: Catalogs;
  /** Whether a server changed its lists since the last merge. */
  #isStale = false;
  #wereShown: boolean;

  /** Replaces the merged lists `before`, if there are any. */
  constructor(options: MergedListsOptions, before: MergedLists | undefined) {
    this.#options = options;
    this.#wereShown = before === undefined ? false : before.#wereShown;
    this.#catalogs = this.#merge(this.#wereShown ? before?.catalogs : undefined);
  }

  get catalogs(): Catalogs {
    this.#refresh();
    return this.#catalogs;
  }

  /** Whether a client has received any of these lists, or of the lists that they replaced. */
  get wereShown(): boolean {
    return this.#wereShown;
  }

  /** Whether the first start of every server has succeeded or failed. */
  get isSettled(): boolean {
    return this.#options.servers.every(({ isStartSettled }) => isStartSettled);
  }

  /** Whether the lists of every server are known, from its process or from the cache. */
  get isComplete(): boolean {
    return this.#options.servers.every(({ hasKnownLists }) => hasKnownLists);
  }

  /** Returns the list for a client, and records that a client has received it. */
  show(kind: ListKind): Catalog {
    const list = this.catalogs[kind];
    this.#wereShown = true;
    for (const server of this.#options.servers) server.listShown(kind);
    return list;
  }

  /** How a client may cache the list. `isSame`: the configuration does not make it differ from client to client. */
  caching(kind: ListKind, isSame: boolean): ListCaching {
    const { servers, naming, clock } = this.#options;
    const hint = mergeCachingHints(servers.map((server) => server.listsAs(naming)[kind].hint));
    const freshUntil = hint?.freshUntil ?? Number.POSITIVE_INFINITY;
    const isPublic = isSame && hint?.isPublic === true && freshUntil < Number.POSITIVE_INFINITY;
    return { isSettled: this.isSettled, freshMs: Math.max(0, freshUntil - clock.now()), isPublic };
  }

  /**
   * Call this when a server changed its lists. Before a client has received a list or follows its changes, and while
   * servers still start, the lists are merged when they are read.
   */
  changed(): void {
    this.#isStale = true;
    if (this.#wereShown || this.isSettled || this.#options.isFollowed?.() === true) this.#refresh();
  }

  #refresh(): void {
    if (!this.#isStale) return;
    this.#isStale = false;
    // Until a client has received a list, only the order of the configuration decides who owns a `ui://` URI.
    this.#catalogs = this.#merge(this.#wereShown ? this.#catalogs : undefined);
    this.#options.onMerged(this.#catalogs);
  }

  #merge(before: Catalogs | undefined): Catalogs {
    const { servers, ownTools, naming, view, paging } = this.#options;
    return mergeCatalogs({ servers, ownTools, naming, view, paging, previous: before });
  }
}

/** Snapshot of all merged lists. */
export interface Catalogs extends Readonly<Record<ListKind, Catalog>> {
  readonly ui: UiAliases;
}

interface MergeOptions {
  /** In the order of the configuration. */
  readonly servers: Iterable<ListedServer>;
  readonly ownTools: readonly OwnEntry[];
  readonly naming: ListNaming;
  /** Which tools the clients see. Absent if they see all. */
  readonly view?: ViewFilter | undefined;
  readonly paging: Paging;
  /** The catalogs that clients have seen before. Their `ui://` URIs keep their owners. */
  readonly previous?: Catalogs | undefined;
}

/** Merges the current lists of the servers, in the order of the servers. */
export function mergeCatalogs({ servers, ownTools, naming, view, paging, previous: before }: MergeOptions): Catalogs {
  const all = [...servers];
  const ui = new UiAliases(
    all.map((server) => ({ key: server.key, ...server.knownListsAs(naming) })),
    before?.ui,
  );
  const merge = (kind: ListKind, own: readonly OwnEntry[] = []) =>
    new Catalog(
      kind,
      all.map((server) => {
        const { key, prefix } = server;
        const known = server.listsAs(naming)[kind];
        const list = ui.apply(key, kind === 'tools' ? toolsInView(key, known, view) : known);
        return { key, prefix: naming === 'exposed' ? prefix : '', list };
      }),
      own,
      paging,
    );
  return {
    ui,
    tools: merge('tools', ownTools),
    prompts: merge('prompts'),
    resources: merge('resources'),
    templates: merge('templates'),
  };
}

/** Returns the lists whose bytes differ. */
export function changedLists(before: Catalogs, after: Catalogs): ListKind[] {
  return LIST_KINDS.filter((kind) => !before[kind].equals(after[kind]));
}
