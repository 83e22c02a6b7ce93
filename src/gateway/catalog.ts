import { toBytes } from '../jsonrpc/json-text.js';
import { join } from '../jsonrpc/message.js';
import { splitExposedName } from '../mcp/exposed-name.js';
import type { ServerTools } from './server-tools.js';

/** Where a tool call goes. */
export interface ToolRoute {
  readonly key: string;
  readonly original: string;
  /** The original name as JSON, for the request. */
  readonly token: Uint8Array;
}

/** One server's part of the catalog, in the order of the configuration. */
export interface CatalogPart {
  readonly key: string;
  /** What stands before this server's names; empty when they are exposed as they are. */
  readonly prefix: string;
  readonly tools: ServerTools;
}

/** A name of this server that an earlier server has taken. */
export interface Shadowed {
  readonly key: string;
  readonly exposed: string;
  readonly owner: string;
}

/** A tool of the gateway's own, as it is listed. */
export interface OwnEntry {
  readonly entry: Uint8Array;
}

/**
 * What all servers offer together at one moment: a snapshot that never changes, with its list ready to send.
 *
 * Servers stand in the order of the configuration and tools in their server's order, so that two lists with no
 * change between are the same to the byte.
 */
export class Catalog {
  /** The result of `tools/list`, as JSON. */
  readonly toolsList: Uint8Array;
  /** Listed tools by server. */
  readonly listed: ReadonlyMap<string, readonly string[]>;
  readonly shadowed: readonly Shadowed[];
  readonly #routes: ReadonlyMap<string, ToolRoute>;
  /** Original name to route, `undefined` where servers share the name. */
  readonly #originals: ReadonlyMap<string, ToolRoute | undefined>;
  readonly #keysByPrefix: ReadonlyMap<string, string>;

  /** `own` entries come last, and no server's tool takes a name that could be one of ours. */
  constructor(parts: readonly CatalogPart[], own: readonly OwnEntry[]) {
    const routes = new Map<string, ToolRoute>();
    const originals = new Map<string, ToolRoute | undefined>();
    const listed = new Map<string, string[]>();
    const shadowed: Shadowed[] = [];
    const entries: Uint8Array[] = [];

    for (const { key, tools } of parts) {
      const names: string[] = [];
      for (const { exposed, original, entry } of tools.tools) {
        const owner = exposed.startsWith(OWN_PREFIX) ? 'trunkline' : routes.get(exposed)?.key;
        if (owner !== undefined) {
          shadowed.push({ key, exposed, owner });
          continue;
        }
        const route = toRoute(key, original);
        routes.set(exposed, route);
        originals.set(original, originals.has(original) ? undefined : route);
        if (entry === undefined) continue;
        names.push(exposed);
        entries.push(entry);
      }
      listed.set(key, names);
    }
    this.toolsList = serialise([...entries, ...own.map(({ entry }) => entry)]);
    this.listed = listed;
    this.shadowed = shadowed;
    this.#routes = routes;
    this.#originals = originals;
    this.#keysByPrefix = new Map(parts.map(({ key, prefix }) => [prefix, key]));
  }

  /**
   * The owner of a tool name, or `undefined` if no server can be meant.
   *
   * Besides listed names these lead somewhere: a name that a known server's prefix begins, since servers may have
   * tools that they do not list, and an original name that only one server has, since the apps that servers ship
   * call them by it.
   */
  resolve(name: string): ToolRoute | undefined {
    const route = this.#routes.get(name);
    if (route !== undefined) return route;
    const unlisted = splitExposedName(name);
    const key = unlisted === undefined ? undefined : this.#keysByPrefix.get(unlisted.prefix);
    if (unlisted !== undefined && key !== undefined) return toRoute(key, unlisted.original);
    return this.#originals.get(name);
  }

  /** Whether a client would see no difference. */
  lists(other: Catalog): boolean {
    const ours = this.toolsList;
    const theirs = other.toolsList;
    return ours.length === theirs.length && ours.every((byte, index) => byte === theirs[index]);
  }
}

function toRoute(key: string, original: string): ToolRoute {
  return { key, original, token: toBytes(JSON.stringify(original)) };
}

function serialise(entries: readonly Uint8Array[]): Uint8Array {
  const parts: Uint8Array[] = [HEAD];
  entries.forEach((entry, index) => {
    if (index > 0) parts.push(COMMA);
    parts.push(entry);
  });
  return join([...parts, TAIL]);
}

const OWN_PREFIX = 'trunkline__';

const HEAD = toBytes('{"tools":[');
const COMMA = toBytes(',');
const TAIL = toBytes(']}');
