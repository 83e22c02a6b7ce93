import { LIST_KINDS, type ListKind } from '../../mcp/lists.js';
import { Catalog, type OwnEntry } from './catalog.js';
import type { Paging } from './paged-list.js';
import type { ListedServer, ListNaming } from './server-lists.js';
import { UiAliases } from './ui-aliases.js';
import { toolsInView, type ViewFilter } from './view-filter.js';

/** Snapshot of all merged lists. */
export interface Catalogs extends Readonly<Record<ListKind, Catalog>> {
  readonly ui: UiAliases;
}

export interface MergeOptions {
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
