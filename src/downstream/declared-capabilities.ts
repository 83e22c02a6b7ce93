import { isRecord } from '../wire/json/json-value.js';
import { SKILLS_EXTENSION, TASKS_EXTENSION } from '../wire/mcp/extensions.js';
import { declares } from '../wire/mcp/handshake.js';
import { isModernRevision } from '../wire/mcp/revisions.js';

/** Name and version that the gateway or a server states to clients. */
export interface ServerInfo {
  readonly name: string;
  readonly title?: string;
  readonly version: string;
}

type Capabilities = Readonly<Record<string, unknown>>;

/**
 * The capabilities that the gateway declares to a client of this revision. `offered` are those of the running servers.
 *
 * Servers come and go, but capabilities are declared once. The gateway therefore declares everything that it can relay; a list
 * that no server has is empty. Unknown capabilities are declared in the words of the first server that has them, and
 * `experimental` with the members of all.
 */
export function declaredCapabilities(revision: string | undefined, offered: readonly Capabilities[]): Capabilities {
  const own = revision === '2025-11-25' ? { ...RELAYED, tasks: TASKS } : RELAYED;
  const others = new Map<string, unknown>();
  for (const [name, value] of offered.flatMap((capabilities) => Object.entries(capabilities))) {
    if (KNOWN.has(name)) continue;
    const before = others.get(name);
    const isMerged = name === 'experimental' && isRecord(value);
    others.set(name, isMerged ? { ...value, ...(isRecord(before) ? before : {}) } : (before ?? value));
  }
  const extensions = declaredExtensions(revision, offered);
  return { ...Object.fromEntries(others), ...(extensions && { extensions }), ...own };
}

const RELAYED = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
};

/** Capabilities for tasks. Each tool declares for itself whether its calls can become tasks. */
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

const KNOWN = new Set([...Object.keys(RELAYED), 'tasks', 'extensions']);

/** Removes the capabilities that the gateway declares anyway. The others can change its declaration. */
export function withoutRelayed(capabilities: Capabilities): Capabilities {
  return Object.fromEntries(Object.entries(capabilities).filter(([name]) => !Object.hasOwn(RELAYED, name)));
}

type Settings = Readonly<Record<string, unknown>>;

/**
 * The extensions that the gateway declares to a client of this revision: those of the servers, and tasks if a server has the
 * tasks of 2025-11-25. Returns `undefined` if there are none.
 *
 * If several servers have an extension, the settings of the first server count, unless the gateway merges them.
 */
export function declaredExtensions(revision: string | undefined, offered: readonly Settings[]): Settings | undefined {
  const all = new Map<string, unknown[]>();
  for (const { extensions } of offered) {
    for (const [name, settings] of Object.entries(isRecord(extensions) ? extensions : {})) {
      all.set(name, [...(all.get(name) ?? []), settings]);
    }
  }
  // A client with a handshake gets the tasks of its own revision, or only the results of tasks.
  if (revision === undefined || !isModernRevision(revision)) all.delete(TASKS_EXTENSION);
  else if (offered.some((each) => declares(each, 'tasks.requests.tools.call'))) all.set(TASKS_EXTENSION, [{}]);
  if (all.size === 0) return undefined;
  return Object.fromEntries([...all].map(([name, settings]) => [name, MERGES.get(name)?.(settings) ?? settings[0]]));
}

/** Merges the settings of an extension that several servers declare. */
const MERGES = new Map<string, (all: readonly unknown[]) => Settings>([
  // MCP Apps: merges the kinds of user interfaces.
  [
    'io.modelcontextprotocol/ui',
    (all) => {
      const records = all.filter(isRecord);
      const types = records.flatMap(({ mimeTypes }) => (Array.isArray(mimeTypes) ? mimeTypes : []));
      return { ...records[0], ...(types.length > 0 && { mimeTypes: [...new Set(types)] }) };
    },
  ],
  [
    SKILLS_EXTENSION,
    (all) => {
      const records = all.filter(isRecord);
      const hasDirectories = records.some(({ directoryRead }) => directoryRead === true);
      return { ...records[0], ...(hasDirectories && { directoryRead: true }) };
    },
  ],
]);
