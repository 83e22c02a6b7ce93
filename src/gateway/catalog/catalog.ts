import type { ListCaching } from '../../downstream/port.js';
import { type Span, toBytes } from '../../wire/json/json-text.js';
import { splice } from '../../wire/json/splice.js';
import { mergeCachingHints } from '../../wire/mcp/envelope.js';
import { splitExposedName } from '../../wire/mcp/exposed-name.js';
import { isNamed, LIST_KINDS, type ListKind } from '../../wire/mcp/methods.js';
import { asLegacyTool } from '../../wire/mcp/older-revisions.js';
import { hasHandshake, MODERN_REVISIONS } from '../../wire/mcp/revisions.js';
import { keyInUiAlias } from '../../wire/mcp/ui-uris.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { ExposedEntry, ExposedList } from './exposed-list.js';
import type { ListNaming, ServerLists } from './offered-lists.js';
import { PagedList, type Paging } from './pagination.js';
import { toolsInView, type ViewFilter } from './tool-policy.js';

export interface ListedServer {
  readonly key: string;
  readonly prefix: string;
  /** Whether the first start has succeeded or failed. False again while the gateway reads lists that it had left unread. */
  readonly isStartSettled: boolean;
  /** Whether the lists are known, from the process or from the cache, or are not worth a wait. */
  readonly hasKnownLists: boolean;
  /** The current entries. A restarting server keeps its entries; an unavailable one has none. */
  listsAs(naming: ListNaming): ServerLists;
  /** The latest known entries, also while the server is unavailable. */
  knownListsAs(naming: ListNaming): ServerLists;
  readonly lists: {
    shown(kind: ListKind): void;
  };
}

interface MergeOptions {
  readonly servers: Iterable<ListedServer>;
  readonly ownTools: readonly OwnEntry[];
  /** The tools of the gateway itself that only clients in search mode see. */
  readonly searchTools?: readonly OwnEntry[] | undefined;
  readonly naming: ListNaming;
  /** Filter of the tools that the clients see. Absent if they see all. */
  readonly view?: ViewFilter | undefined;
  readonly paging: Paging;
}

interface MergedListsOptions extends MergeOptions {
  readonly servers: readonly ListedServer[];
  readonly clock: Clock;
  /** Whether a client wants announcements although it has read no list. */
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
    this.#catalogs = mergeCatalogs(options, this.#wereShown ? before?.catalogs : undefined);
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
    for (const server of this.#options.servers) server.lists.shown(kind);
    return list;
  }

  /** Says how a client may cache the list. `isSame` means that the configuration shows the same list to all clients. */
  caching(kind: ListKind, isSame: boolean): ListCaching {
    const { servers, naming, clock } = this.#options;
    const hint = mergeCachingHints(servers.map((server) => server.listsAs(naming)[kind].hint));
    const freshUntil = hint?.freshUntil ?? Number.POSITIVE_INFINITY;
    const isPublic = isSame && hint?.isPublic === true && freshUntil < Number.POSITIVE_INFINITY;
    return { isSettled: this.isSettled, freshMs: Math.max(0, freshUntil - clock.now()), isPublic };
  }

  /** Records that a server changed its lists. Before all servers have started, merges only lists that clients know or follow. */
  changed(): void {
    this.#isStale = true;
    if (this.#wereShown || this.isSettled || this.#options.isFollowed?.() === true) this.#refresh();
  }

  #refresh(): void {
    if (!this.#isStale) return;
    this.#isStale = false;
    // Until a client has received a list, only the order of the configuration decides who owns a `ui://` URI.
    this.#catalogs = mergeCatalogs(this.#options, this.#wereShown ? this.#catalogs : undefined);
    this.#options.onMerged(this.#catalogs);
  }
}

export interface Catalogs extends Readonly<Record<ListKind, Catalog>> {
  readonly ui: UiAliases;
}

/** Merges the current lists of the servers. A `ui://` URI of `before` keeps its owner, because clients may know it. */
export function mergeCatalogs(
  { servers, ownTools, searchTools, naming, view, paging }: MergeOptions,
  before?: Catalogs | undefined,
): Catalogs {
  const all = [...servers];
  const ui = new UiAliases(
    all.map((server) => ({ key: server.key, ...server.knownListsAs(naming) })),
    before?.ui,
  );
  const merge = (kind: ListKind, own: readonly OwnEntry[] = [], forSearch: readonly OwnEntry[] = []) =>
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
      forSearch,
    );
  return {
    ui,
    tools: merge('tools', ownTools, searchTools),
    prompts: merge('prompts'),
    resources: merge('resources'),
    templates: merge('templates'),
  };
}

