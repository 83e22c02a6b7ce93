import { isRecord } from '../../json/is-record.js';

type Capabilities = Readonly<Record<string, unknown>>;

/**
 * What we promise a client that speaks this revision; `offered` is what each server that is there has declared.
 *
 * Servers come and go while capabilities are told once, so all that can be relayed is promised; a list that no server
 * has is an empty one. What we know nothing of is promised if some server does, in the words of the first one.
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

/** Which tools can become tasks, each tool says itself. */
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

const KNOWN = new Set([...Object.keys(RELAYED), 'tasks']);

/** Capabilities that hold others, of which each server brings its own. */
const COLLECTIONS = new Set(['experimental', 'extensions']);

function toRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
