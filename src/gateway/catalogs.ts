import { LIST_KINDS, type ListKind } from '../mcp/lists.js';
import type { Backend } from './backend.js';
import { Catalog, type OwnEntry } from './catalog.js';
import type { Paging } from './paged-list.js';

/** All merged lists at one moment. */
export type Catalogs = Readonly<Record<ListKind, Catalog>>;

export interface MergeOptions {
  /** In the order of the configuration. */
  readonly backends: Iterable<Backend>;
  readonly ownTools: readonly OwnEntry[];
  readonly paging: Paging;
}

/** Merges what the backends offer now, in their order. */
export function mergeCatalogs({ backends, ownTools, paging }: MergeOptions): Catalogs {
  const all = [...backends];
  const merge = (kind: ListKind, own: readonly OwnEntry[] = []) =>
    new Catalog(
      kind,
      all.map(({ key, prefix, lists }) => ({ key, prefix, list: lists[kind] })),
      own,
      paging,
    );
  return {
    tools: merge('tools', ownTools),
    prompts: merge('prompts'),
    resources: merge('resources'),
    templates: merge('templates'),
  };
}

/** The lists in which a client would see a difference. */
export function changedLists(before: Catalogs, after: Catalogs): ListKind[] {
  return LIST_KINDS.filter((kind) => !before[kind].isLike(after[kind]));
}
