import { createOwnTool, type OwnTool, readServerArgument, textResult, type VisibleBackends } from './own-tool.js';
import { reportStatus } from './status.js';
import type { StatusFacts } from './status-facts.js';
import { overviewOf } from './status-overview.js';
import { renderOneServer, renderStatus } from './status-text.js';

export interface StatusToolOptions {
  /** Comes before the description of the tool, because a model reads it there without a call. */
  readonly notice?: string | undefined;
  /** Reads what the process group with this pid uses now, for the facts that follow. */
  readonly readUsage?: (pid: number) => Promise<void>;
}

/**
 * Makes `trunkline__status`, which shows what is wrong with the servers, the reason, and what to do; for one server it
 * shows everything.
 */
export function createStatusTool(
  facts: (visible: VisibleBackends) => StatusFacts,
  { notice, readUsage }: StatusToolOptions = {},
): OwnTool {
  const description = notice === undefined ? DEFINITION.description : `${notice}\n\n${DEFINITION.description}`;
  return createOwnTool({ ...DEFINITION, description }, async (args, visible) => {
    const now = facts(visible);
    const keys = now.servers.map(({ backend }) => backend.key);
    const chosen = readServerArgument(args, keys);
    if (chosen.fault !== undefined) return textResult(chosen.fault, true);
    if (chosen.server === undefined) {
      const report = reportStatus(now);
      return { ...textResult(renderStatus(report)), structuredContent: { ...overviewOf(report) } };
    }
    const pid = now.servers.find(({ backend }) => backend.key === chosen.server)?.lifecycle?.pid;
    if (pid !== undefined) await readUsage?.(pid);
    const report = reportStatus(facts(visible), chosen.server);
    return { ...textResult(renderOneServer(report)), structuredContent: { ...report } };
  });
}

/** A client sends this with each conversation, so it is short: no output schema, and no hint that has its default value. */
const DEFINITION = {
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