/** Returns the lists that have changed for clients; with `isSearched`, for those in search mode, which get other tools. */
export function changedLists(before: Catalogs, after: Catalogs, isSearched = false): ListKind[] {
  return LIST_KINDS.filter((kind) => !before[kind].equals(after[kind], isSearched && kind === 'tools'));
}

/** The server that a request goes to, and the name that the server uses. */
export interface Route {
  readonly key: string;
  readonly original: string;
  /** Whether the server lists the name. A listed tool has passed the tool policy; an unlisted tool was not checked. */
  readonly isListed: boolean;
  /** The list entry. Absent if the list does not show it (`withheld`), and for a name that is not listed. */
  readonly entry?: Uint8Array | undefined;
}

/** One server's part of the catalog, in the order of the configuration. */
export interface CatalogPart {
  readonly key: string;
  /** Prefix of this server's exposed names. Empty if names are exposed without a prefix. */
  readonly prefix: string;
  readonly list: ExposedList;
}

/** A name that is not listed for this server, because another server already has it. */
export interface Shadowed {
  readonly key: string;
  readonly exposed: string;
  readonly owner: string;
  /** The prefix of the owner, if the name begins with it. Then the name is the owner's, listed there or not. */
  readonly prefix?: string;
}

export interface OwnEntry {
  readonly name: string;
  readonly entry: Uint8Array;
}

/**
 * One merged list of all servers: an immutable snapshot with its response pages.
 *
 * Servers are in the order of the configuration and entries in the order of their server. Equal entries therefore give
 * byte-identical lists.
 */
export class Catalog {
  /** Listed exposed names, or URIs, by server key. */
  readonly listed: ReadonlyMap<string, readonly string[]>;
  readonly shadowed: readonly Shadowed[];
  /** All entries, in the order of the list. */
  readonly entries: readonly Uint8Array[];
  /** The entries of the gateway itself. */
  readonly own: readonly OwnEntry[];
  /** Indexes of the entries that clients with a handshake get in another form. */
  readonly #translated: ReadonlySet<number>;
  /** Indexes of the entries that clients in search mode see, without the gateway's own. */
  readonly #pinned: readonly number[];
  readonly #forSearch: readonly OwnEntry[];
  readonly #paging: Paging;
  /** The pages of each form in which clients see the list. Made on first use. */
  readonly #pages = new Map<string, PagedList>();
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #kind: ListKind;
  /** Routes by original name. The route is `undefined` if several servers use the name. */
  readonly #originals: ReadonlyMap<string, Route | undefined>;
  readonly #keysByPrefix: ReadonlyMap<string, string>;

  /**
   * `own` entries come last. Clients in search mode see only the pinned entries, `own` and `forSearch`. Server names that start
   * with `trunkline__`, or with the prefix of another server, are shadowed.
   */
  constructor(
    kind: ListKind,
    parts: readonly CatalogPart[],
    own: readonly OwnEntry[],
    paging: Paging,
    forSearch: readonly OwnEntry[] = [],
  ) {
    this.#kind = kind;
    const routes = new Map<string, Route>();
    const originals = new Map<string, Route | undefined>();
    const listed = new Map<string, string[]>();
    const shadowed: Shadowed[] = [];
    const entries: Uint8Array[] = [];
    const translated = new Set<number>();
    const pinned: number[] = [];
    const keysByPrefix = new Map(parts.map(({ key, prefix }) => [prefix, key]));
    const withheld: [exposed: string, route: Route][] = [];

    for (const { key, list } of parts) {
      const names: string[] = [];
      for (const { exposed, original, entry } of list.entries) {
        const prefix = isNamed(kind) ? splitExposedName(exposed)?.prefix : undefined;
        const namesake = prefix === undefined ? undefined : keysByPrefix.get(prefix);
        if (prefix !== undefined && namesake !== undefined && namesake !== key) {
          shadowed.push({ key, exposed, owner: namesake, prefix });
          continue;
        }
        if (entry === undefined) {
          withheld.push([exposed, { key, original, isListed: true }]);
          continue;
        }
        const owner = exposed.startsWith(OWN_PREFIX) ? 'trunkline' : routes.get(exposed)?.key;
        if (owner !== undefined) {
          shadowed.push({ key, exposed, owner });
          continue;
        }
        const route = { key, original, isListed: true, entry };
        routes.set(exposed, route);
        originals.set(original, originals.has(original) ? undefined : route);
        names.push(exposed);
        if (list.otherOutputs.has(original)) translated.add(entries.length);
        if (list.pinned?.has(original) === true) pinned.push(entries.length);
        entries.push(entry);
      }
      listed.set(key, names);
    }
    // A withheld entry gets a name only if no listed entry has it.
    const shown = new Set(originals.keys());
    for (const [exposed, route] of withheld) {
      const { original } = route;
      if (!exposed.startsWith(OWN_PREFIX) && !routes.has(exposed)) routes.set(exposed, route);
      if (!shown.has(original)) originals.set(original, originals.has(original) ? undefined : route);
    }
    this.entries = [...entries, ...own.map(({ entry }) => entry)];
    this.#translated = translated;
    this.#pinned = pinned;
    this.#forSearch = forSearch;
    this.#paging = paging;
    this.listed = listed;
    this.shadowed = shadowed;
    this.own = own;
    this.#routes = routes;
    this.#originals = originals;
    this.#keysByPrefix = keysByPrefix;
  }

