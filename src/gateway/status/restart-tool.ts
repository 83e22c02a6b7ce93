import { createOwnTool, type OwnTool, readServerArgument, textResult } from './own-tool.js';

/** Makes `trunkline__restart`, which restarts the calling client's process of a server. Offered only if configured. */
export function createRestartTool(keysNow: () => readonly string[], restart: (id: string) => void): OwnTool {
  return createOwnTool(DEFINITION, (args, { backends }) => {
    const keys = keysNow();
    const chosen = readServerArgument(args, keys);
    if (chosen.fault !== undefined) return textResult(chosen.fault, true);
    if (chosen.server === undefined)
      return textResult(`The argument "server" is missing. Use one of: ${keys.join(', ')}.`, true);
    const backend = backends.get(chosen.server);
    if (backend === undefined)
      return textResult(`This client does not use server "${chosen.server}", so nothing was restarted.`, true);
    restart(backend.id);
    return textResult(`Server "${chosen.server}" is being restarted. Call trunkline__status to see when it is ready.`);
  });
}

const DEFINITION = {
  name: 'trunkline__restart',
  title: 'Restart a server',
  description:
    'Stops one of the MCP servers behind Trunkline and starts it again. Its calls in flight fail, and what it had in memory is lost.',
  inputSchema: {
    type: 'object' as const,
    properties: { server: { type: 'string', description: 'Key of the server in the configuration' } },
    required: ['server'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
};
