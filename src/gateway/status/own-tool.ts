import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js';
import { isString, readString, readText, toBytes } from '../../json/json-text.js';
import { METHODS } from '../../mcp/methods.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import type { Shadowed } from '../catalog/catalog.js';
import type { Catalogs } from '../catalog/catalogs.js';
import type { Backend } from '../registry/backend.js';

/** The backends and lists of the client that calls a tool of the gateway. */
export interface VisibleBackends {
  /** By server key. */
  readonly backends: ReadonlyMap<string, Backend>;
  readonly catalogs: Catalogs;
  /** Skills that are not listed, because another server has a skill with the same URI. */
  readonly shadowedSkills?: readonly Shadowed[];
  /** The view of the configuration that the client has; absent if it sees everything. `fault` is a sentence. */
  readonly named?: { readonly name: string; readonly fault?: string | undefined } | undefined;
  /** The revision of MCP that the client speaks. */
  readonly revision?: string | undefined;
}

/** A tool of the gateway itself. Its name starts with `trunkline__`, which no server may use. */
export interface OwnTool {
  readonly name: string;
  /** The list entry as JSON. */
  readonly entry: Uint8Array;
  /** Calls the tool. Never throws or rejects: errors are results with `isError`. `args` is unchecked client input. */
  call(args: unknown, visible: VisibleBackends): CallToolResult | Promise<CallToolResult>;
}

export function createOwnTool(tool: Tool, call: OwnTool['call']): OwnTool {
  return { name: tool.name, entry: toBytes(JSON.stringify(tool)), call };
}

/** The name of the tool, if the request is a tool call. */
export function calledTool({ method, bytes, tokens: { name } }: RelayedRequest): string | undefined {
  return method === METHODS.callTool && name !== undefined && isString(bytes, name)
    ? readString(bytes, name)
    : undefined;
}

/** Calls the tool for a client. Returns the result as JSON. */
export async function callOwnTool(
  tool: OwnTool,
  { request, client }: { readonly request: RelayedRequest; readonly client: Pick<VisibleBackends, 'revision'> },
  { backends, catalogs, shadowedSkills, named }: VisibleBackends,
): Promise<Uint8Array> {
  const visible = { backends, catalogs, ...(shadowedSkills && { shadowedSkills }), named, revision: client.revision };
  return toBytes(JSON.stringify(await tool.call(readArguments(request), visible)));
}

/** Reads the arguments of a tool call. They are unchecked client input. */
function readArguments({ bytes, params }: RelayedRequest): unknown {
  if (params === undefined) return undefined;
  const value: unknown = JSON.parse(readText(bytes, params));
  return typeof value === 'object' && value !== null && 'arguments' in value ? value.arguments : undefined;
}

/** Reads the optional argument `server`. Returns a configured key, `undefined` if it is absent, or an error text. */
export function readServerArgument(
  args: unknown,
  keys: readonly string[],
): { readonly server: string | undefined; readonly fault?: undefined } | { readonly fault: string } {
  const server = typeof args === 'object' && args !== null && 'server' in args ? args.server : undefined;
  if (server === undefined || server === null) return { server: undefined };
  if (typeof server === 'string' && keys.includes(server)) return { server };
  const known = keys.length === 0 ? 'No server is configured.' : `Configured servers: ${keys.join(', ')}.`;
  return { fault: `There is no server ${JSON.stringify(server)}. ${known}` };
}

export function textResult(text: string, isError = false): CallToolResult {
  return { content: [{ type: 'text', text }], ...(isError ? { isError } : {}) };
}

/** Makes `trunkline__restart`, which restarts the calling client's process of a server. Offered only if configured. */
export function createRestartTool(
  keysNow: (visible: VisibleBackends) => readonly string[],
  restart: (id: string) => void,
): OwnTool {
  return createOwnTool(DEFINITION, (args, visible) => {
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

const DEFINITION = {
  name: 'trunkline__restart',
  title: 'Restart a server',
  description: 'Restarts one MCP server behind Trunkline. Its calls in flight fail, and what it had in memory is lost.',
  inputSchema: {
    type: 'object' as const,
    properties: { server: { type: 'string', description: 'Key of the server' } },
    required: ['server'],
    additionalProperties: false,
  },
  annotations: { destructiveHint: true, openWorldHint: false },
};
