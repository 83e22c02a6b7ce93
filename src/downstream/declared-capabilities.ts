import { isRecord } from '../json/is-record.js';
import { declaredExtensions } from './declared-extensions.js';

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
    const isMerged = name === 'experimental' && isRecord(value);
    others.set(name, isMerged ? { ...value, ...toRecord(before) } : (before ?? value));
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

/** Each tool declares itself whether it can become a task. */
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

const KNOWN = new Set([...Object.keys(RELAYED), 'tasks', 'extensions']);

/** What of a server's capabilities changes those that the gateway declares. */
export function withoutRelayed(capabilities: Capabilities): Capabilities {
  return Object.fromEntries(Object.entries(capabilities).filter(([name]) => !Object.hasOwn(RELAYED, name)));
}

function toRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
