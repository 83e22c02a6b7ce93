import type { DownstreamClient } from '../downstream/port.js';
import { createOwnTool, type OwnTool, textResult, type VisibleBackends } from '../gateway/routing/own-tool.js';
import type { StatusFacts } from './status-facts.js';

interface StatusToolOptions {
  /** Text before the description of the tool. A model reads it without a call. */
  readonly notice?: string | undefined;
  /** Reads the present usage of the process group with this pid. Called before the report about one server is made. */
  readonly readUsage?: (pid: number) => Promise<void>;
}

/** Loads the code of the status, which the first answers do not need. `gateway-process.ts` calls this ahead of the first use. */
export async function loadStatus() {
  const [report, text] = await Promise.all([import('./status.js'), import('./status-text.js')]);
  return { ...report, ...text };
}

/** Makes `trunkline__status`: the problems of all servers and what to do, or everything about one server. */
export function createStatusTool(
  facts: (visible: VisibleBackends, client: DownstreamClient) => StatusFacts,
  { notice, readUsage }: StatusToolOptions = {},
): OwnTool {
  const description = notice === undefined ? STATUS_TOOL.description : `${notice}\n\n${STATUS_TOOL.description}`;
  return createOwnTool({ ...STATUS_TOOL, description }, async (args, visible, { client }) => {
    const now = facts(visible, client);
    const keys = now.servers.map(({ backend }) => backend.key);
    const chosen = readServerArgument(args, keys);
    if (chosen.fault !== undefined) return textResult(chosen.fault, true);
    const { reportStatus, overviewOf, renderOneServer, renderStatus } = await loadStatus();
    if (chosen.server === undefined) {
      const report = reportStatus(now);
      return { ...textResult(renderStatus(report)), structuredContent: { ...overviewOf(report) } };
    }
    const pid = now.servers.find(({ backend }) => backend.key === chosen.server)?.lifecycle?.pid;
    if (pid !== undefined) await readUsage?.(pid);
    const report = reportStatus(facts(visible, client), chosen.server);
    return { ...textResult(renderOneServer(report)), structuredContent: { ...report } };
  });
}

/** Clients send this list entry with each conversation, so it is short, without an output schema and default hints. */
const STATUS_TOOL = {
  name: 'trunkline__status',
  title: 'Status of all servers',
  description:
    'Shows which MCP servers behind Trunkline have a problem, why, which tools are missing, and what to do. Use it when a tool is missing or a call failed.',
  inputSchema: {
    type: 'object' as const,
    properties: { server: { type: 'string', description: 'Key of one server: shows everything about it' } },
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

/** Makes `trunkline__restart`, which restarts the calling client's process of a server. Offered only if configured. */
export function createRestartTool(
  keysNow: (visible: VisibleBackends) => readonly string[],
  restart: (id: string) => void,
): OwnTool {
  return createOwnTool(RESTART_TOOL, (args, visible) => {
    const keys = keysNow(visible);
    const chosen = readServerArgument(args, keys);
    if (chosen.fault !== undefined) return textResult(chosen.fault, true);
    if (chosen.server === undefined)
      return textResult(`The argument "server" is missing. Use one of: ${keys.join(', ')}.`, true);
    const backend = visible.backends.get(chosen.server);
    if (backend === undefined)
      return textResult(`This client does not use server "${chosen.server}", so nothing was restarted.`, true);
    restart(backend.id);
    return textResult(`Server "${chosen.server}" is being restarted. Call trunkline__status to see when it is ready.`);
  });
}

const RESTART_TOOL = {
  name: 'trunkline__restart',
  title: 'Restart a server',
  description: 'Restarts one MCP server behind Trunkline. Its calls in flight fail, and its data in memory is lost.',
  inputSchema: {
    type: 'object' as const,
    properties: { server: { type: 'string', description: 'Key of the server' } },
    required: ['server'],
    additionalProperties: false,
  },
  annotations: { destructiveHint: true, openWorldHint: false },
};

/** Reads the optional argument `server`. Returns a configured key, `undefined` if it is absent, or an error text. */
function readServerArgument(
  args: unknown,
  keys: readonly string[],
): { readonly server: string | undefined; readonly fault?: undefined } | { readonly fault: string } {
  const server = typeof args === 'object' && args !== null && 'server' in args ? args.server : undefined;
  if (server === undefined || server === null) return { server: undefined };
  if (typeof server === 'string' && keys.includes(server)) return { server };
  const known = keys.length === 0 ? 'No server is configured.' : `Configured servers: ${keys.join(', ')}.`;
  return { fault: `There is no server ${JSON.stringify(server)}. ${known}` };
}