  /** The response pages for clients of a revision; with `isSearched`, for those in search mode. */
  pagesFor(revision: string | undefined, isSearched = false): PagedList {
    const isTranslated = this.#translated.size > 0 && hasHandshake(revision);
    const form = `${isTranslated} ${isSearched}`;
    const known = this.#pages.get(form);
    if (known !== undefined) return known;
    const pages = new PagedList(this.#kind, this.#entriesAs(isTranslated, isSearched), this.#paging);
    this.#pages.set(form, pages);
    return pages;
  }

  entryFor(route: Route, revision: string | undefined): Uint8Array | undefined {
    const { entry } = route;
    if (entry === undefined || this.#translated.size === 0 || !hasHandshake(revision)) return entry;
    return this.#translated.has(this.entries.indexOf(entry)) ? asLegacyTool(entry, wholeOf(entry)) : entry;
  }

  entriesOf(key: string): readonly Uint8Array[] {
    return (this.listed.get(key) ?? []).flatMap((exposed) => this.#routes.get(exposed)?.entry ?? []);
  }

  /** The entries as modern clients see them; with `isSearched`, those in search mode. */
  shownEntries(isSearched: boolean): readonly Uint8Array[] {
    return this.#entriesAs(false, isSearched);
  }

  #entriesAs(isTranslated: boolean, isSearched: boolean): readonly Uint8Array[] {
    const shown = (entry: Uint8Array, at: number) =>
      isTranslated && this.#translated.has(at) ? asLegacyTool(entry, wholeOf(entry)) : entry;
    if (!isSearched) return isTranslated ? this.entries.map(shown) : this.entries;
    const pinned = this.#pinned.flatMap((at) => {
      const entry = this.entries[at];
      return entry === undefined ? [] : [shown(entry, at)];
    });
    return [...pinned, ...[...this.own, ...this.#forSearch].map(({ entry }) => entry)];
  }

  /** Number of listed entries of all servers, without the gateway's own entries. */
  get size(): number {
    let size = 0;
    for (const names of this.listed.values()) size += names.length;
    return size;
  }

  /** The owner of an exposed name or URI that is listed or withheld. */
  owner(exposed: string): Route | undefined {
    return this.#routes.get(exposed);
  }

  /** All exposed names or URIs with an owner, in the order of the list. */
  get routes(): Iterable<readonly [string, Route]> {
    return this.#routes;
  }

  /**
   * Returns the owner of a name that a client uses, or `undefined` if there is none.
   *
   * Two kinds of names resolve although they are not exposed: a name with the prefix of a server, because servers may have tools that they
   * do not list, and an original name that only one server has, because MCP Apps call the tools of their server by original names.
   */
  resolve(name: string): Route | undefined {
    const route = this.#routes.get(name);
    if (route !== undefined || !isNamed(this.#kind)) return route;
    const split = splitExposedName(name);
    const key = split === undefined ? undefined : this.#keysByPrefix.get(split.prefix);
    if (split !== undefined && key !== undefined) return { key, original: split.original, isListed: false };
    return this.#originals.get(name);
  }

  /** Whether clients see the same list; with `isSearched`, clients in search mode. */
  equals(other: Catalog, isSearched = false): boolean {
    const [revision] = MODERN_REVISIONS;
    return this.pagesFor(revision, isSearched).equals(other.pagesFor(revision, isSearched));
  }
}

function wholeOf({ length }: Uint8Array): Span {
  return { start: 0, end: length };
}

const OWN_PREFIX = 'trunkline__';

/** The latest known lists of one server, also while the server is unavailable. */
export interface UiServer {
  readonly key: string;
  readonly resources: ExposedList;
  readonly tools: ExposedList;
}

/** A server key, and a URI of that server. */
export interface UriOwner {
  readonly key: string;
  readonly original: string;
}

/**
 * The owner of each `ui://` URI, and the aliases under which clients see the same URI of other servers.
 *
 * A host renders the HTML of such a URI as the user interface of a tool, so the host must never get the HTML of another server. A server
 * claims the URIs that it lists, and the URIs to which its tools refer. A listed URI takes precedence over a reference; otherwise the order
 * of the configuration decides. A URI or alias that clients may have seen keeps its owner as long as the owner claims it. Adding or
 * removing a server therefore changes no URI of another server. A URI in the form of an alias can only be an alias.
 */
export class UiAliases {
  readonly #keys: ReadonlySet<string>;
  readonly #owners = new Map<string, string>();
  readonly #claimed: ReadonlySet<string>;
  /** Owner by alias. An alias stays valid when clients do not see it any more. */
  readonly #routes = new Map<string, UriOwner>();
  /** The visible aliases by URI, for each server key. */
  readonly #shown = new Map<string, Map<string, string>>();

  constructor(servers: readonly UiServer[], before?: UiAliases) {
    this.#keys = new Set(servers.map(({ key }) => key));
    const listed = servers.flatMap(({ key, resources }) => claimsIn(key, resources, true));
    const claims = [
      ...listed,
      ...servers.flatMap(({ key, resources, tools }) => [...claimsIn(key, tools), ...claimsIn(key, resources, false)]),
    ];
    this.#claimed = new Set(claims.map(({ uri }) => uri));
    const ownersBefore = before === undefined ? NO_ALIASES : before.#owners;
    for (const { key, uri } of claims) if (ownersBefore.get(uri) === key) this.#owners.set(uri, key);
    for (const { key, uri, alias } of claims) {
      const isFree = !this.#owners.has(uri) && !this.#isReserved(uri);
      if (isFree && before?.aliasesOf(key).has(uri) !== true) this.#owners.set(uri, key);
      if (!this.#routes.has(alias)) this.#routes.set(alias, { key, original: uri });
      if (this.#owners.get(uri) !== key) this.#show(key, uri, alias);
    }
  }

  /** Whether `resolve` alone decides who owns the URI. If it finds no owner, no server may get the request. */
  isClaimed(uri: string): boolean {
    return this.#claimed.has(uri) || this.#isReserved(uri);
  }

  /** Returns the server and original URI for an alias or URI that a client uses. */
  resolve(uri: string): UriOwner | undefined {
    const key = this.#owners.get(uri);
    return this.#routes.get(uri) ?? (key === undefined ? undefined : { key, original: uri });
  }

  /** Returns the visible aliases of this server, by original URI. */
  aliasesOf(key: string): ReadonlyMap<string, string> {
    return this.#shown.get(key) ?? NO_ALIASES;
  }

  /** Returns a server's list with its URIs replaced by their aliases. */
  apply(key: string, list: ExposedList): ExposedList {
    const aliases = this.aliasesOf(key);
    if (aliases.size === 0) return list;
    return { ...list, entries: list.entries.map((entry) => rename(entry, aliases)) };
  }

  #isReserved(uri: string): boolean {
    const key = keyInUiAlias(uri);
    return key !== undefined && this.#keys.has(key);
  }

  #show(key: string, uri: string, alias: string): void {
    const aliases = this.#shown.get(key);
    if (aliases === undefined) this.#shown.set(key, new Map([[uri, alias]]));
    else aliases.set(uri, alias);
  }
}

const NO_ALIASES: ReadonlyMap<string, string> = new Map();

function claimsIn(key: string, { entries }: ExposedList, isListed?: boolean) {
  const claiming = entries.filter(({ entry }) => isListed === undefined || isListed === (entry !== undefined));
  return claiming.flatMap(({ ui = [] }) => ui.map(({ uri, alias }) => ({ key, uri, alias })));
}

function rename(entry: ExposedEntry, aliases: ReadonlyMap<string, string>): ExposedEntry {
  const { exposed, entry: bytes, ui = [] } = entry;
  const foreign = ui.filter(({ uri }) => aliases.has(uri));
  if (foreign.length === 0) return entry;
  const edits = foreign.flatMap(({ alias, span }) => {
    return span === undefined ? [] : [{ span, text: toBytes(JSON.stringify(alias)) }];
  });
  const spliced = bytes && splice({ bytes, span: { start: 0, end: bytes.length }, edits });
  // The exposed name of a resource is its URI. A tool name never equals a `ui://` URI.
  return { ...entry, exposed: aliases.get(exposed) ?? exposed, entry: spliced };
}
