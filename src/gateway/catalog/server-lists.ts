import type { ListKind } from '../../mcp/lists.js';
import { EMPTY_LIST, type ExposedList, type ExposureRules, exposeList } from './exposed-list.js';
import type { RawEntry } from './list-pages.js';

/** What one server contributes to each of the merged lists. */
export type ServerLists = Readonly<Record<ListKind, ExposedList>>;

export const NO_LISTS: ServerLists = {
  tools: EMPTY_LIST,
  prompts: EMPTY_LIST,
  resources: EMPTY_LIST,
  templates: EMPTY_LIST,
};

/** Under which names a client sees a server's entries: among those of others, or as the server itself names them. */
export type ListNaming = 'exposed' | 'original';

/** A server as the catalogue sees it. */
export interface ListedServer {
  readonly key: string;
  /** What stands before its names; empty when they are exposed as they are. */
  readonly prefix: string;
  /** False until the first start has succeeded or failed. */
  readonly isStartSettled: boolean;
  /** Whether its lists are known, from this run or from the cache, or will not be known for now. */
  readonly hasKnownLists: boolean;
  /** What it contributes now. A server that is restarting keeps its place; one that is given up contributes nothing. */
  listsAs(naming: ListNaming): ServerLists;
  /** What it offers, or offered when it was last up. */
  knownListsAs(naming: ListNaming): ServerLists;
}

/** One list of a server, under exposed and under original names. */
export interface ShownList extends Readonly<Record<ListNaming, ExposedList>> {
  /** The same under other rules. */
  withRules(rules: ExposureRules): ShownList;
}

/** What a server has listed. */
export class ServedList implements ShownList {
  readonly exposed: ExposedList;
  readonly withRules: (rules: ExposureRules) => ServedList;
  readonly #makeOriginal: () => ExposedList;
  #original: ExposedList | undefined;

  constructor(
    kind: ListKind,
    list: { readonly entries: readonly RawEntry[]; readonly truncated: string | undefined },
    rules: ExposureRules,
  ) {
    this.exposed = exposeList(kind, list, rules);
    this.withRules = (others) => new ServedList(kind, list, others);
    this.#makeOriginal = () => exposeList(kind, list, { ...rules, prefix: undefined });
  }

  /** Made when it is first asked for: few clients look at one server alone. */
  get original(): ExposedList {
    this.#original ??= this.#makeOriginal();
    return this.#original;
  }
}

/** A list that never changes, whatever the names. */
export function fixedList(list: ExposedList): ShownList {
  const shown: ShownList = { exposed: list, original: list, withRules: () => shown };
  return shown;
}
