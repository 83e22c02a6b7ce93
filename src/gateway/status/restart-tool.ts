import { createOwnTool, type OwnTool, readServerArgument, textResult } from './own-tool.js';

/** `trunkline__restart`: starts the client's own process of a server anew. Offered only where the configuration says so. */
export function createRestartTool(keysNow: () => readonly string[], restart: (id: string) => void): OwnTool {
  return createOwnTool(DEFINITION, (args, { backends }) => {
    const keys = keysNow();
    const chosen = readServerArgument(args, keys);
    if (chosen.fault !== undefined) return textResult(chosen.fault, true);
    if (chosen.server === undefined) return textResult(`Name the server: one of ${keys.join(', ')}.`, true);
    const backend = backends.get(chosen.server);
    if (backend === undefined) return textResult(`Server "${chosen.server}" is not in use here.`, true);
    restart(backend.id);
    return textResult(`Server "${chosen.server}" is being restarted. trunkline__status tells when it is ready.`);
  });
}

const DEFINITION = {
  name: 'trunkline__restart',
  title: 'Restart a server',
  description:
    'Ends one of the MCP servers behind Trunkline and starts it again. Calls that are under way on it fail; what it kept in memory is lost.',
  inputSchema: {
    type: 'object' as const,
    properties: { server: { type: 'string', description: 'Key of the server in the configuration' } },
    required: ['server'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
};
