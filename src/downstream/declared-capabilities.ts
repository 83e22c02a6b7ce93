import { isRecord } from '../json/is-record.js';

/** The name and version that the gateway gives clients when they ask for its description. */
export interface ServerInfo {
  readonly name: string;
  readonly title?: string;
  readonly version: string;
}

type Capabilities = Readonly<Record<string, unknown>>;

/**
 * The capabilities that the gateway declares to a client of this revision. `offered` are those of the running servers.
 *
 * Servers come and go, while capabilities are declared once. So everything that the gateway can relay is declared; a
 * list that no server has is empty. Unknown capabilities are declared if a server has them, as the first one wrote them.
 */
export function declaredCapabilities(revision: string | undefined, offered: readonly Capabilities[]): Capabilities {
  const own = revision === '2025-11-25' ? { ...RELAYED, tasks: TASKS } : RELAYED;
  const others = new Map<string, unknown>();
  for (const [name, value] of offered.flatMap((capabilities) => Object.entries(capabilities))) {
    if (KNOWN.has(name)) continue;
    const before = others.get(name);
    others.set(name, COLLECTIONS.has(name) && isRecord(value) ? { ...value, ...toRecord(before) } : (before ?? value));
  }
  return { ...Object.fromEntries(others), ...own };
}

const RELAYED = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
};

/** Each tool declares itself whether it can become a task. */
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

const KNOWN = new Set([...Object.keys(RELAYED), 'tasks']);

/** Capabilities that contain others; those of all servers are merged. */
const COLLECTIONS = new Set(['experimental', 'extensions']);

function toRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
