import { createOwnTool, type OwnTool, textResult } from '../routing/own-tool.js';
import { CALL_TOOL } from './unwrap-call.js';

/** Number of tools in one answer of the search. */
const FOUND = { most: 50, usual: 8 };

/** Clients send these entries with each conversation, so they are short. */
const FIND_TOOLS = {
  name: 'trunkline__find_tools',
  title: 'Find tools',
  description:
    'Searches the tools that are not in the list. Say in a few words what has to be done. Best match first. With only a server, lists its tools.',
  inputSchema: {
    type: 'object' as const,
    properties: {
      query: { type: 'string', description: 'What has to be done, or the name of a tool' },
      server: { type: 'string', description: 'Key of the only server to search' },
      limit: { type: 'integer', minimum: 1, maximum: FOUND.most, description: `Default: ${FOUND.usual}` },
    },
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

const DESCRIBE_TOOLS = {
  name: 'trunkline__describe_tools',
  title: 'Describe tools',
  description: 'Returns the exact definitions of tools, with all parameters.',
  inputSchema: {
    type: 'object' as const,
    properties: {
      names: { type: 'array', items: { type: 'string' }, description: 'Names that trunkline__find_tools returned' },
    },
    required: ['names'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

const CALL_A_TOOL = {
  name: CALL_TOOL,
  title: 'Call a tool',
  description: 'Calls a tool that is not in the list, and returns its result unchanged.',
  inputSchema: {
    type: 'object' as const,
    properties: {
      name: { type: 'string', description: 'Name that trunkline__find_tools returned' },
      arguments: { type: 'object', description: 'Arguments of that tool, as its own inputSchema says' },
    },
    required: ['name'],
    additionalProperties: false,
  },
  // The tool that is called may run as a task.
  execution: { taskSupport: 'optional' as const },
};

/** Makes the tools with which clients in search mode reach the tools that they do not see. */
export function createSearchTools(): readonly OwnTool[] {
  return [
    createOwnTool(FIND_TOOLS, async (args, visible) => {
      const { findTools } = await import('./find-tools.js');
      return findTools(args, visible, FOUND);
    }),
    createOwnTool(DESCRIBE_TOOLS, async (args, visible) => {
      const { describeTools } = await import('./find-tools.js');
      return describeTools(args, visible);
    }),
    // `unwrapCall` replaces every call that names a tool, so only the others come here.
    createOwnTool(CALL_A_TOOL, () =>
      textResult(
        `${CALL_TOOL} needs \`name\`, the name of another tool, and \`arguments\`, an object. trunkline__find_tools finds names.`,
        true,
      ),
    ),
  ];
}
