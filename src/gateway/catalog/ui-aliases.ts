import { toBytes } from '../../json/json-text.js';
import { splice } from '../../json/splice.js';
import { keyInUiAlias } from '../../mcp/extensions.js';
import type { ExposedEntry, ExposedList } from './exposed-list.js';

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
 * A host renders the HTML of such a URI as the user interface of a tool, so it must never get the HTML of another
 * server. A server claims the URIs that it lists, and the URIs that its tools refer to. A listed URI takes precedence
 * over a reference; otherwise the order of the configuration decides. A URI or alias that clients may have seen keeps
 * its owner for as long as that server claims it. A server that is added or removed therefore changes no URI of another
 * server. A URI in the form of an alias can only be an alias.
 */
export class UiAliases {
  readonly #keys: ReadonlySet<string>;
  readonly #owners = new Map<string, string>();
  readonly #claimed: ReadonlySet<string>;
  /** Owner by alias. An alias stays valid when clients do not see it any more. */
  readonly #routes = new Map<string, UriOwner>();
  /** By server key: the visible aliases by URI. */
  readonly #shown = new Map<string, Map<string, string>>();

  constructor(servers: readonly UiServer[], before?: UiAliases) {
    this.#keys = new Set(servers.map(({ key }) => key));
    const listed = servers.flatMap(({ key, resources }) => claimsIn(key, resources));
    const claims = [...listed, ...servers.flatMap(({ key, tools }) => claimsIn(key, tools))];
    this.#claimed = new Set(claims.map(({ uri }) => uri));
    const ownersBefore = before === undefined ? NONE : before.#owners;
    for (const { key, uri } of claims) if (ownersBefore.get(uri) === key) this.#owners.set(uri, key);
    for (const { key, uri, alias } of claims) {
      const isFree = !this.#owners.has(uri) && !this.#isReserved(uri);
      if (isFree && before?.aliasesOf(key).has(uri) !== true) this.#owners.set(uri, key);
      if (!this.#routes.has(alias)) this.#routes.set(alias, { key, original: uri });
      if (this.#owners.get(uri) !== key) this.#show(key, uri, alias);
    }
  }

  /**
   * Whether a server claims this URI, or it can only be an alias. Then only `resolve` decides who owns it, and a URI
   * that does not resolve must not be sent to any server.
   */
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
    return this.#shown.get(key) ?? NONE;
  }

  /** Returns a server's list with its URIs replaced by their aliases. */
  apply(key: string, list: ExposedList): ExposedList {
    const aliases = this.aliasesOf(key);
    if (aliases.size === 0) return list;
    return { ...list, entries: list.entries.map((entry) => rename(entry, aliases)) };
  }

  /** Whether the URI has the form of an alias of a configured server. */
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

const NONE: ReadonlyMap<string, string> = new Map();

function claimsIn(key: string, { entries }: ExposedList) {
  return entries.flatMap(({ ui = [] }) => ui.map(({ uri, alias }) => ({ key, uri, alias })));
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
