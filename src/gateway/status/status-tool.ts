import { createOwnTool, type OwnTool, readServerArgument, textResult, type VisibleBackends } from './own-tool.js';
import { reportStatus } from './status.js';
import type { StatusFacts } from './status-facts.js';
import { overviewOf } from './status-overview.js';
import { renderOneServer, renderStatus } from './status-text.js';

/**
 * Makes `trunkline__status`, which shows what is wrong with the servers, the reason, and what to do; for one server it
 * shows everything. A `notice` comes before the description of the tool, because a model reads it there without a call.
 */
export function createStatusTool(facts: (visible: VisibleBackends) => StatusFacts, notice?: string): OwnTool {
  const description = notice === undefined ? DEFINITION.description : `${notice}\n\n${DEFINITION.description}`;
  return createOwnTool({ ...DEFINITION, description }, (args, visible) => {
    const now = facts(visible);
    const chosen = readServerArgument(
      args,
      now.servers.map(({ backend }) => backend.key),
    );
    if (chosen.fault !== undefined) return textResult(chosen.fault, true);
    const report = reportStatus(now, chosen.server);
    return chosen.server === undefined
      ? { ...textResult(renderStatus(report)), structuredContent: { ...overviewOf(report) } }
      : { ...textResult(renderOneServer(report)), structuredContent: { ...report } };
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
