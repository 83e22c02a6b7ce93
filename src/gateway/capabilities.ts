import { knowsTasks } from '../mcp/revisions.js';

/**
 * What we promise a client that speaks this revision.
 *
 * Servers come and go while capabilities are told once, so all that can be relayed is promised; a list that no server
 * has is an empty one.
 */
export function capabilitiesFor(revision: string | undefined): Readonly<Record<string, unknown>> {
  return knowsTasks(revision) ? { ...CAPABILITIES, tasks: TASKS } : CAPABILITIES;
}

const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
};

/** Which tools can become tasks, each tool says itself. */
const TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
