import type { ListKind } from '../../mcp/lists.js';
import { EMPTY_LIST, type ExposedList, type ExposureRules, exposeList } from './exposed-list.js';
import type { ReceivedList } from './list-pages.js';

/** Entries of one server for each of the merged lists. */
export type ServerLists = Readonly<Record<ListKind, ExposedList>>;

export const NO_LISTS: ServerLists = {
  tools: EMPTY_LIST,
  prompts: EMPTY_LIST,
  resources: EMPTY_LIST,
  templates: EMPTY_LIST,
};

/** Which names a client sees: exposed names with prefixes or, for a client of one server alone, original names. */
export type ListNaming = 'exposed' | 'original';

/** What the merged lists need to know of a server. */
export interface ListedServer {
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

/** One list of a server, under exposed and under original names. */
export interface ShownList extends Readonly<Record<ListNaming, ExposedList>> {
  /** Returns the same list under other rules. */
  withRules(rules: ExposureRules): ShownList;
}

/** A list that a server sent. */
export class ServedList implements ShownList {
  readonly exposed: ExposedList;
  readonly withRules: (rules: ExposureRules) => ServedList;
  readonly #makeOriginal: () => ExposedList;
  #original: ExposedList | undefined;

  constructor(kind: ListKind, list: ReceivedList, rules: ExposureRules) {
    this.exposed = exposeList(kind, list, rules);
    this.withRules = (others) => new ServedList(kind, list, others);
    this.#makeOriginal = () => exposeList(kind, list, { ...rules, prefix: undefined });
  }

  /** Built on first use, because few clients use one server alone. */
  get original(): ExposedList {
    this.#original ??= this.#makeOriginal();
    return this.#original;
  }
}

/** Makes a list that is the same under both namings and all rules. */
export function fixedList(list: ExposedList): ShownList {
  const shown: ShownList = { exposed: list, original: list, withRules: () => shown };
  return shown;
}
