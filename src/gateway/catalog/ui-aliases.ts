import { toBytes } from '../../json/json-text.js';
import { splice } from '../../json/splice.js';
import { keyInUiAlias } from '../../mcp/ui-uri.js';
import type { ExposedEntry, ExposedList } from './exposed-list.js';

/** What one server lists, or listed last where it cannot be used at the moment. */
export interface UiServer {
  readonly key: string;
  readonly resources: ExposedList;
  readonly tools: ExposedList;
}

/** A server, and a URI as it knows it. */
export interface UriOwner {
  readonly key: string;
  readonly original: string;
}

/**
 * Which server owns which `ui://` URI, and under which aliases clients see those of the others.
 *
 * A host shows what it reads under such a URI as the face of a tool, so a URI that meant another server's HTML would
 * be a breach. A server claims what it lists and what its tools point to, listed or not. Listing goes before pointing,
 * and else the order of the configuration decides; but what clients may have seen `before`, a URI or its alias, stays
 * for as long as its server claims it. So a server that comes or goes renames nothing of another's, and no URI comes to
 * mean something else. Those that have the form of an alias belong to nobody but as aliases.
 */
export class UiAliases {
  readonly #keys: ReadonlySet<string>;
  readonly #owners = new Map<string, string>();
  readonly #claimed: ReadonlySet<string>;
  /** By alias, whether or not anybody is shown it: it stays good when it is not needed any more. */
  readonly #routes = new Map<string, UriOwner>();
  /** By server: the aliases that clients are shown, by URI. */
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
   * Whether nothing but `resolve` may tell whose a URI is: a server has it, or it can only be an alias. One that leads
   * nowhere then must not come to mean what somebody else has.
   */
  isClaimed(uri: string): boolean {
    return this.#claimed.has(uri) || this.#isReserved(uri);
  }

  /** What a URI that a client uses stands for: an alias, or what a server owns. */
  resolve(uri: string): UriOwner | undefined {
    const key = this.#owners.get(uri);
    return this.#routes.get(uri) ?? (key === undefined ? undefined : { key, original: uri });
  }

  /** The URIs of this server that clients see under aliases, each with its alias. */
  aliasesOf(key: string): ReadonlyMap<string, string> {
    return this.#shown.get(key) ?? NONE;
  }

  /** What a server contributes to a merged list, with its aliases in the places of the URIs. */
  apply(key: string, list: ExposedList): ExposedList {
    const aliases = this.aliasesOf(key);
    if (aliases.size === 0) return list;
    return { ...list, entries: list.entries.map((entry) => rename(entry, aliases)) };
  }

  /** Whether it has the form of an alias, of a server that there is. */
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
  // A resource goes by its URI; no name of a tool can be one.
  return { ...entry, exposed: aliases.get(exposed) ?? exposed, entry: spliced };
}
