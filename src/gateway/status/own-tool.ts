import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js';
import { toBytes } from '../../json/json-text.js';
import type { Catalogs } from '../catalog/catalogs.js';
import type { Backend } from '../registry/backend.js';

/** What the client that calls one of our tools sees of the servers. */
export interface VisibleBackends {
  /** By the servers' keys. */
  readonly backends: ReadonlyMap<string, Backend>;
  readonly catalogs: Catalogs;
}

/** A tool that the gateway itself offers. Its names begin with `trunkline__`, which no server may. */
export interface OwnTool {
  readonly name: string;
  /** As it is listed: JSON. */
  readonly entry: Uint8Array;
  /** Never rejects: what goes wrong is a result that says so. `args` is whatever the client sent. */
  call(args: unknown, seen: VisibleBackends): CallToolResult | Promise<CallToolResult>;
}

export function createOwnTool(tool: Tool, call: OwnTool['call']): OwnTool {
  return { name: tool.name, entry: toBytes(JSON.stringify(tool)), call };
}

/** The argument `server` of our tools: a configured key, nothing, or what to say about it. */
export function readServerArgument(
  args: unknown,
  keys: readonly string[],
): { readonly server: string | undefined; readonly fault?: undefined } | { readonly fault: string } {
  const server = typeof args === 'object' && args !== null && 'server' in args ? args.server : undefined;
  if (server === undefined || server === null) return { server: undefined };
  if (typeof server === 'string' && keys.includes(server)) return { server };
  const known = keys.length === 0 ? 'No server is configured.' : `Configured are: ${keys.join(', ')}.`;
  return { fault: `There is no server ${JSON.stringify(server)}. ${known}` };
}

export function textResult(text: string, isError = false): CallToolResult {
  return { content: [{ type: 'text', text }], ...(isError ? { isError } : {}) };
}
