import { toBytes } from '../../json/json-text.js';
import { splitExposedName } from '../../mcp/exposed-name.js';
import { isNamed, type ListKind } from '../../mcp/lists.js';
import type { ExposedList } from './exposed-list.js';
import { PagedList, type Paging } from './paged-list.js';

/** Where a request goes. */
export interface Route {
  readonly key: string;
  readonly original: string;
  /** The original name as JSON, for the request. */
  readonly token: Uint8Array;
  /** Whether the server lists it. A listed tool has passed the tool policy; an unlisted one has not been checked. */
  readonly isListed: boolean;
}

/** One server's part of the catalog, in the order of the configuration. */
export interface CatalogPart {
  readonly key: string;
  /** What stands before this server's names; empty when they are exposed as they are. */
  readonly prefix: string;
  readonly list: ExposedList;
}

/** A name of this server that an earlier server has taken. */
export interface Shadowed {
  readonly key: string;
  readonly exposed: string;
  readonly owner: string;
}

/** An entry of the gateway's own, as it is listed. */
export interface OwnEntry {
  readonly entry: Uint8Array;
}

/**
 * One list of all servers together at one moment: a snapshot that never changes, with its answer made once.
 *
 * Servers stand in the order of the configuration and entries in their server's order, so that two lists with no
 * change between are the same to the byte.
 */
export class Catalog {
  /** All that is listed, as clients get it. */
  readonly pages: PagedList;
  /** Listed names, or URIs, by server. */
  readonly listed: ReadonlyMap<string, readonly string[]>;
  readonly shadowed: readonly Shadowed[];
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #kind: ListKind;
  /** Original name to route, `undefined` where servers share the name. */
  readonly #originals: ReadonlyMap<string, Route | undefined>;
  readonly #keysByPrefix: ReadonlyMap<string, string>;

  /** `own` entries come last, and no server takes a name that could be one of ours. */
  constructor(kind: ListKind, parts: readonly CatalogPart[], own: readonly OwnEntry[], paging: Paging) {
    this.#kind = kind;
    const routes = new Map<string, Route>();
    const originals = new Map<string, Route | undefined>();
    const listed = new Map<string, string[]>();
    const shadowed: Shadowed[] = [];
    const entries: Uint8Array[] = [];

    for (const { key, list } of parts) {
      const names: string[] = [];
      for (const { exposed, original, entry } of list.entries) {
        const owner = exposed.startsWith(OWN_PREFIX) ? 'trunkline' : routes.get(exposed)?.key;
        if (owner !== undefined) {
          shadowed.push({ key, exposed, owner });
          continue;
        }
        const route = toRoute(key, original, true);
        routes.set(exposed, route);
        originals.set(original, originals.has(original) ? undefined : route);
        if (entry === undefined) continue;
        names.push(exposed);
        entries.push(entry);
      }
      listed.set(key, names);
    }
    this.pages = new PagedList(kind, [...entries, ...own.map(({ entry }) => entry)], paging);
    this.listed = listed;
    this.shadowed = shadowed;
    this.#routes = routes;
    this.#originals = originals;
    this.#keysByPrefix = new Map(parts.map(({ key, prefix }) => [prefix, key]));
  }

  /** The result of the list's method, as JSON: the first page, which nearly always is the only one. */
  get answer(): Uint8Array {
    return this.pages.first;
  }

  /** How many entries of servers are listed. */
  get size(): number {
    let size = 0;
    for (const names of this.listed.values()) size += names.length;
    return size;
  }

  /** The owner of a name or URI that stands in the list, or is only withheld from it. */
  owner(exposed: string): Route | undefined {
    return this.#routes.get(exposed);
  }

  /** All names or URIs with an owner, in the order of the list. */
  get routes(): Iterable<readonly [string, Route]> {
    return this.#routes;
  }

  /**
   * The owner of a name that a client uses, or `undefined` if no server can be meant.
   *
   * Besides listed names these lead somewhere: a name that a known server's prefix begins, since servers may have
   * tools that they do not list, and an original name that only one server has, since the apps that servers ship
   * call them by it.
   */
  resolve(name: string): Route | undefined {
    const route = this.#routes.get(name);
    if (route !== undefined || !isNamed(this.#kind)) return route;
    const unlisted = splitExposedName(name);
    const key = unlisted === undefined ? undefined : this.#keysByPrefix.get(unlisted.prefix);
    if (unlisted !== undefined && key !== undefined) return toRoute(key, unlisted.original);
    return this.#originals.get(name);
  }

  /** Whether a client would see no difference. */
  equals(other: Catalog): boolean {
    return this.pages.equals(other.pages);
  }
}

/** The way to what the server `key` calls `original`. */
export function toRoute(key: string, original: string, isListed = false): Route {
  return { key, original, token: toBytes(JSON.stringify(original)), isListed };
}

const OWN_PREFIX = 'trunkline__';
